"""Explains a pod group: how many of its pods fit in each placement, what the next one lacks, what would help."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace

from kubesched.api.change import Change
from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.api.pod_groups import PodGroup, group_key
from kubesched.api.requests import amount_text, requested_amount
from kubesched.api.well_known import ZONE
from kubesched.ask.explain.explanation import decide
from kubesched.ask.trial import changed
from kubesched.framework.advice import MissingResource
from kubesched.framework.decision import Outcome
from kubesched.framework.decision_view import NearMiss
from kubesched.framework.groups import CandidatePlacement, PlacementGeneratePlugin, group_of
from kubesched.framework.status import Status
from kubesched.scheduler.attempt.scheduling_cycle import Reserving
from kubesched.scheduler.groups import messages
from kubesched.scheduler.groups.placing import GroupPlacer, Member, PlacingResult
from kubesched.scheduler.groups.profile import GroupProfile
from kubesched.simulate.cluster import ClusterModel
from kubesched.simulate.nodes import NodePool, one_more, pools_of

MOST_PLACEMENTS = 30
MOST_POOLS = 6
MOST_NEW_NODES = 64


@dataclass(frozen=True, slots=True)
class GroupPlacement:
    """A part of the cluster in which all pods of the group would have to be."""

    name: str
    """The value of the group's topology label; empty if the group may go anywhere."""
    nodes: int
    fits: int
    """How many of the pods that wait find a node there, each with the earlier ones in place."""
    first_without: str
    """The first pod that finds none; empty if all do."""
    why: str
    """What that pod lacks on its nearest miss."""
    lacking: tuple[MissingResource, ...] = ()
    """Resources of which all nodes of the placement together have too little for the pods that the group needs."""


@dataclass(frozen=True, slots=True)
class PodGroupPoolHelp:
    """The fewest new nodes of a pool with which the group is scheduled."""

    pool: str
    zones: tuple[str, ...]
    """Where they would have to be; empty if that does not matter."""
    nodes: int


@dataclass(frozen=True, slots=True)
class GroupExplanation:
    """What becomes of a group if it is tried now."""

    group: str
    outcome: str
    message: str
    """Why it is not scheduled."""
    needed: int
    """`minCount` of a gang: with fewer pods on nodes, none of them runs."""
    running: int
    """Pods of it that have nodes already."""
    waiting: int
    topology_key: str
    placements: tuple[GroupPlacement, ...]
    """The one with most pods first."""
    not_shown: int
    """Placements that were left out, because there are very many."""
    would_evict: tuple[str, ...]
    """Pods that the scheduler evicts to make room for the group."""
    pools: tuple[PodGroupPoolHelp, ...]


def explain_group(cluster: ClusterModel, pod: Pod, *, with_remedies: bool = True) -> GroupExplanation | None:
    """The group of a pod; None if it has none, or none that waits. The cluster is the same afterwards."""
    group = group_of(pod, cluster.state) if cluster.state.features.pod_groups else None
    if group is None:
        return None
    waiting = [other for other in cluster.pending() if group_key(other) == group.key and not other.is_terminating]
    return _Group(cluster, group, waiting).explanation(with_remedies=with_remedies) if waiting else None


