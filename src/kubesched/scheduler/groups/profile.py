"""The plugins of a profile that have a say about groups: where they go, which placement is best, how to make room."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from kubesched.api.pod import Pod
from kubesched.api.pod_groups import PodGroup
from kubesched.framework.engine import Engine
from kubesched.framework.groups import (
    GroupPostFilterResult,
    Placement,
    PlacementFeasiblePlugin,
    PlacementGeneratePlugin,
    PodGroupPostFilterPlugin,
)
from kubesched.framework.plugin import PostFilterPlugin
from kubesched.framework.profile import Profile
from kubesched.framework.status import Code, Status, error, unschedulable
from kubesched.scheduler.attempt.scheduling_cycle import SchedulingCycle
from kubesched.scheduler.groups import messages
from kubesched.scheduler.groups.placing import GroupPlacer, Member, Placed


class GroupProfile:
    """One profile at work on groups."""

    def __init__(
        self, profile: Profile, engine: Engine, cycle: SchedulingCycle, find: Callable[[str], Pod | None]
    ) -> None:
        feasibility = [plugin for plugin in profile.plugins.values() if isinstance(plugin, PlacementFeasiblePlugin)]
        self.placer = GroupPlacer(engine, cycle, feasibility, find)
        self.state = engine.state
        self._draw = engine.draw
        generators = profile.at("placement_generate", PlacementGeneratePlugin)
        self._generator = generators[0] if generators else None
        self._scores = profile.placement_scores
        self._post_filters = [
            plugin
            for plugin in profile.at("post_filter", PostFilterPlugin)
            if isinstance(plugin, PodGroupPostFilterPlugin)
        ]

    def place(self, group: PodGroup, members: Sequence[Member]) -> Placed:
        """Assume the pods of a group where they go best as a whole. If the group is feasible nowhere, none is."""
        if self._generator is None:
            return self.placer.place(group, members)
        generated = self._generator.placements(group, self.state)
        if isinstance(generated, Status):
            return Placed(None, generated)
        placements = [self._without_needless_bounds(placement) for placement in generated]
        if len(placements) == 1:
            placed = self.placer.place(group, members, placements[0])
            return self._rejected(group, [placed]) or placed
        return self._best(group, members, placements)

    def _best(self, group: PodGroup, members: Sequence[Member], placements: Sequence[Placement]) -> Placed:
        """Try all placements, then take the best of those where the group is feasible."""
        tried = []
        for placement in placements:
            placed = self.placer.place(group, members, placement)
            self.placer.undo(placed)
            if placed.status is not None and not placed.status.is_rejection:
                return placed
            tried.append(placed)
        feasible = [placed for placed in tried if placed.status is None]
        if not feasible:
            rejected = self._rejected(group, tried)
            assert rejected is not None
            return rejected
        best = feasible[0] if len(feasible) == 1 else self._choose(group, feasible)
        self.placer.redo(best)
        return best

    def _choose(self, group: PodGroup, feasible: list[Placed]) -> Placed:
        totals = [0] * len(feasible)
        proposals = [placed.proposal(self.state) for placed in feasible]
        for plugin, weight in self._scores:
            scores = [plugin.score_placement(group, proposal, self.state) for proposal in proposals]
            for i, score in enumerate(plugin.normalize_placements(scores)):
                totals[i] += weight * score
        best = [placed for placed, total in zip(feasible, totals, strict=True) if total == max(totals)]
        return best[self._draw(len(best)) if len(best) > 1 else 0]

    def _rejected(self, group: PodGroup, tried: list[Placed]) -> Placed | None:
        """The outcome if the group is feasible nowhere: its pods are told what was wrong in the first placement."""
        first = tried[0]
        if first.status is None or not first.status.is_rejection:
            return None
        first.status = messages.no_placement(group, len(tried), first.status)
        return first

    def _without_needless_bounds(self, placement: Placement) -> Placement:
        """A placement that has all nodes restricts nothing."""
        live = self.state.nodes.live[: self.state.nodes.size]
        return placement if (live & ~placement.nodes).any() else Placement(placement.name, placement.nodes, is_all=True)

    def still_feasible(self, group: PodGroup, placed: Placed) -> Status | None:
        """What is wrong with the group without the pods that were refused."""
        return self.placer.without_refused(group, placed)

    def post_filter(
        self, group: PodGroup, members: Sequence[Member]
    ) -> tuple[GroupPostFilterResult | None, Status | None]:
        """Ask the plugins, one after another, whether room can be made for all of the group."""
        pods = [member.pod for member in members]
        reasons: list[str] = []
        for plugin in self._post_filters:
            result, status = plugin.pod_group_post_filter(group, pods, self.state, _WhatIf(self, group, members))
            if status is None:
                return result, None
            if status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
                return None, unschedulable(*reasons, *status.reasons)
            if not status.is_rejection:
                said = f'error in "{plugin.name}" PodGroupPostFilter plugins: {status.message}'
                return None, error(said)
            reasons += status.reasons
        return None, unschedulable(*reasons)


class _WhatIf:
    """The group, for plugins that make room for it."""

    def __init__(self, profile: GroupProfile, group: PodGroup, members: Sequence[Member]) -> None:
        self._profile = profile
        self._group = group
        self._members = members
        self._placed = Placed(None)

    @property
    def assignments(self) -> Sequence[tuple[Pod, int]]:
        return self._placed.proposal(self._profile.state).assignments

    def place(self) -> Status | None:
        self._placed = self._profile.place(self._group, self._members)
        return self._placed.status

    def resettle(self, rows: Collection[int] | None) -> bool:
        answers = {member.pod.identity: member.answers for member in self._members}
        return self._profile.placer.resettle(self._placed, rows, answers)

    def leave(self) -> None:
        self._profile.placer.undo(self._placed)
