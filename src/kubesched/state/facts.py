"""What follows from a pod's definition alone, worked out once for all equivalent pods.

Pods of one ReplicaSet differ in name and uid only. Their facts are one object, found by a fingerprint of all other
fields that count: pods with the same facts are an equivalence class. The object lives as long as a pod that has it, and
plugins keep on it whatever they derive from the definition.

Pods of one DaemonSet also differ in the node that they must go to: each is a class of its own. All else about them is
on facts without node names, which are made for the first of them and shared by all.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable, Iterator
from typing import Any, Generic, Literal, NamedTuple, TypeVar, get_args

import msgspec
import numpy as np
from msgspec.structs import replace

from kubesched.api.affinity import PodAffinity, PodAffinityTerm
from kubesched.api.pod import Pod, PodSpec, PodStatus
from kubesched.api.requests import Quantities, is_countable, is_sidecar, placed_requests, whole
from kubesched.api.selectors import NOTHING, Selector, compile_selector
from kubesched.config.features import Features
from kubesched.state.columns import Int64
from kubesched.state.resources import FIXED_RESOURCES, ResourceColumns

S = TypeVar("S")
T = TypeVar("T")

_NO_LOADS: Int64 = np.zeros((2, 0), dtype=np.int64)

TermKind = Literal["required-affinity", "required-anti-affinity", "preferred-affinity", "preferred-anti-affinity"]
_TERM_KINDS: tuple[TermKind, ...] = get_args(TermKind)


class StateKey(Generic[T]):
    """The key of something of type T in the notes of an attempt (`Cycle`) or on the facts of a pod.

    Compared by identity; the name is for messages. With `is_for_deciding` only filters and scores read the note: the
    cycle forgets it when the pod has a node.
    """

    __slots__ = ("is_for_deciding", "name")

    def __init__(self, name: str, *, is_for_deciding: bool = False) -> None:
        self.name = name
        self.is_for_deciding = is_for_deciding


class Term(NamedTuple):
    """One pod (anti-)affinity term, compiled."""

    kind: TermKind
    topology_key: str
    selector: Selector
    namespaces: frozenset[str]
    namespace_selector: Selector
    weight: int = 0


class HostPort(NamedTuple):
    """A port claimed on the node."""

    ip: str
    protocol: str
    port: int


class PodFacts:
    """Everything about a pod that the columns need, and room for what plugins derive."""

    __slots__ = (
        "__weakref__",
        "_columns",
        "_kept",
        "_laid_out_at",
        "_loads",
        "_takes",
        "_terms_by_kind",
        "_without_node_names",
        "amounts",
        "claims",
        "extended",
        "fingerprint",
        "has_own_claims",
        "labels",
        "load",
        "namespace",
        "ports",
        "scheduler_name",
        "terms",
    )

    def __init__(self, pod: Pod, fingerprint: bytes, nodes: ResourceColumns, features: Features) -> None:
        real, with_defaults = placed_requests(
            pod,
            pod_level=features.pod_level_resources,
            pod_level_resize=features.pod_level_resize,
            resize_by_pod=features.release.resize_by_pod,
        )
        self.fingerprint = fingerprint
        self.namespace = pod.namespace
        self.labels = pod.metadata.labels
        self.scheduler_name = pod.spec.scheduler_name
        self.amounts = tuple(_amounts(real, with_defaults))
        """What the pod takes from its node, by the name of the resource, and the same as scoring counts it."""
        self.extended = tuple(name for name, _, _ in self.amounts if name not in FIXED_RESOURCES)
        """The resources among these that have no fixed column."""
        self._columns = nodes
        self._laid_out_at = -1
        self._loads = _NO_LOADS
        self._takes: tuple[tuple[int, int], ...] = ()
        self.ports = tuple(_host_ports(pod))
        is_ephemeral = any(volume.ephemeral for volume in pod.spec.volumes)
        self.has_own_claims = bool(is_ephemeral or self.extended or pod.spec.resource_claims)
        """Whether the pod's own name or status may lead to claims, so that equivalent pods have others."""
        self.claims = tuple(f"{pod.namespace}/{name}" for name in claim_names(pod))
        self.terms = tuple(affinity_terms(pod))
        self._terms_by_kind = {kind: tuple(term for term in self.terms if term.kind == kind) for kind in _TERM_KINDS}
        self.load = (self.amounts, self.ports, self.claims, pod.priority)
        """What the pod takes up on its node. Pods of equal load may differ in labels or in the nodes they may go to."""
        self._kept: dict[object, Any] = {}
        self._without_node_names: PodFacts | None = None

    def with_node_names(self, fingerprint: bytes) -> PodFacts:
        """The facts of a pod that differs from a pod with these only in the nodes that it must go to."""
        if self._laid_out_at != self._columns.resources_version:
            self._lay_out()
        facts = PodFacts.__new__(PodFacts)
        for name in _SHARED:
            setattr(facts, name, getattr(self, name))
        facts.fingerprint, facts._without_node_names, facts._kept = fingerprint, self, {}
        return facts

    @property
    def without_node_names(self) -> PodFacts:
        """The facts that all pods of a DaemonSet share; never those of a pod that may go anywhere.

        For what does not depend on the nodes that required node affinity selects by name.
        """
        return self._without_node_names or self

    @property
    def requests(self) -> Int64:
        """What the pod takes from its node, by the id of the resource, of resources that have a column."""
        requests: Int64 = self.loads[0]
        return requests

    @property
    def scoring(self) -> Int64:
        """The same as scoring counts it, with defaults of cpu and memory."""
        scoring: Int64 = self.loads[1]
        return scoring

    @property
    def loads(self) -> Int64:
        """`requests` and `scoring` in one array."""
        if self._laid_out_at != self._columns.resources_version:
            self._lay_out()
        return self._loads

    @property
    def takes(self) -> tuple[tuple[int, int], ...]:
        """As `requests`: id and amount of each resource of which the pod takes any."""
        if self._laid_out_at != self._columns.resources_version:
            self._lay_out()
        return self._takes

    def amount_of(self, resource: str) -> int:
        """What the pod takes of a resource, whether or not any node offers it."""
        return next((amount for name, amount, _ in self.amounts if name == resource), 0)

    def _lay_out(self) -> None:
        ids = self._columns.resources
        amounts = [(ids[name], amount, scoring) for name, amount, scoring in self.amounts if name in ids]
        self._loads = np.zeros((2, max((resource_id for resource_id, _, _ in amounts), default=-1) + 1), dtype=np.int64)
        for resource_id, amount, scoring in amounts:
            self._loads[:, resource_id] = amount, scoring
        self._takes = tuple((resource_id, amount) for resource_id, amount, _ in amounts if amount)
        self._laid_out_at = self._columns.resources_version

    def derived(self, make: Callable[[S], T], source: S) -> T:
        """What `make` derives from a pod's definition, once for all equivalent pods.

        `source` is a pod that has these facts, or anything that leads to one, such as the cycle.
        """
        value: T | None = self._kept.get(make)
        if value is None:
            value = self._kept[make] = make(source)
        return value

    def derived_at(self, version: Hashable, make: Callable[[S], T], source: S) -> T:
        """As `derived`, for what depends on other objects as well: made again when their version changes."""
        entry: tuple[Hashable, T] | None = self._kept.get(make)
        if entry is None or entry[0] != version:
            entry = self._kept[make] = (version, make(source))
        return entry[1]

    def find(self, key: StateKey[T]) -> T | None:
        """The value of a key; None if nothing was kept under it."""
        return self._kept.get(key)

    def keep(self, key: StateKey[T], value: T | None) -> None:
        """Keep something for all equivalent pods; None to forget it."""
        self._kept[key] = value

    def terms_of(self, kind: TermKind) -> tuple[Term, ...]:
        return self._terms_by_kind[kind]


