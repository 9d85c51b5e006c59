"""The cluster state, which is kube-scheduler's cache and snapshot in one, and the few ways in which it changes.

There is no copy of it. Nothing else runs while the engine decides a pod, so the cache is the snapshot.

    pending ── assume ──► assumed ── confirm (the watch shows it bound) ──► placed ── remove ──► gone
       ▲                     │
       └────── forget ───────┘

An assumed pod never expires by time: it is confirmed, forgotten on failure, or removed when it is deleted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from kubesched.api.devices import DeviceClass
from kubesched.api.meta import KubeObject
from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.api.workloads import Namespace
from kubesched.config.features import DEFAULT_FEATURES, Features
from kubesched.state.absence import Absence
from kubesched.state.facts import FactsOf, PodFacts
from kubesched.state.group_members import GroupMembers
from kubesched.state.matching import MatchCounts
from kubesched.state.nodes import NodeTable
from kubesched.state.nominated import Nominator
from kubesched.state.objects import ObjectStore
from kubesched.state.pods import PlacedPod, PodTable

T = TypeVar("T")


class ClusterState:
    """Nodes, placed pods, match counts and all other objects. There is one writer: the scheduler."""

    def __init__(self, features: Features = DEFAULT_FEATURES) -> None:
        self.features = features
        self.nodes = NodeTable()
        self.pods = PodTable(self.nodes)
        self.matches = MatchCounts(self.pods)
        self.objects = ObjectStore()
        self.nominated = Nominator()
        self.groups = GroupMembers()
        """The pods of pod groups; empty unless there are such groups."""
        self._has_groups = features.pod_groups
        self.facts = FactsOf(self.nodes, features)
        self.followers: list[Callable[[], None]] = []
        """The engine calls them before each attempt: they record rows whose state outside of nodes and pods changed."""
        self._placed: dict[str, PlacedPod] = {}
        self._requesting: dict[str, dict[str, PlacedPod]] = {}
        """Placed pods by the name of each resource that they request, but for those that always have a column."""
        self._companions: dict[Any, Any] = {}
        self._reservations = 0
        self.matches.extend(len(self.nodes.live))

    @property
    def version(self) -> tuple[int, ...]:
        """Changes whenever anything changes that a decision may depend on, except pod groups."""
        return (
            self.nodes.changes.position,
            self.objects.version_of_all,
            self.nominated.changes.position,
            self._reservations,
        )

    # -- changes that the watch shows ---------------------------------------------------------------------------------

    def apply(self, obj: KubeObject) -> None:
        """An object appeared or changed."""
        match obj:
            case Node():
                self.nodes.set_node(obj)
                self._follow_growth()
                self._follow_resources()
            case Pod():
                self._observe(obj)
            case _:
                self.objects.put(obj)
                self._follow_device_classes(obj)

    def delete(self, obj: KubeObject) -> None:
        """An object is gone."""
        match obj:
            case Node():
                self.nodes.remove_node(obj.name)
            case Pod():
                self.nominated.remove(obj)
                self._remove(obj.identity)
            case _:
                self.objects.remove(obj)
                self._follow_device_classes(obj)

    # -- changes by the scheduler -------------------------------------------------------------------------------------

    def assume(self, pod: Pod, node_name: str, facts: PodFacts | None = None) -> Pod:
        """Count the pod on the node before it is bound there. Returns the pod with its node.

        A caller that has the facts of the pod passes them, which saves looking for them.
        """
        if pod.identity in self._placed:
            raise ValueError(f"pod {pod.key} is placed already")
        facts = facts or self.facts(pod)
        self.nominated.remove(pod)
        placed = msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=node_name))
        self._place(PlacedPod(placed, facts, self._row(node_name), assumed=True))
        return placed

    def forget(self, pod: Pod) -> None:
        """Undo `assume`: the pod is pending again, and nominated again if its status names a node."""
        placed = self._placed.get(pod.identity)
        if placed is not None and placed.assumed:
            self._remove(pod.identity)
            if self._has_groups:
                self.groups.seen(pod)
            if pod.status.nominated_node_name:
                self.nominated.add(pod, pod.status.nominated_node_name)

    def placed(self, pod: Pod) -> PlacedPod | None:
        """The pod on its row; None if it is on no node."""
        return self._placed.get(pod.identity)

    def absence(self) -> Absence:
        """A context for what-ifs in which pods leave many nodes at once."""
        return Absence(self.pods, lambda placed: self._remove(placed.pod.identity), self._place)

    def namespace_labels(self, namespace: str) -> dict[str, str]:
        """The labels of a namespace; none if it is unknown."""
        record = self.objects.get(Namespace, namespace)
        return record.metadata.labels if record else {}

    def give_columns(self, facts: PodFacts) -> None:
        """Give columns to the extended resources that a pod requests and nodes offer, before the pod is decided."""
        self.nodes.give_columns(facts.extended)
        self._follow_resources()

    def note_reservation(self) -> None:
        """A plugin reserved something for a pod in a companion, or gave it back: decisions may depend on it."""
        self._reservations += 1

    def companion(self, make: Callable[[ClusterState], T]) -> T:
        """The object that plugins of all profiles share about this cluster; `make` makes it once."""
        companion: T | None = self._companions.get(make)
        if companion is None:
            companion = self._companions[make] = make(self)
        return companion

    # -- bookkeeping --------------------------------------------------------------------------------------------------

    def _observe(self, pod: Pod) -> None:
        identity = pod.identity
        if pod.is_finished or pod.spec.node_name:
            self.nominated.remove(pod)
        if pod.is_finished or not pod.spec.node_name:
            placed = self._placed.get(identity)
            if placed is not None and (pod.is_finished or not placed.assumed):
                self._remove(identity)
            return
        placed = self._placed.get(identity)
        if placed is not None and placed.pod == pod:
            placed.assumed = False
            return
        facts, node_name = self.facts(pod), pod.spec.node_name
        if placed is not None:
            before = placed.pod
            if (
                (placed.facts is facts or placed.facts.load == facts.load)
                and before.spec.node_name == node_name
                and before.is_terminating == pod.is_terminating
                and before.spec.volumes == pod.spec.volumes
            ):
                # The usual case, a binding confirmed. An API server labels the pod with the zone of its node then.
                if placed.facts is not facts:
                    self._relabel(placed, facts)
                self.pods.renew(placed, pod)
                self.nodes.pods_changed(placed.row)
                return
            self._remove(identity)
        self._place(PlacedPod(pod, facts, self._row(node_name), assumed=False))

    def _relabel(self, placed: PlacedPod, facts: PodFacts) -> None:
        """Count a placed pod with its new labels, then uncount the old: terms in both always have a carrier."""
        before = PlacedPod(placed.pod, placed.facts, placed.row, assumed=False)
        placed.facts = facts
        self.matches.add(placed)
        self.matches.remove(before)

    def _row(self, node_name: str) -> int:
        row = self.nodes.row_of.get(node_name)
        if row is None:
            row = self.nodes.ensure_row(node_name)
            self._follow_growth()
        return row

    def _place(self, placed: PlacedPod) -> None:
        identity = placed.pod.identity
        self._placed[identity] = placed
        if self._has_groups:
            self.groups.place(placed.pod)
        for name in placed.facts.extended:
            self._requesting.setdefault(name, {})[identity] = placed
        self.pods.add(placed)
        self.matches.add(placed)
        self._count(placed, 1)

    def _remove(self, identity: str) -> None:
        placed = self._placed.pop(identity, None)
        if placed is None:
            return
        if self._has_groups:
            self.groups.remove(placed.pod)
        for name in placed.facts.extended:
            pods = self._requesting[name]
            del pods[identity]
            if not pods:
                del self._requesting[name]
        self.matches.remove(placed)
        self.pods.remove(placed)
        self._count(placed, -1)
        self.nodes.release_row_if_unused(placed.row)

    def _count(self, placed: PlacedPod, sign: int) -> None:
        nodes, facts, row = self.nodes, placed.facts, placed.row
        change = facts.loads
        loads = nodes.loads[:, : change.shape[1], row]  # a view: `nodes.loads[...] += ...` would write the sum twice
        if sign > 0:
            loads += change
        else:
            loads -= change
        nodes.pod_count[row] += sign
        nodes.load_changed(row)

    def _follow_device_classes(self, obj: KubeObject) -> None:
        """Device classes serve extended resources, which nodes need not offer themselves then."""
        if isinstance(obj, DeviceClass):
            self.nodes.all_changed()

    def _follow_resources(self) -> None:
        """Count what placed pods request of resources that have just got a column."""
        nodes = self.nodes
        for resource, column in nodes.take_fresh_resources().items():
            for placed in self._requesting.get(resource, {}).values():
                for name, amount, scoring in placed.facts.amounts:
                    if name == resource:
                        nodes.requested[column, placed.row] += amount
                        nodes.scoring_requested[column, placed.row] += scoring

    def _follow_growth(self) -> None:
        length = len(self.nodes.live)
        if length != self.matches.length:
            self.matches.extend(length)
