"""How objects in a manifest are read: those that scheduling looks at, workloads that pods are made of, and others."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import msgspec

from kubesched.api.custom import CustomObject, custom_object
from kubesched.api.kinds import BUILT_IN, KINDS, VERSIONS_BY_SERVER, Resource
from kubesched.api.meta import KubeObject, LabelSelector, ObjectMeta, Record
from kubesched.api.pod import PodCondition, PodResourceClaim, PodSpec
from kubesched.api.pod_groups import SchedulingConstraints
from kubesched.api.schema import Mistake, convert
from kubesched.api.storage import PersistentVolumeClaim
from kubesched.api.well_known import NAMESPACE_NAME
from kubesched.api.workloads import Namespace


class PodTemplate(Record, frozen=True):
    """The pod that a workload makes copies of."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()


class Ordinals(Record, frozen=True):
    """Where a StatefulSet begins to count."""

    start: int = 0


class JobGang(Record, frozen=True):
    """So many pods or none; all that run side by side if it does not say how many."""

    min_count: int | None = None


class JobSchedulingPolicy(Record, frozen=True):
    """A gang; or, without one, pods that merely belong together."""

    gang: JobGang | None = None


class JobScheduling(Record, frozen=True):
    """How the pods of a Job are grouped, which v1.37 lets it say."""

    scheduling_policy: JobSchedulingPolicy | None = None
    scheduling_constraints: SchedulingConstraints | None = None
    disruption_mode: dict[str, Any] = {}
    resource_claims: tuple[PodResourceClaim, ...] = ()


class PodWorkloadSpec(Record, frozen=True):
    """The fields of all kinds of workloads; each kind reads its own."""

    replicas: int | None = None
    selector: LabelSelector | None = None
    template: PodTemplate = PodTemplate()
    volume_claim_templates: tuple[PersistentVolumeClaim, ...] = ()
    pod_management_policy: Literal["OrderedReady", "Parallel", ""] = ""
    parallelism: int | None = None
    completions: int | None = None
    completion_mode: Literal["NonIndexed", "Indexed", ""] = ""
    ordinals: Ordinals | None = None
    suspend: bool = False
    scheduling: JobScheduling | None = None


class PodWorkloadStatus(Record, frozen=True):
    """What has been done already."""

    succeeded: int = 0
    completed_indexes: str = ""
    conditions: tuple[PodCondition, ...] = ()


class PodWorkload(KubeObject, frozen=True):
    """Something that makes pods."""

    spec: PodWorkloadSpec = PodWorkloadSpec()
    status: PodWorkloadStatus = PodWorkloadStatus()

    @property
    def refusal(self) -> str:
        """Why the API server takes no more of its pods, such as a quota: what its controller wrote down."""
        failures = (
            condition
            for condition in self.status.conditions
            if condition.type == "ReplicaFailure" and condition.status == "True"
        )
        return next((failure.message for failure in failures), "")


class Deployment(PodWorkload, frozen=True):
    """Makes a ReplicaSet."""


class ReplicaSet(PodWorkload, frozen=True):
    """Makes a number of pods that are all alike."""


class StatefulSet(PodWorkload, frozen=True):
    """Makes pods that have a number and claims of their own, one after another."""


class DaemonSet(PodWorkload, frozen=True):
    """Makes a pod for every node that suits."""


class Job(PodWorkload, frozen=True):
    """Makes pods that end, a few at a time."""


WORKLOADS: dict[str, type[PodWorkload]] = {
    kind.__name__: kind for kind in (Deployment, ReplicaSet, StatefulSet, DaemonSet, Job)
}


DEFAULT_NAMESPACE = "default"

LIST = "List"


class ReadAs(NamedTuple):
    """The resource of an object, and the record that it is read as."""

    resource: Resource
    record: type[KubeObject]

    @property
    def makes_pods(self) -> bool:
        """Whether pods are made from its template, which are new even if the object itself comes from a server."""
        return issubclass(self.record, PodWorkload)


_KINDS = {name: ReadAs(kind.resource, kind.record) for name, kind in KINDS.items()}
_WORKLOADS = {
    name: ReadAs(resource, WORKLOADS[name])
    for (version, name), resource in BUILT_IN.items()
    if name in WORKLOADS and version in ("apps/v1", "batch/v1")
}


def record_of(kind: str, *, workloads: bool = False) -> ReadAs:
    """How objects of a kind that is known are read."""
    return (workloads and _WORKLOADS.get(kind)) or _KINDS[kind]


def kinds_read(*, workloads: bool = False) -> dict[str, ReadAs]:
    """Every kind that is read from a cluster, by its name. A server may lack some: then there are none of them."""
    return {**_KINDS, **_WORKLOADS} if workloads else _KINDS


def kind_of(api_version: Any, kind: Any, *, workloads: bool = False) -> ReadAs | Mistake | None:
    """How to read an object; None if scheduling does not look at such objects; or what is wrong with its name.

    With `workloads`, those that make pods are read too, with their templates.
    """
    for field, value in (("kind", kind), ("apiVersion", api_version)):
        if value in (None, ""):
            return Mistake(field, "required field is missing")
        if not isinstance(value, str):
            return Mistake(field, f"expected a string, got {value!r}")
    return _kind_of(api_version, kind, workloads)


@lru_cache
def _kind_of(api_version: str, kind: str, workloads: bool) -> ReadAs | Mistake | None:
    read_as = (workloads and _WORKLOADS.get(kind)) or _KINDS.get(kind)
    if not read_as:
        return None
    versions = VERSIONS_BY_SERVER.get(read_as.resource, (read_as.resource,))
    for resource in versions:
        if resource.api_version == api_version:
            return read_as._replace(resource=resource)
    if not _is_of_kubernetes(api_version):
        return None
    served = versions[0].api_version
    return Mistake("apiVersion", f"{api_version!r} has no kind {kind}; Kubernetes serves it as {served!r}")