_NOT_SHARED = ("__weakref__", "_kept", "_without_node_names", "fingerprint")
_SHARED = tuple(name for name in PodFacts.__slots__ if name not in _NOT_SHARED)
"""Attributes that are the same for pods which differ only in the nodes that they must go to."""


class FactsOf:
    """Finds or makes the facts of a pod."""

    def __init__(self, nodes: ResourceColumns, features: Features) -> None:
        self._nodes = nodes
        self._features = features
        self._by_fingerprint: weakref.WeakValueDictionary[bytes, PodFacts] = weakref.WeakValueDictionary()
        self._encode = msgspec.json.Encoder().encode
        self._held: dict[int, tuple[Pod, PodFacts]] = {}

    def hold(self, pod: Pod, facts: PodFacts) -> None:
        """Keep the facts of this record of a pod, which has no node and will be asked about often."""
        self._held[id(pod)] = (pod, facts)

    def release(self, pod: Pod) -> None:
        self._held.pop(id(pod), None)

    def __call__(self, pod: Pod, *, keep_node_name: bool = False) -> PodFacts:
        """The facts of a pod, without the node that it is on; with `keep_node_name`, to decide it, that counts, too."""
        entry = self._held.get(id(pod))
        if entry is not None:
            return entry[1]
        meta, spec, status = pod.metadata, pod.spec, pod.status
        if spec.node_name and not keep_node_name:
            spec = replace(spec, node_name="")
        owner = meta.controller if meta.owner_references else None
        fingerprint = self._encode((meta.namespace, meta.labels, owner, spec, resize_in(status)))
        facts = self._by_fingerprint.get(fingerprint)
        if facts is None:
            if (unbound := _without_node_affinity(spec)) is not None:
                parts = ("without node names", meta.namespace, meta.labels, owner, unbound, resize_in(status))
                facts = self._make_facts(pod, self._encode(parts)).with_node_names(fingerprint)
            else:
                facts = self._make_facts(pod, fingerprint)
            self._by_fingerprint[fingerprint] = facts
        return facts

    def _make_facts(self, pod: Pod, fingerprint: bytes) -> PodFacts:
        facts = self._by_fingerprint.get(fingerprint)
        if facts is None:
            facts = self._by_fingerprint[fingerprint] = PodFacts(pod, fingerprint, self._nodes, self._features)
        return facts


