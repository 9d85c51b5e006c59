"""Pod kinds and node classes: what makes a plan small enough to solve.

Pods are of one kind if they request the same, may go to the same nodes and are as many on one node at most. Nodes are
of one class if they have the same room left and the same kinds may go there. What is left out here (spread, affinity
between pods, devices, volumes that are not bound yet) only ever forbids more, so a bound on kinds and classes holds.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from kubesched.api.pod import Pod
from kubesched.api.requests import PODS
from kubesched.api.well_known import HOSTNAME
from kubesched.framework.cycle import Cycle
from kubesched.framework.errors import Blame
from kubesched.framework.nodes import Nodes
from kubesched.framework.plugin import FilterPlugin, PreFilterPlugin
from kubesched.framework.profile import Profile
from kubesched.framework.reads import Scope, Signature, union_of
from kubesched.framework.status import SKIP, Status
from kubesched.plugins.inter_pod_affinity.plugin import InterPodAffinity
from kubesched.plugins.node_ports import NodePorts
from kubesched.plugins.node_resources.fit import NodeResourcesFit
from kubesched.plugins.shared.devices.extended_resources import is_served
from kubesched.simulate.cluster import ClusterModel
from kubesched.state.cluster import ClusterState
from kubesched.state.columns import Bool, Int64, is_one_of
from kubesched.state.facts import PodFacts

ANY_NUMBER = 1 << 40
"""How many pods of a kind one node may have if nothing but its room limits them."""
_WITHOUT_PODS = (Scope.NOTHING, Scope.CLAIMS, Scope.NODE_OBJECT, Scope.OBJECTS)


@dataclass(frozen=True, eq=False)
class PodKind:
    """Pods that are the same to a plan."""

    pods: tuple[Pod, ...]
    """In the order in which they were given."""
    amounts: tuple[tuple[str, int], ...]
    """What each requests of the resources that nodes must have room for, by name."""
    fits: Bool
    """By row of the node table: no filter that looks at node objects alone rejects it."""
    conflict: Hashable
    """Why no two of them go on one node: the ports or the term that all of them have; None if they may."""
    apart: Hashable
    """What the caller tells kinds apart by that are equal otherwise."""

    @property
    def most_per_node(self) -> int:
        """Leaving room aside."""
        return ANY_NUMBER if self.conflict is None else 1


@dataclass(frozen=True, eq=False)
class NodeClass:
    """Nodes that are the same to a plan."""

    rows: Int64
    """Of the node table."""
    free: Int64
    """What one of these nodes has left, by resource of the problem."""
    fits: Bool
    """By kind."""


@dataclass(frozen=True, eq=False)
class Problem:
    """Kinds of pods, classes of nodes, and the numbers of both as arrays."""

    resources: tuple[str, ...]
    """What is counted; the last one is the number of pods."""
    kinds: tuple[PodKind, ...]
    classes: tuple[NodeClass, ...]

    @cached_property
    def requests(self) -> Int64:
        """By kind and resource."""
        return requests_of(self.kinds, self.resources)

    @cached_property
    def demand(self) -> Int64:
        """How many pods each kind has."""
        return np.array([len(kind.pods) for kind in self.kinds], dtype=np.int64)

    @cached_property
    def free(self) -> Int64:
        """What one node has left, by class and resource."""
        free = [node_class.free for node_class in self.classes]
        return np.array(free, dtype=np.int64).reshape(len(self.classes), len(self.resources))

    @cached_property
    def nodes(self) -> Int64:
        """How many nodes each class has."""
        return np.array([len(node_class.rows) for node_class in self.classes], dtype=np.int64)

    @cached_property
    def most(self) -> Int64:
        """How many pods of a kind alone one node of a class takes, by kind and class; 0 where it may not go."""
        per_node = np.array([kind.most_per_node for kind in self.kinds], dtype=np.int64)
        fits = np.array([node_class.fits for node_class in self.classes]).reshape(len(self.classes), len(self.kinds))
        return np.where(fits.T, np.minimum(per_node[:, None], most_of(self.requests, self.free)), 0)


def requests_of(kinds: Sequence[PodKind], resources: Sequence[str]) -> Int64:
    """What a pod of each kind asks for, by kind and resource, the last of which is the number of pods."""
    index = {name: i for i, name in enumerate(resources)}
    requests = np.zeros((len(kinds), len(resources)), dtype=np.int64)
    for k, kind in enumerate(kinds):
        for name, amount in kind.amounts:
            requests[k, index[name]] = amount
    requests[:, -1] = 1
    return requests


def most_of(requests: Int64, free: Int64) -> Int64:
    """How many times each request fits into each room, by request and room."""
    most = np.full((len(requests), len(free)), ANY_NUMBER, dtype=np.int64)
    for request, room in zip(requests.T, free.T):
        asks = request > 0
        most[asks] = np.minimum(most[asks], np.maximum(room, 0)[None, :] // request[asks, None])
    return most


class _KindKey(NamedTuple):
    """Equal for pods of one kind, unless the caller tells them apart."""

    amounts: tuple[tuple[str, int], ...]
    conflict: Hashable
    fits: bytes


class KindReader:
    """Reads from a cluster what makes pods a kind. For one question: it remembers answers while nothing changes."""

    def __init__(self, cluster: ClusterModel) -> None:
        self.state = cluster.state
        self._profiles = {name: _ProfileReader(profile, cluster.state) for name, profile in cluster.profiles.items()}

    def possible_rows(self, pod: Pod) -> Bool:
        """By row: whether no filter rejects the pod there whatever other pods come and go."""
        return self._profiles[pod.spec.scheduler_name].possible_rows(pod, self.state.facts(pod))

    def kinds_of(self, pods: Iterable[Pod], apart: Callable[[Pod], Hashable] | None = None) -> tuple[PodKind, ...]:
        """The kinds of the pods, in the order of their first ones. Pods of other schedulers are left out."""
        members: dict[tuple[_KindKey, Hashable], list[Pod]] = {}
        for pod in pods:
            profile = self._profiles.get(pod.spec.scheduler_name)
            if profile is not None:
                key = profile.key_of(pod, self.state.facts(pod))
                members.setdefault((key, apart(pod) if apart is not None else ()), []).append(pod)
        return tuple(
            PodKind(tuple(alike), key.amounts, np.frombuffer(key.fits, dtype=np.bool_), key.conflict, apart_by)
            for (key, apart_by), alike in members.items()
        )


class _ProfileReader:
    """What a profile makes of pods, whatever other pods there are."""

    def __init__(self, profile: Profile, state: ClusterState) -> None:
        self._state = state
        filters = profile.at("filter", FilterPlugin)
        pre_filters = profile.at("pre_filter", PreFilterPlugin)
        self._filters = [plugin for plugin in filters if plugin.filter_reads.cluster in _WITHOUT_PODS]
        self._pre_filters = [plugin for plugin in pre_filters if plugin.pre_filter_reads.cluster in _WITHOUT_PODS]
        self._fit = next((plugin for plugin in filters if isinstance(plugin, NodeResourcesFit)), None)
        self._counts_ports = any(isinstance(plugin, NodePorts) for plugin in filters)
        has_affinity = any(isinstance(plugin, InterPodAffinity) for plugin in filters)
        names = state.nodes.label(HOSTNAME).ids[state.nodes.live]
        self._keeps_apart = has_affinity and bool((names >= 0).all())
        """Whether anti-affinity by host name is about single nodes: it says nothing about nodes without the label."""
        read = [*(p.filter_reads.pod for p in self._filters), *(p.pre_filter_reads.pod for p in self._pre_filters)]
        self._sign = Signature(union_of(read)).of
        self._possible: dict[Hashable, Bool] = {}
        self._keys: dict[tuple[PodFacts, Hashable], _KindKey] = {}

    def key_of(self, pod: Pod, facts: PodFacts) -> _KindKey:
        signed = (facts, self._sign(pod, facts))
        key = self._keys.get(signed)
        if key is None:
            amounts = tuple((name, amount) for name, amount, _ in facts.amounts if amount and self._counts(name))
            fits = self.possible_rows(pod, facts).tobytes()
            key = self._keys[signed] = _KindKey(amounts, self._conflict(facts), fits)
        return key

    def possible_rows(self, pod: Pod, facts: PodFacts) -> Bool:
        signed = self._sign(pod, facts)
        possible = self._possible.get(signed)
        if possible is None:
            possible = self._possible[signed] = self._ask(Cycle(pod, self._state))
        return possible

    def _ask(self, cycle: Cycle) -> Bool:
        nodes = self._state.nodes
        possible, skipped = nodes.live[: nodes.size].copy(), set[str]()
        self._state.give_columns(cycle.facts)
        for pre_filter in self._pre_filters:
            with Blame(pre_filter.name):
                answer = pre_filter.pre_filter(cycle)
            if answer is SKIP:
                skipped.add(pre_filter.name)
            elif isinstance(answer, Status):
                return np.zeros_like(possible)
            elif answer is not None:
                rows = [row for name in answer if (row := nodes.row_of.get(name)) is not None]
                possible &= is_one_of(np.arange(nodes.size), rows)
        for plugin in self._filters:
            if plugin.name not in skipped:
                rows_left = np.flatnonzero(possible)
                with Blame(plugin.name):
                    possible[rows_left] = plugin.filter(cycle, Nodes(self._state, rows_left)) == 0
        return possible

    def _counts(self, resource: str) -> bool:
        """Whether a node must have room for it: not if the filter is off, or devices may stand for it."""
        return self._fit is not None and self._fit.enforces(resource) and not is_served(resource, self._state)

    def _conflict(self, facts: PodFacts) -> Hashable:
        """What pods have in common of which any two exclude each other on a node."""
        if self._counts_ports and facts.ports:
            return frozenset(facts.ports)
        for term in facts.terms_of("required-anti-affinity") if self._keeps_apart else ():
            is_own = facts.namespace in term.namespaces and term.selector.matches(facts.labels)
            if term.topology_key == HOSTNAME and is_own:
                return facts.namespace, term
        return None


def problem_of(cluster: ClusterModel, pods: Iterable[Pod], apart: Callable[[Pod], Hashable] | None = None) -> Problem:
    """Where these pods could go, beside what runs."""
    kinds = KindReader(cluster).kinds_of(pods, apart)
    resources = resources_of(kinds)
    free = free_of(cluster, resources)
    return Problem(resources, kinds, classes_of(kinds, free, cluster.state.nodes.live[: len(free)]))


def resources_of(kinds: Iterable[PodKind]) -> tuple[str, ...]:
    """What pods of these kinds ask for; the last one is the number of pods."""
    return (*sorted({name for kind in kinds for name, _ in kind.amounts}), PODS)


def without_node(pod: Pod) -> Pod:
    """The pod as it was before it was placed."""
    return replace(pod, spec=replace(pod.spec, node_name="")) if pod.spec.node_name else pod


def free_of(cluster: ClusterModel, resources: Sequence[str], leaving: Iterable[Pod] = ()) -> Int64:
    """What each row has left of each resource, the last of which is the number of pods, once these pods have left."""
    nodes, state = Nodes(cluster.state), cluster.state
    columns = [nodes.allocatable(name) - nodes.requested(name) for name in resources[:-1]]
    free = np.stack([*columns, nodes.allowed_pods - nodes.pod_count], axis=1)
    for pod in leaving:
        placed = state.placed(pod)
        if placed is not None:
            amounts = {name: amount for name, amount, _ in placed.facts.amounts}
            free[placed.row] += [*(amounts.get(name, 0) for name in resources[:-1]), 1]
    return np.maximum(free, 0)


def classes_of(kinds: Sequence[PodKind], free: Int64, rows: Bool) -> tuple[NodeClass, ...]:
    """The rows by room and by the kinds that may go there, in the order of their first ones."""
    fits = np.array([kind.fits for kind in kinds], dtype=np.bool_).reshape(len(kinds), len(free))
    which = np.flatnonzero(rows)
    if not len(which):
        return ()
    packed = np.packbits(fits[:, which], axis=0).T
    key = np.hstack([np.ascontiguousarray(free[which]).view(np.uint8).reshape(len(which), -1), packed])
    _, first, group = np.unique(key, axis=0, return_index=True, return_inverse=True)
    return tuple(
        NodeClass(which[group == g], free[which[first[g]]], fits[:, which[first[g]]]) for g in np.argsort(first)
    )