_PLACEMENT_TEST = ("kubesched.dev/v1alpha1", "PlacementTest")


def is_known(api_version: str, kind: str) -> bool:
    """Whether Kubernetes, or kubesched itself, has this kind, so that there is nothing odd about it in a manifest."""
    return (api_version, kind) in (*BUILT_IN, _PLACEMENT_TEST) or (
        _is_of_kubernetes(api_version) and any(name == kind for _, name in BUILT_IN)
    )


def nearest_kind(api_version: str, kind: str) -> str:
    """The kind that the author may have meant; empty if there is none. Other groups have kinds of their own."""
    by_lower = {name.lower(): name for _, name in BUILT_IN}
    cutoff = 0.6 if _is_of_kubernetes(api_version) else 0.85
    close = difflib.get_close_matches(kind.lower(), by_lower, n=1, cutoff=cutoff)
    return by_lower[close[0]] if close else ""


def unknown_kind(api_version: str, kind: str, places: Sequence[object]) -> str:
    """The warning about objects of an unknown kind, found at these places."""
    nearest = nearest_kind(api_version, kind)
    more = f" and {len(places) - 1} more" if len(places) > 1 else ""
    hint = f', did you mean "{nearest}"?' if nearest and nearest != kind else ", left out"
    return f'{places[0]}{more}: unknown kind "{kind}" in {api_version}{hint}'


def _is_of_kubernetes(api_version: str) -> bool:
    """Whether Kubernetes itself has this group. Others may have kinds of the same name, such as Knative's Service."""
    group = api_version.rpartition("/")[0]
    return "." not in group or group.endswith(".k8s.io")


class _Names(msgspec.Struct):
    plural: str
    kind: str


class _DefinitionSpec(msgspec.Struct):
    group: str
    names: _Names
    scope: str = "Namespaced"


class _Definition(msgspec.Struct):
    """As much of a CustomResourceDefinition as it takes to know its objects."""

    spec: _DefinitionSpec


class CustomResources:
    """What plugins wait for, as `plural.version.group`, and what definitions among the manifests say about it.

    An object tells its kind but not the plural. Where no definition does, it is the plural that most kinds have.
    """

    def __init__(self, awaited: Iterable[str] = ()) -> None:
        self._awaited = frozenset(awaited)
        self._defined_as: dict[tuple[str, str], _DefinitionSpec] = {}

    def define(self, content: dict[str, Any]) -> None:
        """Take note of an object, should it be a CustomResourceDefinition."""
        spec = _definition(content)
        if spec is not None:
            self._defined_as[spec.group, spec.names.kind] = spec

    def defines(self, content: dict[str, Any]) -> bool:
        """Whether the object is of a resource that a definition among the manifests describes."""
        group, _, _ = _text(content, "apiVersion").rpartition("/")
        return (group, _text(content, "kind")) in self._defined_as

    def is_awaited_definition(self, content: dict[str, Any]) -> bool:
        """Whether it defines a resource that plugins wait for."""
        spec = _definition(content)
        return spec is not None and (spec.names.plural, spec.group) in map(_plural_and_group, self._awaited)

    def read(self, content: dict[str, Any]) -> CustomObject | list[Mistake] | None:
        """The object as plugins find it; what is wrong with it; or None if no plugin waits for such objects."""
        api_version, kind = _text(content, "apiVersion"), _text(content, "kind")
        group, _, version = api_version.rpartition("/")
        definition = self._defined_as.get((group, kind))
        plural = definition.names.plural if definition is not None else _usual_plural(kind)
        resource = f"{plural}.{version}.{group}"
        if resource not in self._awaited:
            return None
        metadata, mistakes = convert(content.get("metadata") or {}, ObjectMeta, path="metadata")
        if metadata is None:
            return mistakes
        if not metadata.name:
            return [Mistake("metadata.name", "Required value: name or generateName is required")]
        if definition is not None:
            namespace = (metadata.namespace or DEFAULT_NAMESPACE) if definition.scope == "Namespaced" else ""
            metadata = msgspec.structs.replace(metadata, namespace=namespace)
            content = {**content, "metadata": _with_namespace(content.get("metadata") or {}, namespace)}
        return custom_object(resource, content, metadata)


def _definition(content: dict[str, Any]) -> _DefinitionSpec | None:
    group, _, _ = _text(content, "apiVersion").partition("/")
    if group != "apiextensions.k8s.io" or content.get("kind") != "CustomResourceDefinition":
        return None
    try:
        return msgspec.convert(content, _Definition).spec
    except msgspec.ValidationError:
        return None


def _with_namespace(metadata: dict[str, Any], namespace: str) -> dict[str, Any]:
    other_fields = {field: value for field, value in metadata.items() if field != "namespace"}
    return {**other_fields, "namespace": namespace} if namespace else other_fields


def _plural_and_group(resource: str) -> tuple[str, str]:
    plural, _, group = resource.split(".", 2)
    return plural, group


def _usual_plural(kind: str) -> str:
    """As Kubernetes itself derives it from a kind."""
    singular = kind.lower()
    if singular.endswith("s"):
        return f"{singular}es"
    return f"{singular.removesuffix('y')}ies" if singular.endswith("y") else f"{singular}s"


def _text(content: dict[str, Any], field: str) -> str:
    value = content.get(field)
    return value if isinstance(value, str) else ""


def bare_namespace(name: str) -> Namespace:
    """A namespace of which nothing but the name is known."""
    return Namespace(metadata=ObjectMeta(name=name, labels={NAMESPACE_NAME: name}))
