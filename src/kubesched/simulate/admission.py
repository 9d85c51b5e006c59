"""What the API server and its controllers would have filled in, so that hand-written objects mean what they mean there.

Objects taken from a cluster have all of this already and stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, TypeVar

import msgspec

from kubesched.api.affinity import Affinity, PodAffinity, PodAffinityTerm
from kubesched.api.custom import CustomObject
from kubesched.api.meta import KubeObject, LabelSelectorRequirement, ObjectMeta
from kubesched.api.node import Node
from kubesched.api.pod import Container, Pod, PodSpec, ResourceRequirements
from kubesched.api.requests import CPU, MEMORY, pod_requests
from kubesched.api.schema import Mistake
from kubesched.api.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from kubesched.api.workloads import Namespace, PriorityClass
from kubesched.simulate.kinds import DEFAULT_NAMESPACE, NAMESPACED
from kubesched.simulate.workload_kinds import Workload

SYSTEM_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
_NAME_LABEL = "kubernetes.io/metadata.name"
_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
_BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
_KEY_OPERATORS: tuple[Literal["In", "NotIn"], ...] = ("In", "NotIn")

S = TypeVar("S", bound=msgspec.Struct)
replace = msgspec.structs.replace


def named(obj: KubeObject, serial: int) -> KubeObject:
    """The object with the name and namespace it would get; `serial` tells generated names apart."""
    if isinstance(obj, CustomObject):
        return obj
    meta = obj.metadata
    namespace = (meta.namespace or DEFAULT_NAMESPACE) if type(obj).__name__ in NAMESPACED else ""
    name = meta.name or (f"{meta.generate_name}{serial:05}" if meta.generate_name else "")
    if (name, namespace) == (meta.name, meta.namespace):
        return obj
    return replace(obj, metadata=replace(meta, name=name, namespace=namespace))


def unknown_priority_classes(objects: Sequence[KubeObject]) -> list[tuple[int, Mistake]]:
    """Pods, by their position, whose priority cannot be known because their class is missing."""
    known = {obj.name for obj in objects if isinstance(obj, PriorityClass)} | SYSTEM_CLASSES.keys()
    mistakes = []
    for i, obj in enumerate(objects):
        if not isinstance(obj, Pod | Workload):
            continue
        spec, path = (obj.spec, "spec") if isinstance(obj, Pod) else (obj.spec.template.spec, "spec.template.spec")
        wanted = spec.priority_class_name
        if spec.priority is None and wanted and wanted not in known:
            text = f"there is no PriorityClass {wanted!r}; known are {', '.join(sorted(known))}"
            mistakes.append((i, Mistake(f"{path}.priorityClassName", text)))
    return mistakes


def complete(objects: Iterable[KubeObject]) -> list[KubeObject]:
    """All objects as they would be in a cluster that has settled, with the namespaces they live in."""
    given = list(objects)
    classes = _PriorityClasses(obj for obj in given if isinstance(obj, PriorityClass))
    storage_class = _default_storage_class(obj for obj in given if isinstance(obj, StorageClass))
    done = [_complete(obj, classes, storage_class) for obj in given]
    known = {obj.name for obj in done if isinstance(obj, Namespace)}
    implied = dict.fromkeys(obj.namespace for obj in done if obj.namespace and obj.namespace not in known)
    done += [_namespace(Namespace(metadata=ObjectMeta(name=name))) for name in implied]
    return done


def _complete(obj: KubeObject, classes: _PriorityClasses, storage_class: str | None) -> KubeObject:
    match obj:
        case Pod():
            return _pod(obj, classes)
        case Workload():
            return _workload(obj, classes, storage_class)
        case Node():
            return _node(obj)
        case Namespace():
            return _namespace(obj)
        case PersistentVolume():
            return _volume(obj)
        case PersistentVolumeClaim():
            return _claim(obj, storage_class)
        case StorageClass(volume_binding_mode=None):
            return replace(obj, volume_binding_mode="Immediate")
    return obj


# -- pods -------------------------------------------------------------------------------------------------------------


class _PriorityClasses:
    """Priorities by the name of their class, and the one for pods that name none."""

    def __init__(self, classes: Iterable[PriorityClass]) -> None:
        self._by_name = {name: PriorityClass(value=value) for name, value in SYSTEM_CLASSES.items()}
        self._default = PriorityClass()
        defaults: list[PriorityClass] = []
        for each in classes:
            self._by_name[each.name] = each
            if each.global_default:
                defaults.append(each)
        if defaults:
            self._default = min(defaults, key=lambda each: each.value)

    def apply(self, spec: PodSpec) -> PodSpec:
        if spec.priority is not None:
            return spec
        found = self._by_name.get(spec.priority_class_name) if spec.priority_class_name else self._default
        if found is None:
            return spec
        spec = replace(spec, priority=found.value, priority_class_name=spec.priority_class_name or found.name)
        if spec.preemption_policy is None and found.preemption_policy == "Never":
            spec = replace(spec, preemption_policy="Never")
        return spec


def _pod(pod: Pod, classes: _PriorityClasses) -> Pod:
    if not pod.metadata.uid:
        pod = replace(pod, metadata=replace(pod.metadata, uid=pod.key))
    spec = classes.apply(pod.spec)
    spec = _replaced(
        spec,
        containers=tuple(_container(container, spec.host_network) for container in spec.containers),
        init_containers=tuple(_container(container, spec.host_network) for container in spec.init_containers),
        affinity=_affinity(spec.affinity, pod.metadata.labels),
    )
    pod = _replaced(pod, spec=spec)
    if spec.resources is not None and spec.resources.limits:
        pod = replace(pod, spec=replace(spec, resources=_pod_level(pod, spec.resources)))
    return pod


def _workload(workload: Workload, classes: _PriorityClasses, storage_class: str | None) -> Workload:
    """What holds for the pods and claims that a workload makes is filled in once, in its templates."""
    spec = workload.spec
    pod = _pod(Pod(metadata=spec.template.metadata, spec=spec.template.spec), classes)
    claims = tuple(_claim(claim, storage_class) for claim in spec.volume_claim_templates)
    template = replace(spec.template, spec=pod.spec)
    return replace(workload, spec=replace(spec, template=template, volume_claim_templates=claims))


def _container(container: Container, host_network: bool) -> Container:
    """What is limited but not requested is requested; on the host's network every port is one of the host."""
    resources = container.resources
    if not resources.limits.keys() <= resources.requests.keys():
        requests = {**resources.limits, **resources.requests}
        container = replace(container, resources=replace(resources, requests=requests))
    if host_network and any(not port.host_port for port in container.ports):
        ports = tuple(replace(port, host_port=port.host_port or port.container_port) for port in container.ports)
        container = replace(container, ports=ports)
    return container


