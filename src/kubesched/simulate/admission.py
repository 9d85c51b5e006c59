"""Admission of manifests: what an API server would make of new objects, and all that it would refuse.

Offline some rules are laxer, since nothing runs here: see `_is_tolerated` and `_given_priority`. A status that the
manifest gives is kept, and claims and volumes are as in a cluster whose controllers have done their work.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from kubesched.admission import examine
from kubesched.admission.names import subdomain
from kubesched.admission.pods import give_priority
from kubesched.admission.reading import fresh_copy
from kubesched.admission.rules import REQUIRED, Mistakes, check_metadata
from kubesched.admission.schemas import FieldMistake, field_mistakes, readable
from kubesched.api.api_error import ApiError
from kubesched.api.kinds import (
    JOBS,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    PRIORITY_CLASSES,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    RUNTIME_CLASSES,
    STATEFUL_SETS,
    STORAGE_CLASSES,
    Object,
    Resource,
)
from kubesched.api.meta import KubeObject, ObjectMeta
from kubesched.api.pod import Pod, PodSpec, PodStatus
from kubesched.api.release import NEWEST
from kubesched.api.schema import Mistake, convert
from kubesched.api.storage import PersistentVolumeClaim, StorageClass
from kubesched.api.well_known import BIND_COMPLETED
from kubesched.simulate.kinds import PodWorkload, ReadAs

_CLASSES = (PRIORITY_CLASSES, STORAGE_CLASSES)
_SKETCHED = re.compile(
    r"(.*\.)?((initC|c)ontainers\[\d+\]\.(name|image|ports\[\d+\]\.containerPort)|accessModes|capacity|resources\[storage\])"
    r"|spec\.(containers|ports|selector|drivers\[\d+\]\.nodeID)|provisioner"
)
"""Fields that an API server asks for and that scheduling can do without."""
_WITHOUT_TEMPLATE = (REPLICA_SETS, REPLICATION_CONTROLLERS, STATEFUL_SETS)
"""Kinds that may lack a template: where their pods exist already, the selector is enough."""
_OWNERS = ("metadata.ownerReferences.apiVersion", "metadata.ownerReferences.uid")
"""Owners are found by kind and name, since objects that no server has created have no uid."""
_POLICIES = ("PreemptLowerPriority", "Never")
_PRIORITY = ("priority", "priorityClassName", "preemptionPolicy")


class Classes:
    """The priority and storage classes of the manifests, as admission looks them up."""

    release = NEWEST
    """Files may have what any release knows."""

    def __init__(self, records: Iterable[KubeObject] = ()) -> None:
        self._found: dict[Resource, dict[str, Object]] = {resource: {} for resource in _CLASSES}
        for record in records:
            for resource in _CLASSES:
                if type(record).__name__ == resource.kind:
                    self._found[resource][record.name] = msgspec.to_builtins(record)

    def find(self, resource: Resource, namespace: str, name: str) -> Object | None:
        if resource is RUNTIME_CLASSES:
            return {}  # overhead is what the pod says
        return self._found.get(resource, {}).get(name)

    def select(self, resource: Resource, namespace: str | None = None) -> Iterable[Object]:
        return self._found.get(resource, {}).values()


class Admission:
    """Admits objects that no API server has seen, with the PriorityClasses and StorageClasses of the manifests."""

    def __init__(self, classes: Classes) -> None:
        self._classes = classes
        self._specs: dict[bytes, PodSpec] = {}
        """Specs of pods that were admitted, by spec and labels as they were written: most pods are like another."""

    def admit(self, read_as: ReadAs, obj: Object) -> tuple[KubeObject | None, list[Mistake]]:
        """The object as a record, or everything that is wrong with it."""
        key = msgspec.json.encode((obj.get("spec"), obj["metadata"].get("labels"))) if read_as.resource is PODS else b""
        wrong_fields = field_mistakes(read_as.resource, obj)
        if key in self._specs and not wrong_fields:
            pod = _like_another(obj, self._specs[key])
            if pod is not None:
                return pod, []
        content = readable(read_as.resource, obj) if wrong_fields else obj
        new, mistakes = self._examine(read_as, content)
        mistakes_of_fields = [field.mistake for field in wrong_fields]
        mistakes = [mistake for mistake in mistakes if not _is_tolerated(mistake, read_as.resource, obj)]
        mistakes_of_fields += [mistake for mistake in mistakes if not _follows(mistake, wrong_fields)]
        if mistakes_of_fields:
            return None, mistakes_of_fields
        record, unread = convert(new, read_as.record)
        if isinstance(record, Pod):
            self._specs[key] = record.spec
        return record, unread

    def with_priority(self, workload: PodWorkload) -> PodWorkload:
        """A workload as a server has it, with the priority that its pods will have. All else is filled in already."""
        template = workload.spec.template
        if template.spec.priority is not None:
            return workload
        pod: Object = {"metadata": {}, "spec": {"priorityClassName": template.spec.priority_class_name}}
        try:
            give_priority(pod, self._classes)
        except ApiError:  # classes could not be read: the warning about them says so (`CONSEQUENCES`)
            return workload
        settled = msgspec.structs.replace(
            template.spec, priority=pod["spec"]["priority"], preemption_policy=pod["spec"]["preemptionPolicy"]
        )
        template = msgspec.structs.replace(template, spec=settled)
        return msgspec.structs.replace(workload, spec=msgspec.structs.replace(workload.spec, template=template))

    def _examine(self, read_as: ReadAs, obj: Object) -> tuple[Object, list[Mistake]]:
        resource = read_as.resource
        if resource is PODS:
            return self._pod(obj)
        if read_as.makes_pods and obj["metadata"].get("uid"):
            new = fresh_copy(obj)
            return new, self._complete_templates(new)
        if resource is JOBS:
            uid = f"{zlib.crc32(_key(obj).encode()):08x}"
            obj = {**obj, "metadata": {**obj["metadata"], "uid": uid}, "spec": _with_restart_policy(obj.get("spec"))}
        new, mistakes = examine(resource, obj, self._classes)
        if read_as.makes_pods:
            mistakes += self._complete_templates(new)
        elif resource is PERSISTENT_VOLUME_CLAIMS:
            _settle_claim(new)
        elif resource is PERSISTENT_VOLUMES and not (new.get("status") or {}).get("phase"):
            phase = "Bound" if new["spec"].get("claimRef") else "Available"
            new["status"] = {**(new.get("status") or {}), "phase": phase}
        return new, mistakes

    def _pod(self, pod: Object) -> tuple[Object, list[Mistake]]:
        spec = pod.get("spec") or {}
        priority = _given_priority(spec)
        if priority:
            pod = {**pod, "spec": {key: value for key, value in spec.items() if key not in priority}}
        admitted, mistakes = examine(PODS, pod, self._classes)
        admitted["spec"].update(priority)
        if not admitted["metadata"].get("uid"):
            admitted["metadata"]["uid"] = _key(admitted)
        return admitted, mistakes

    def _complete_templates(self, workload: Object) -> list[Mistake]:
        """What holds for the pods and claims that a workload makes is filled in once, in its templates."""
        spec = workload["spec"]
        whose = {key: workload["metadata"][key] for key in ("name", "namespace") if key in workload["metadata"]}
        template = spec.get("template") or {}
        pod = {"metadata": {**(template.get("metadata") or {}), **whose}, "spec": template.get("spec")}
        admitted, mistakes = self._pod(pod)
        spec["template"] = {**template, "spec": admitted["spec"]}
        for claim in spec.get("volumeClaimTemplates") or ():
            claim_metadata = {**(claim.get("metadata") or {}), "namespace": whose.get("namespace", "")}
            completed, _ = examine(PERSISTENT_VOLUME_CLAIMS, {**claim, "metadata": claim_metadata}, self._classes)
            claim["spec"] = completed["spec"]
        fields = tuple(f"spec.{key}" for key in _PRIORITY)  # all others are found in the template itself
        return [
            Mistake(f"spec.template.{mistake.path}", mistake.problem) for mistake in mistakes if mistake.path in fields
        ]


def admitted_claim(claim: PersistentVolumeClaim, classes: Iterable[StorageClass]) -> PersistentVolumeClaim:
    """A claim that a controller has just created."""
    new, _ = examine(PERSISTENT_VOLUME_CLAIMS, msgspec.to_builtins(claim), Classes(classes))
    return msgspec.convert(new, PersistentVolumeClaim)


def _like_another(obj: Object, spec: PodSpec) -> Pod | None:
    """A pod with a spec and labels that were admitted before; None if its metadata or status has a mistake."""
    mistakes = Mistakes()
    check_metadata(PODS, obj, subdomain, mistakes)
    if mistakes.found:
        return None
    try:
        metadata = msgspec.convert(obj["metadata"], ObjectMeta)
        status = msgspec.convert(obj.get("status") or {}, PodStatus)
    except msgspec.ValidationError:
        return None
    if not metadata.uid:
        metadata = msgspec.structs.replace(metadata, uid=_key(obj))
    return Pod(api_version="v1", kind="Pod", metadata=metadata, spec=spec, status=status)


def _given_priority(spec: Object) -> Object:
    """The priority that the pod itself names is kept: it may come from a cluster with other PriorityClasses."""
    priority = {key: spec[key] for key in _PRIORITY if spec.get(key) is not None}
    if "priority" not in priority:
        priority.pop("priorityClassName", None)
    if priority.get("preemptionPolicy") not in _POLICIES:
        priority.pop("preemptionPolicy", None)
    return priority


def _settle_claim(claim: Object) -> None:
    """Bind a new claim that names its volume, as the volume controller would."""
    if claim["spec"].get("volumeName") and not (claim.get("status") or {}).get("phase"):
        metadata = claim["metadata"]
        metadata["annotations"] = {BIND_COMPLETED: "yes", **(metadata.get("annotations") or {})}


def _with_restart_policy(spec: Object | None) -> Object:
    """The spec of a Job with restartPolicy Never, which a sketch may leave out."""
    template = (spec or {}).get("template") or {}
    pod = {"restartPolicy": "Never", **(template.get("spec") or {})}
    return {**(spec or {}), "template": {**template, "spec": pod}}


def _is_tolerated(mistake: Mistake, resource: Resource, obj: Object) -> bool:
    """Whether the manifest is a sketch that leaves out what nothing reads before a pod runs."""
    if mistake.path in _OWNERS:
        return True
    if resource in _WITHOUT_TEMPLATE and mistake.path.startswith("spec.template"):
        template = (obj.get("spec") or {}).get("template") or {}
        if not (template.get("spec") or {}).get("containers"):
            return True
    if mistake.reason != REQUIRED:
        return False
    return bool(_SKETCHED.fullmatch(mistake.path)) or (resource is PERSISTENT_VOLUMES and mistake.path == "spec")


def _follows(mistake: Mistake, wrong_fields: Sequence[FieldMistake]) -> bool:
    """Whether the mistake is only about a field that could not be read."""
    paths = [field.path for field in wrong_fields if not field.unknown]
    return any(mistake.path == path or mistake.path.startswith((f"{path}.", f"{path}[")) for path in paths)


def _key(obj: Any) -> str:
    metadata = obj["metadata"]
    return "/".join(filter(None, (metadata.get("namespace"), metadata.get("name"))))
