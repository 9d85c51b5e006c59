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
    """Pods that found a node, with the status of the Reserve or Permit plugin that refused it."""
    standing: list[tuple[Decision, str]] = field(default_factory=list)
    """The pods that are assumed, in order, and the nodes that they had been nominated to."""
    missing: list[AnswersMissingError] = field(default_factory=list)
    """Questions to extenders about pods. They are all asked at once: so placing goes on after the first."""
    fitting: tuple[Decision, ...] = ()
    """The pods that found a node, also if that was undone."""

    @property
    def proposal(self) -> Proposal:
        """The placement and its pods, to be compared with others."""
        assert self.placement is not None
        return Proposal(self.placement, tuple(Counter(decision.cycle.facts for decision in self.fitting).items()))


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
        """Assume the pods of the group on nodes of a placement, or on all nodes; none if the group is not feasible."""
        placing = PlacingResult(placement)
        try:
            placing.status = self._place(group, members, placing)
        except BaseException:  # extenders have to be asked, or a plugin broke
            self.undo(placing)
            raise
        placing.fitting = tuple(decision for decision, _ in placing.standing)
        if placing.status is not None:
            self.undo(placing)
        return placing

    def _place(self, group: PodGroup, members: Sequence[Member], placing: PlacingResult) -> Status | None:
        before, remaining = len(self._state.groups.placed(group.key)), len(members)
        status = self.feasible(group, GroupProgress(before, remaining))
        if status is not None and status.code is not Code.WAIT:
            return messages.infeasible(group, status, evaluated=False) if status.is_rejection else status
        for member in members:
            broken = self._place_one(member, placing)
            if broken is not None:
                return messages.broken_by(broken)
            remaining -= 1
            if placing.missing:
                continue
            status = self.feasible(group, GroupProgress(before + len(placing.standing), remaining))
            if status is not None and status.code is not Code.WAIT:
                return messages.infeasible(group, status, evaluated=True) if status.is_rejection else status
        raise_missing(placing.missing)
        if status is not None:
            return messages.infeasible(group, status, evaluated=True)
        return None if placing.standing else unschedulable(messages.UNSCHEDULABLE)

    def _place_one(self, member: Member, placing: PlacingResult) -> Status | None:
        """Decide one pod, and assume it if it fits. The error, if there was one."""
        pod = member.pod
        placement = placing.placement
        within = None if placement is None or placement.is_all else placement.nodes
        try:
            decision = placing.decisions[pod.identity] = self._engine.decide(
                pod,
                watch=member.watch,
                find=self._find,
                extender_answers=member.answers,
                spent=member.spent,
                candidate_rows=within,
                run_post_filter=False,
            )
        except AnswersMissingError as missing:
            placing.missing.append(missing)
            return None
        if decision.outcome is Outcome.ERROR:
            assert decision.status is not None
            return decision.status
        if decision.outcome is not Outcome.SCHEDULED:
            return None
        nominated = self._state.nominated.node_of(pod)
        status = self._reserving.assume_and_reserve(decision)
        if status is None:
            placing.standing.append((decision, nominated))
            return None
        self._renominate(pod, nominated)
        placing.refused[pod.identity] = status
        return None if status.is_rejection else status

    def undo(self, placing: PlacingResult) -> None:
        """Forget the assumed pods, the last one first."""
        while placing.standing:
            decision, nominated = placing.standing.pop()
            self._reserving.forget(decision)
            self._renominate(decision.pod, nominated)

    def redo(self, placing: PlacingResult) -> None:
        """Assume the pods again on the same nodes; nothing else has changed since."""
        for decision in placing.fitting:
            nominated = self._state.nominated.node_of(decision.pod)
            status = self._reserving.assume_and_reserve(decision)
            if status is not None:
                self.undo(placing)
                placing.status = messages.broken_by(status)
                return
            placing.standing.append((decision, nominated))

    def resettle(
        self,
        placing: PlacingResult,
        rows: Collection[int] | None,
        answers: Mapping[str, ExtenderAnswers | None],
        come: Callable[[], None],
        go: Callable[[], None],
    ) -> bool:
        """See `GroupWhatIf.resettle`. A pod that can stay on its node does not move."""
        table = self._state.nodes
        affected = [
            (decision, nominated)
            for decision, nominated in placing.standing
            if rows is None or table.row_of[decision.node] in rows
        ]
        if not affected:
            come()
            return True
        moved = {decision.pod.identity for decision, _ in affected}
        staying = [entry for entry in placing.standing if entry[0].pod.identity not in moved]
        self.undo(moving := PlacingResult(None, standing=list(affected)))
        try:
            come()
            is_settled = self._settle([decision for decision, _ in affected], moving, placing.placement, answers)
        except BaseException:  # extenders have to be asked, or a plugin broke
            self._put_back(moving, affected, go)
            raise
        if not is_settled:
            self._put_back(moving, affected, go)
            return False
        placing.standing = staying + moving.standing
        placing.fitting = tuple(decision for decision, _ in placing.standing)
        return True

    def _settle(
        self,
        decisions: Sequence[Decision],
        moving: PlacingResult,
        placement: CandidatePlacement | None,
        answers: Mapping[str, ExtenderAnswers | None],
    ) -> bool:
        """Whether all these pods can stay on the nodes of their decisions, or go elsewhere in the placement."""
        table = self._state.nodes
        for decision in decisions:
            member = Member(decision.pod, answers=answers[decision.pod.identity])
            only = np.zeros(table.size, dtype=np.bool_)
            only[table.row_of[decision.node]] = True
            before = len(moving.standing)
            for candidate in (CandidatePlacement("", only), placement):
                moving.placement = candidate
                if self._place_one(member, moving) is not None or len(moving.standing) > before:
                    break
                raise_missing(moving.missing)
            if len(moving.standing) == before:
                return False
        return True

    def _put_back(
        self, moving: PlacingResult, affected: Sequence[tuple[Decision, str]], go: Callable[[], None]
    ) -> None:
        self.undo(moving)
        go()
        self.redo(PlacingResult(None, fitting=tuple(decision for decision, _ in affected)))

    def undo_refused(self, placing: PlacingResult) -> None:
        """Undo only the pods that a Permit plugin refused."""
        kept = []
        for decision, nominated in placing.standing:
            if decision.pod.identity in placing.refused:
                self._reserving.forget(decision)
                self._renominate(decision.pod, nominated)
            else:
                kept.append((decision, nominated))
        placing.standing = kept

    def without_refused(self, group: PodGroup, placing: PlacingResult) -> Status | None:
        """Why the group is not feasible without the refused pods; None if it is."""
        refused = sum(decision.pod.identity in placing.refused for decision, _ in placing.standing)
        if refused == len(placing.standing):
            return unschedulable(messages.UNSCHEDULABLE)
        status = self.feasible(group, GroupProgress(len(self._state.groups.placed(group.key)) - refused, 0))
        return None if status is None else messages.infeasible(group, status, evaluated=True)

    def _renominate(self, pod: Pod, node_name: str) -> None:
        """Nominate a pod again: assuming it removed its nomination, which may not be in its status yet."""
        if node_name and self._state.nominated.node_of(pod) != node_name:
            self._state.nominated.add(pod, node_name)

    def feasible(self, group: PodGroup, progress: GroupProgress) -> Status | None:
        """None if the group is feasible with so many pods; a Wait if it may yet be; else why not."""
        waiting: Status | None = None
        for plugin in self._feasibility:
            status = plugin.placement_feasible(group, progress)
            if status is None:
                continue
            if status.code is not Code.WAIT:
                text = f"failed to evaluate placement feasibility: {status.message}"
                return status if status.is_rejection else error(text)
            waiting = status
        return waiting


def raise_missing(missing: Sequence[AnswersMissingError]) -> None:
    """Raise AnswersMissingError with the questions of all of these, if there are any."""
    if missing:
        raise AnswersMissingError([question for exception in missing for question in exception.questions])