class _Group:
    def __init__(self, cluster: ClusterModel, group: PodGroup, pods: Sequence[Pod]) -> None:
        self._cluster = cluster
        self._state = cluster.state
        self._group = group
        self._pods = pods
        reserving = Reserving(cluster.state, cluster.profiles)
        profile = cluster.profiles[pods[0].spec.scheduler_name]
        self._profile = GroupProfile(profile, cluster.engine, reserving, cluster.pods.get)
        self._placer = GroupPlacer(cluster.engine, reserving, (), cluster.pods.get)
        self._generators = profile.at("placement_generate", PlacementGeneratePlugin)

    def explanation(self, *, with_remedies: bool) -> GroupExplanation:
        outcome, message, victims = self._outcome()
        candidates = self._placements()
        shown = () if isinstance(candidates, Status) else candidates[:MOST_PLACEMENTS]
        placements = sorted(map(self._try_placement, shown), key=lambda placement: -placement.fits)
        asked = with_remedies and outcome == Outcome.UNSCHEDULABLE.value
        return GroupExplanation(
            self._group.key,
            outcome,
            message,
            self._group.min_count,
            len(self._state.groups.placed(self._group.key)),
            len(self._pods),
            self._group.topology_key,
            tuple(placements),
            0 if isinstance(candidates, Status) else len(candidates) - len(shown),
            victims,
            tuple(self._helping_pools()) if asked else (),
        )

    def _outcome(self) -> tuple[str, str, tuple[str, ...]]:
        """The outcome for the group, its message, and the victims of group preemption."""
        for pod in self._pods:
            gate = self._cluster.engine.pre_enqueue(pod)
            if gate is not None:
                return Outcome.GATED.value, gate.message, ()
        placed = self._state.groups.placed(self._group.key)
        mistake = messages.mistake_in(self._group, list(self._pods), placed, self._state.features)
        tried = PlacingResult(None, mistake) if mistake is not None else self._try_group()
        status = tried.status
        if status is None:
            return Outcome.SCHEDULED.value, "", ()
        if not status.is_rejection:
            return Outcome.ERROR.value, status.message, ()
        room, answer = self._profile.post_filter(self._group, self._members(), tried)
        if room is None or room.room is None:
            if answer is not None and answer.message:
                status = messages.with_post_filter(self._group, status, answer.message, helped=False)
            return Outcome.UNSCHEDULABLE.value, status.message, ()
        return Outcome.UNSCHEDULABLE.value, status.message, tuple(victim.pod.key for victim in room.room.victims)

    def _members(self) -> list[Member]:
        return [Member(pod) for pod in self._pods]

    def _try_group(self) -> PlacingResult:
        """The decision for the whole group; the cluster is the same afterwards."""
        placed = self._profile.place(self._group, self._members())
        self._profile.placer.undo(placed)
        return placed

    # -- placement by placement ---------------------------------------------------------------------------------------

    def _placements(self) -> Sequence[CandidatePlacement] | Status:
        if self._generators:
            return self._generators[0].placements(self._group, self._state)
        return (CandidatePlacement("", self._state.nodes.live[: self._state.nodes.size].copy(), is_all=True),)

    def _try_placement(self, placement: CandidatePlacement) -> GroupPlacement:
        placed = self._placer.place(self._group, self._members(), placement)
        fitting = {decision.pod.identity for decision in placed.fitting}
        without = [pod for pod in self._pods if pod.identity not in fitting]
        why, lacking = self._why_not(without, placement) if without else ("", ())
        self._placer.undo(placed)
        first = without[0].key if without else ""
        return GroupPlacement(placement.name, len(placement.rows), len(fitting), first, why, lacking)

    def _why_not(self, pods: Sequence[Pod], placement: CandidatePlacement) -> tuple[str, tuple[MissingResource, ...]]:
        """Why the first of these pods finds no node beside the placed members; and what all of them lack together."""
        view, _ = decide(self._cluster, replace(pods[0], spec=replace(pods[0].spec, preemption_policy="Never")))
        within = np.zeros(len(view.live), dtype=np.bool_)
        within[placement.rows] = True
        misses = view.near_misses(1, within)
        if not misses:
            return view.decision.message, ()
        missing = self._group.min_count - len(self._state.groups.placed(self._group.key))
        return f"{misses[0].node} {misses[0].text}", tuple(self._missing(pods[: max(missing, 1)], misses[0], placement))

    def _missing(self, pods: Sequence[Pod], miss: NearMiss, placement: CandidatePlacement) -> Iterator[MissingResource]:
        """By resource: what these pods ask for beyond what is free on all nodes of the placement together."""
        table, pod_level = self._state.nodes, self._state.features.pod_level_resources
        for lacking in miss.lacking:
            column = table.resources.get(lacking.resource)
            if column is None:
                continue
            free = table.allocatable[column, placement.rows] - table.requested[column, placement.rows]
            requested = sum(requested_amount(pod, lacking.resource, pod_level=pod_level) for pod in pods)
            if requested > (available := int(free.clip(min=0).sum())):
                yield MissingResource(lacking.resource, amount_text(lacking.resource, requested - available))

    # -- how many nodes -----------------------------------------------------------------------------------------------

    def _helping_pools(self) -> list[PodGroupPoolHelp]:
        helps = [help_ for pool in pools_of(self._state)[:MOST_POOLS] if (help_ := self._help(pool)) is not None]
        return sorted(helps, key=lambda help_: help_.nodes)

    def _help(self, pool: NodePool) -> PodGroupPoolHelp | None:
        """New nodes in one zone: a group may have to stay within it."""
        counts = [(model, nodes) for model in pool.models if (nodes := self._fewest(model))]
        if not counts:
            return None
        fewest = min(nodes for _, nodes in counts)
        best = [model for model, nodes in counts if nodes == fewest]
        zones = dict.fromkeys(model.metadata.labels.get(ZONE, "") for model in best)
        return PodGroupPoolHelp(pool.name, tuple(filter(None, zones)) if len(best) < len(pool.models) else (), fewest)

    def _fewest(self, model: Node) -> int:
        """How many nodes like this one are enough; 0 if no number is."""
        most = min(len(self._pods), MOST_NEW_NODES)
        if not self._is_scheduled_with(model, most):
            return 0
        return 1 + bisect_left(range(1, most), True, key=lambda nodes: self._is_scheduled_with(model, nodes))

    def _is_scheduled_with(self, model: Node, nodes: int) -> bool:
        objects = (obj for number in range(1, nodes + 1) for obj in one_more(self._state, model, number))
        with changed(self._cluster, [Change(None, obj) for obj in objects]):
            return self._try_group().status is None