def _pod_level(pod: Pod, resources: ResourceRequirements) -> ResourceRequirements:
    """Requests of a pod that has limits: what its containers request together, or else the limit."""
    together = pod_requests(replace(pod, spec=replace(pod.spec, overhead={})), pod_level=False)
    requests = dict(resources.requests)
    if CPU in together:
        requests.setdefault(CPU, f"{together[CPU].milli()}m")
    if MEMORY in together:
        requests.setdefault(MEMORY, together[MEMORY].value())
    return replace(resources, requests={**resources.limits, **requests})


def _affinity(affinity: Affinity | None, labels: dict[str, str]) -> Affinity | None:
    """Label keys that a pod wants to share with its neighbours, or not, become part of the selectors."""
    if affinity is None or (affinity.pod_affinity is None and affinity.pod_anti_affinity is None):
        return affinity
    return _replaced(
        affinity,
        pod_affinity=_pod_affinity(affinity.pod_affinity, labels),
        pod_anti_affinity=_pod_affinity(affinity.pod_anti_affinity, labels),
    )


def _pod_affinity(affinity: PodAffinity | None, labels: dict[str, str]) -> PodAffinity | None:
    if affinity is None:
        return None
    hard = affinity.required_during_scheduling_ignored_during_execution
    soft = affinity.preferred_during_scheduling_ignored_during_execution
    return _replaced(
        affinity,
        required_during_scheduling_ignored_during_execution=tuple(_term(term, labels) for term in hard),
        preferred_during_scheduling_ignored_during_execution=tuple(
            _replaced(weighted, pod_affinity_term=_term(weighted.pod_affinity_term, labels)) for weighted in soft
        ),
    )


def _term(term: PodAffinityTerm, labels: dict[str, str]) -> PodAffinityTerm:
    selector = term.label_selector
    if selector is None or not (term.match_label_keys or term.mismatch_label_keys):
        return term
    more = [
        LabelSelectorRequirement(key=key, operator=operator, values=(labels[key],))
        for keys, operator in zip((term.match_label_keys, term.mismatch_label_keys), _KEY_OPERATORS)
        for key in keys
        if key in labels
    ]
    expressions = selector.match_expressions
    missing = tuple(requirement for requirement in more if requirement not in expressions)
    return replace(term, label_selector=replace(selector, match_expressions=expressions + missing))


# -- nodes, namespaces, storage ---------------------------------------------------------------------------------------


def _node(node: Node) -> Node:
    if node.status.allocatable or not node.status.capacity:
        return node
    return replace(node, status=replace(node.status, allocatable=node.status.capacity))


def _namespace(namespace: Namespace) -> Namespace:
    labels = {**namespace.metadata.labels, _NAME_LABEL: namespace.name}
    return replace(namespace, metadata=replace(namespace.metadata, labels=labels))


def _volume(volume: PersistentVolume) -> PersistentVolume:
    if volume.spec.volume_mode is None:
        volume = replace(volume, spec=replace(volume.spec, volume_mode="Filesystem"))
    if not volume.status.phase:
        phase = "Bound" if volume.spec.claim_ref else "Available"
        volume = replace(volume, status=replace(volume.status, phase=phase))
    return volume


def _claim(claim: PersistentVolumeClaim, storage_class: str | None) -> PersistentVolumeClaim:
    """A claim without a status is new: it gets the default class, and if it names its volume, the controller agrees."""
    if claim.spec.volume_mode is None:
        claim = replace(claim, spec=replace(claim.spec, volume_mode="Filesystem"))
    if claim.status.phase:
        return claim
    if claim.spec.volume_name:
        annotations = {_BIND_COMPLETED: "yes", **claim.metadata.annotations}
        return replace(claim, metadata=replace(claim.metadata, annotations=annotations))
    if claim.spec.storage_class_name is None and storage_class is not None:
        claim = replace(claim, spec=replace(claim.spec, storage_class_name=storage_class))
    return claim


def _default_storage_class(classes: Iterable[StorageClass]) -> str | None:
    """The default class; of several the newest, then the first by name, as the server chooses."""
    marked = [each for each in classes if each.metadata.annotations.get(_DEFAULT_CLASS) == "true"]
    marked.sort(key=lambda each: each.name)
    marked.sort(key=lambda each: each.metadata.creation_timestamp, reverse=True)
    return marked[0].name if marked else None


def _replaced(record: S, **changes: object) -> S:
    """The record with some fields replaced; the very same one where nothing changes."""
    same = all(getattr(record, name) == value for name, value in changes.items())
    return record if same else replace(record, **changes)