def without_claim_names(spec: PodSpec) -> PodSpec:
    """The spec without the names of claims: the same for pods that differ only in these, as those of a StatefulSet."""
    if not any(volume.persistent_volume_claim for volume in spec.volumes):
        return spec
    return replace(spec, volumes=tuple(replace(volume, persistent_volume_claim=None) for volume in spec.volumes))


def _without_node_affinity(spec: PodSpec) -> PodSpec | None:
    """The spec without required node affinity, if that names nodes, as that of a DaemonSet's pods does; else None."""
    affinity = spec.affinity
    if affinity is None or affinity.node_affinity is None:
        return None
    required = affinity.node_affinity.required_during_scheduling_ignored_during_execution
    if required is None or not required.node_selector_terms or not required.node_selector_terms[0].match_fields:
        return None
    preferred = replace(affinity.node_affinity, required_during_scheduling_ignored_during_execution=None)
    return replace(spec, affinity=replace(affinity, node_affinity=preferred))


def resize_in(status: PodStatus) -> Any:
    """What the status says about resources, if anything."""
    if not status.container_statuses and not status.init_container_statuses and status.resources is None:
        return None
    containers = (*status.container_statuses, *status.init_container_statuses)
    if status.resources is None and all(container.resources is None for container in containers):
        return None
    return containers, status.resources, status.allocated_resources, status.conditions


def claim_names(pod: Pod) -> list[str]:
    """The claims that a pod names as volumes (those of ephemeral volumes are not named, but made for it)."""
    volumes = pod.spec.volumes
    return [
        volume.persistent_volume_claim.claim_name for volume in volumes if volume.persistent_volume_claim is not None
    ]


def affinity_terms(pod: Pod) -> list[Term]:
    """All terms of a pod, in the order of their kinds."""
    affinity = pod.spec.affinity
    if affinity is None:
        return []
    return _terms_of(pod, affinity.pod_affinity, "required-affinity", "preferred-affinity") + _terms_of(
        pod, affinity.pod_anti_affinity, "required-anti-affinity", "preferred-anti-affinity"
    )


def _terms_of(pod: Pod, affinity: PodAffinity | None, required: TermKind, preferred: TermKind) -> list[Term]:
    if affinity is None:
        return []
    hard = affinity.required_during_scheduling_ignored_during_execution
    soft = affinity.preferred_during_scheduling_ignored_during_execution
    return [_term(pod, term, required, 0) for term in hard] + [
        _term(pod, weighted.pod_affinity_term, preferred, weighted.weight) for weighted in soft
    ]


def _term(pod: Pod, term: PodAffinityTerm, kind: TermKind, weight: int) -> Term:
    is_own_namespace = not term.namespaces and term.namespace_selector is None
    return Term(
        kind=kind,
        topology_key=term.topology_key,
        selector=compile_selector(term.label_selector),
        namespaces=frozenset((pod.namespace,)) if is_own_namespace else frozenset(term.namespaces),
        namespace_selector=compile_selector(term.namespace_selector) if term.namespace_selector else NOTHING,
        weight=weight,
    )


def _host_ports(pod: Pod) -> list[HostPort]:
    """Ports of containers that keep running; plain init containers are gone before they could clash."""
    running = [*pod.spec.containers, *filter(is_sidecar, pod.spec.init_containers)]
    return [
        HostPort(port.host_ip or "0.0.0.0", port.protocol or "TCP", port.host_port)
        for container in running
        for port in container.ports
        if port.host_port > 0
    ]


def _amounts(real: Quantities, with_defaults: Quantities) -> Iterator[tuple[str, int, int]]:
    for name, scoring in with_defaults.items():
        if is_countable(name):
            yield name, whole(name, real[name]) if name in real else 0, whole(name, scoring)
