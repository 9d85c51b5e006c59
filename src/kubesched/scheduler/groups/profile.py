"""The plugins of a profile for groups: which placements there are, which is best, and how to make room."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import numpy as np

from kubesched.api.pod import Pod
from kubesched.api.pod_groups import PodGroup
from kubesched.framework.engine import Engine
from kubesched.framework.extender import AnswersMissingError
from kubesched.framework.groups import (
    CandidatePlacement,
    GroupPostFilterResult,
    GroupProgress,
    PlacementFeasiblePlugin,
    PlacementGeneratePlugin,
    PodGroupPostFilterPlugin,
    Proposal,
)
from kubesched.framework.plugin import PostFilterPlugin
from kubesched.framework.profile import Profile
from kubesched.framework.status import Code, Status, error, unschedulable
from kubesched.scheduler.attempt.scheduling_cycle import Reserving
from kubesched.scheduler.groups import messages
from kubesched.scheduler.groups.placing import GroupPlacer, Member, PlacingResult, raise_missing


class GroupProfile:
    """One profile at work on groups."""

    def __init__(
        self, profile: Profile, engine: Engine, reserving: Reserving, find: Callable[[str], Pod | None]
    ) -> None:
        feasibility = [plugin for plugin in profile.plugins.values() if isinstance(plugin, PlacementFeasiblePlugin)]
        self.placer = GroupPlacer(engine, reserving, feasibility, find)
        self.state = engine.state
        self._draw = engine.draw
        self._copy_room = engine.copy_room
        generators = profile.at("placement_generate", PlacementGeneratePlugin)
        self._generator = generators[0] if generators else None
        self._scores = profile.placement_scores
        self._post_filters: Sequence[PodGroupPostFilterPlugin] = profile.at(
            "pod_group_post_filter", PodGroupPostFilterPlugin
        )
        if not self.state.features.release.group_post_filter:
            self._post_filters = [
                plugin
                for plugin in profile.at("post_filter", PostFilterPlugin)
                if isinstance(plugin, PodGroupPostFilterPlugin)
            ]

    def place(self, group: PodGroup, members: Sequence[Member]) -> PlacingResult:
        """Assume the pods of a group in the best placement; none if the group is feasible in no placement."""
        if self._generator is None:
            return self.placer.place(group, members)
        generated = self._generator.placements(group, self.state)
        if isinstance(generated, Status):
            return PlacingResult(None, generated)
        if len(generated) == 1:
            placing = self.placer.place(group, members, self._without_needless_bounds(generated[0]))
            return self._reject_if_infeasible(group, placing, 1) or placing
        return self._place_by_estimate(group, members, generated) or self._try_all(group, members, generated)

    def _place_by_estimate(
        self, group: PodGroup, members: Sequence[Member], placements: Sequence[CandidatePlacement]
    ) -> PlacingResult | None:
        """The best placement without trying the others, or None if they must be tried.

        Where all pods are equivalent, and `copy_room` counts how many fit on each node, it is known beforehand how many
        would run in a placement, and nothing else counts.
        """
        facts = members[0].pod_facts(self.state)
        if any(member.answers is not None or member.pod_facts(self.state) is not facts for member in members):
            return None
        copies = self._copy_room(members[0].pod)
        if copies is None or copies.limits:
            return None
        room = copies.rows
        before = len(self.state.groups.placed(group.key))
        feasible = []
        for placement in placements:
            count = min(len(members), int(np.minimum(room[placement.rows], len(members)).sum()))
            if count and self.placer.feasible(group, GroupProgress(before + count, 0)) is None:
                feasible.append(Proposal(placement, ((facts, count),)))
        if not feasible:
            return self._reject_if_infeasible(group, self.placer.place(group, members, placements[0]), len(placements))
        best = feasible[0] if len(feasible) == 1 else feasible[self._choose(group, feasible)]
        placing = self.placer.place(group, members, best.placement)
        if placing.status is None and len(placing.standing) == best.count:
            return placing
        self.placer.undo(placing)  # a Reserve plugin refused a pod
        return None

    def _try_all(
        self, group: PodGroup, members: Sequence[Member], placements: Sequence[CandidatePlacement]
    ) -> PlacingResult:
        """Try all placements, then take the best of those where the group is feasible."""
        tried = []
        missing: list[AnswersMissingError] = []
        for placement in placements:
            try:
                placing = self.placer.place(group, members, placement)
            except AnswersMissingError as questions:
                missing.append(questions)
                continue
            self.placer.undo(placing)
            if placing.status is not None and not placing.status.is_rejection:
                return placing
            tried.append(placing)
        raise_missing(missing)
        feasible = [placing for placing in tried if placing.status is None]
        if not feasible:
            rejected = self._reject_if_infeasible(group, tried[0], len(tried))
            assert rejected is not None
            return rejected
        best = feasible[0]
        if len(feasible) > 1:
            best = feasible[self._choose(group, [placing.proposal for placing in feasible])]
        self.placer.redo(best)
        return best

    def _choose(self, group: PodGroup, proposals: list[Proposal]) -> int:
        """The index of the best proposal; drawn among equals."""
        totals = [0] * len(proposals)
        for plugin, weight in self._scores:
            scores = [plugin.score_placement(group, proposal, self.state) for proposal in proposals]
            for i, score in enumerate(plugin.normalize_placements(scores)):
                totals[i] += weight * score
        highest = max(totals)
        best = [i for i, total in enumerate(totals) if total == highest]
        return best[self._draw(len(best)) if len(best) > 1 else 0]

    def _reject_if_infeasible(self, group: PodGroup, first: PlacingResult, tried: int) -> PlacingResult | None:
        """The outcome of a group that is feasible in no placement: its message is about the first one."""
        if first.status is None or not first.status.is_rejection:
            return None
        first.status = messages.no_placement(group, tried, first.status)
        return first

    def _without_needless_bounds(self, placement: CandidatePlacement) -> CandidatePlacement:
        """A placement that has all nodes restricts nothing."""
        live = self.state.nodes.live[: self.state.nodes.size]
        return (
            placement
            if (live & ~placement.nodes).any()
            else CandidatePlacement(placement.name, placement.nodes, is_all=True)
        )

    def post_filter(
        self, group: PodGroup, members: Sequence[Member], placing: PlacingResult
    ) -> tuple[GroupPostFilterResult | None, Status | None]:
        """Ask the plugins, one after another, whether room can be made for the whole group, which is not feasible."""
        pods = [member.pod for member in members]
        what_if = _WhatIf(self, group, members, placing)
        reasons: list[str] = []
        for plugin in self._post_filters:
            result, status = plugin.pod_group_post_filter(group, pods, self.state, what_if)
            if status is None:
                return result, None
            if status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
                return None, unschedulable(*reasons, *status.reasons)
            if not status.is_rejection:
                text = f'error in "{plugin.name}" PodGroupPostFilter plugins: {status.message}'
                return None, error(text)
            reasons += status.reasons
        return None, unschedulable(*reasons)


class _WhatIf:
    """The group, for plugins that make room for it."""

    def __init__(
        self, profile: GroupProfile, group: PodGroup, members: Sequence[Member], before: PlacingResult
    ) -> None:
        """`before` is the result of placing the group before room is made."""
        decisions = before.decisions.values()
        self.failed = [(decision.cycle, decision.diagnosis) for decision in decisions if decision.diagnosis is not None]
        self._profile = profile
        self._group = group
        self._members = members
        self._placed = PlacingResult(None)

    @property
    def assignments(self) -> Sequence[tuple[Pod, int]]:
        rows = self._profile.state.nodes.row_of
        return [(decision.pod, rows[decision.node]) for decision in self._placed.fitting]

    def place(self) -> Status | None:
        self._placed = self._profile.place(self._group, self._members)
        return self._placed.status

    def resettle(self, rows: Collection[int] | None, come: Callable[[], None], go: Callable[[], None]) -> bool:
        answers = {member.pod.identity: member.answers for member in self._members}
        return self._profile.placer.resettle(self._placed, rows, answers, come, go)

    def leave(self) -> None:
        self._profile.placer.undo(self._placed)
