"""Places the pods of a group on the state, one after another, each with the earlier ones there; or undoes all of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from kubesched.api.pod import Pod
from kubesched.api.pod_groups import PodGroup
from kubesched.framework.decision import Decision, Outcome
from kubesched.framework.engine import Engine
from kubesched.framework.extender import AnswersMissingError, ExtenderAnswers
from kubesched.framework.groups import CandidatePlacement, GroupProgress, PlacementFeasiblePlugin, Proposal
from kubesched.framework.status import Code, Status, error, unschedulable
from kubesched.framework.stopwatch import Stopwatch
from kubesched.scheduler.attempt.scheduling_cycle import Reserving
from kubesched.scheduler.groups import messages
from kubesched.state.cluster import ClusterState
from kubesched.state.facts import PodFacts


@dataclass(slots=True, eq=False)
class Member:
    """A pod of the group in this attempt."""

    pod: Pod
    watch: Stopwatch | None = None
    answers: ExtenderAnswers | None = None
    spent: float = 0.0
    """Seconds that deciding on the group has taken in earlier turns."""

    def pod_facts(self, state: ClusterState) -> PodFacts:
        return state.facts(self.pod, keep_node_name=True)


@dataclass(slots=True, eq=False)
class PlacingResult:
    """The outcome of placing a group: a decision for each pod that was tried, and whether the group is feasible."""

    placement: CandidatePlacement | None
    status: Status | None = None
    """None if the group is feasible, and its pods are assumed where their decisions say."""
    decisions: dict[str, Decision] = field(default_factory=dict)
    """By the identity of the pod. Of a pod that fits nowhere it says why."""
    refused: dict[str, Status] = field(default_factory=dict)
    """Pods that found a node, and for which Reserve plugins could set nothing aside there."""
    standing: list[tuple[Decision, str]] = field(default_factory=list)
    """The pods that are assumed, in that order, and the nodes that they had been nominated to."""
    missing: list[AnswersMissingError] = field(default_factory=list)
    """What extenders have to be asked about pods. They are all asked at once: so the others are looked at as well."""
    fitting: tuple[Decision, ...] = ()
    """The pods that found a node, also if that was undone."""

    @property
    def proposal(self) -> Proposal:
        """What is to be compared with other placements."""
        assert self.placement is not None
        return Proposal(self.placement, tuple(Counter(each.cycle.facts for each in self.fitting).items()))


class GroupPlacer:
    """One profile's way of placing groups."""

    def __init__(
        self,
        engine: Engine,
        reserving: Reserving,
        feasibility: Sequence[PlacementFeasiblePlugin],
        find: Callable[[str], Pod | None],
    ) -> None:
        self._engine = engine
        self._state = engine.state
        self._reserving = reserving
        self._feasibility = feasibility
        self._find = find

    def place(
        self, group: PodGroup, members: Sequence[Member], placement: CandidatePlacement | None = None
    ) -> PlacingResult:
        """Assume the pods of the group on nodes of a placement, or of all. If the group is not feasible, none is."""
        placed = PlacingResult(placement)
        try:
            placed.status = self._place(group, members, placed)
        except BaseException:  # extenders have to be asked, or a plugin broke
            self.undo(placed)
            raise
        placed.fitting = tuple(decision for decision, _ in placed.standing)
        if placed.status is not None:
            self.undo(placed)
        return placed

    def _place(self, group: PodGroup, members: Sequence[Member], placed: PlacingResult) -> Status | None:
        before, remaining = len(self._state.groups.placed(group.key)), len(members)
        status = self.feasible(group, GroupProgress(before, remaining))
        if status is not None and status.code is not Code.WAIT:
            return messages.infeasible(group, status, evaluated=False) if status.is_rejection else status
        for member in members:
            broken = self._place_one(member, placed)
            if broken is not None:
                return messages.broken_by(broken)
            remaining -= 1
            if placed.missing:
                continue
            status = self.feasible(group, GroupProgress(before + len(placed.standing), remaining))
            if status is not None and status.code is not Code.WAIT:
                return messages.infeasible(group, status, evaluated=True) if status.is_rejection else status
        raise_missing(placed.missing)
        if status is not None:
            return messages.infeasible(group, status, evaluated=True)
        return None if placed.standing else unschedulable(messages.UNSCHEDULABLE)

    def _place_one(self, member: Member, placed: PlacingResult) -> Status | None:
        """Decide on one pod, and assume it if it fits. What broke, if something did."""
        pod = member.pod
        placement = placed.placement
        within = None if placement is None or placement.is_all else placement.nodes
        try:
            decision = placed.decisions[pod.identity] = self._engine.decide(
                pod,
                watch=member.watch,
                find=self._find,
                extender_answers=member.answers,
                spent=member.spent,
                candidate_rows=within,
                run_post_filter=False,
            )
        except AnswersMissingError as missing:
            placed.missing.append(missing)
            return None
        if decision.outcome is Outcome.ERROR:
            assert decision.status is not None
            return decision.status
        if decision.outcome is not Outcome.SCHEDULED:
            return None
        nominated = self._state.nominated.node_of(pod)
        status = self._reserving.assume_and_reserve(decision)
        if status is None:
            placed.standing.append((decision, nominated))
            return None
        self._renominate(pod, nominated)
        placed.refused[pod.identity] = status
        return None if status.is_rejection else status

    def undo(self, placed: PlacingResult) -> None:
        """All pods are where they were before, the last one first."""
        while placed.standing:
            decision, nominated = placed.standing.pop()
            self._reserving.forget(decision)
            self._renominate(decision.pod, nominated)

    def redo(self, placed: PlacingResult) -> None:
        """Assume the pods once more where they stood; nothing else has changed since."""
        for decision in placed.fitting:
            nominated = self._state.nominated.node_of(decision.pod)
            status = self._reserving.assume_and_reserve(decision)
            if status is not None:
                self.undo(placed)
                placed.status = messages.broken_by(status)
                return
            placed.standing.append((decision, nominated))

    def resettle(
        self,
        placed: PlacingResult,
        rows: Collection[int] | None,
        answers: Mapping[str, ExtenderAnswers | None],
        come: Callable[[], None],
        go: Callable[[], None],
    ) -> bool:
        """As GroupWhatIf says. A pod that can stay where it is does not move."""
        table = self._state.nodes
        concerned = [each for each in placed.standing if rows is None or table.row_of[each[0].node] in rows]
        if not concerned:
            come()
            return True
        moved = {decision.pod.identity for decision, _ in concerned}
        staying = [each for each in placed.standing if each[0].pod.identity not in moved]
        self.undo(moving := PlacingResult(None, standing=list(concerned)))
        try:
            come()
            is_settled = self._settle([decision for decision, _ in concerned], moving, placed.placement, answers)
        except BaseException:  # extenders have to be asked, or a plugin broke
            self._put_back(moving, concerned, go)
            raise
        if not is_settled:
            self._put_back(moving, concerned, go)
            return False
        placed.standing = staying + moving.standing
        placed.fitting = tuple(decision for decision, _ in placed.standing)
        return True

    def _settle(
        self,
        decisions: Sequence[Decision],
        moving: PlacingResult,
        placement: CandidatePlacement | None,
        answers: Mapping[str, ExtenderAnswers | None],
    ) -> bool:
        """Whether all these pods can stay where their decisions say, or go elsewhere in the placement."""
        table = self._state.nodes
        for decision in decisions:
            member = Member(decision.pod, answers=answers[decision.pod.identity])
            only = np.zeros(table.size, dtype=np.bool_)
            only[table.row_of[decision.node]] = True
            before = len(moving.standing)
            for where in (CandidatePlacement("", only), placement):
                moving.placement = where
                if self._place_one(member, moving) is not None or len(moving.standing) > before:
                    break
                raise_missing(moving.missing)
            if len(moving.standing) == before:
                return False
        return True

    def _put_back(
        self, moving: PlacingResult, concerned: Sequence[tuple[Decision, str]], go: Callable[[], None]
    ) -> None:
        self.undo(moving)
        go()
        self.redo(PlacingResult(None, fitting=tuple(decision for decision, _ in concerned)))

    def undo_refused(self, placed: PlacingResult) -> None:
        """Undo only the pods that a Permit plugin refused."""
        kept = []
        for decision, nominated in placed.standing:
            if decision.pod.identity in placed.refused:
                self._reserving.forget(decision)
                self._renominate(decision.pod, nominated)
            else:
                kept.append((decision, nominated))
        placed.standing = kept

    def without_refused(self, group: PodGroup, placed: PlacingResult) -> Status | None:
        """Why the group is not feasible without the pods that a Permit plugin refused; None if it is."""
        refused = sum(decision.pod.identity in placed.refused for decision, _ in placed.standing)
        if refused == len(placed.standing):
            return unschedulable(messages.UNSCHEDULABLE)
        status = self.feasible(group, GroupProgress(len(self._state.groups.placed(group.key)) - refused, 0))
        return None if status is None else messages.infeasible(group, status, evaluated=True)

    def _renominate(self, pod: Pod, node_name: str) -> None:
        """Assuming a pod has taken its nomination away, which need not be in its status yet."""
        if node_name and self._state.nominated.node_of(pod) != node_name:
            self._state.nominated.add(pod, node_name)

    def feasible(self, group: PodGroup, progress: GroupProgress) -> Status | None:
        """None if the group is worth running with so many pods; a Wait if it may yet be; else why not."""
        waiting: Status | None = None
        for plugin in self._feasibility:
            status = plugin.placement_feasible(group, progress)
            if status is None:
                continue
            if status.code is not Code.WAIT:
                return (
                    status
                    if status.is_rejection
                    else error(f"failed to evaluate placement feasibility: {status.message}")
                )
            waiting = status
        return waiting


def raise_missing(missing: Sequence[AnswersMissingError]) -> None:
    """Raise AnswersMissingError with the questions of all of these, if there are any."""
    if missing:
        raise AnswersMissingError([question for each in missing for question in each.questions])
