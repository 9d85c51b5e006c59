"""The scheduling cycle of a pod group: all its pending pods at once, on one state; only the cache changes.

its pods, one after another ──► feasible ──► Permit ──► each is bound by itself, as any pod
                            └─► not ──► all undone ──► room for all together? ──► back to the queue as one
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence

from kubesched.api.pod import Pod
from kubesched.api.pod_groups import PodGroup
from kubesched.framework.budget import TurnOverError
from kubesched.framework.decision import Decision
from kubesched.framework.engine import Engine
from kubesched.framework.errors import describe
from kubesched.framework.extender import AnswersMissingError
from kubesched.framework.groups import GroupPostFilterResult, group_of
from kubesched.framework.plugin import PostFilterResult
from kubesched.framework.profile import Profile
from kubesched.framework.status import Code, Status, error
from kubesched.scheduler.attempt.attempt import Asking, Attempt, AttemptOutcome, Done, Failed, Failure, Paused
from kubesched.scheduler.attempt.failures import failure_of, rejection
from kubesched.scheduler.attempt.scheduling_cycle import NONZERO_SECONDS, SchedulingCycle
from kubesched.scheduler.groups import messages
from kubesched.scheduler.groups.conditions import GroupConditions
from kubesched.scheduler.groups.group_attempt import GroupAttempt, GroupDecided, NotedDraws
from kubesched.scheduler.groups.group_queue import GroupQueue
from kubesched.scheduler.groups.placing import Member, PlacingResult
from kubesched.scheduler.groups.profile import GroupProfile
from kubesched.state.pods import PlacedPod

log = logging.getLogger(__name__)


class GroupCycle:
    """Decides groups, one at a time. Nothing of a group that is not feasible stays in the cache."""

    def __init__(
        self,
        engine: Engine,
        queue: GroupQueue,
        cycle: SchedulingCycle,
        profiles: Mapping[str, Profile],
        find: Callable[[str], Pod | None],
        draws: NotedDraws,
        conditions: GroupConditions,
    ) -> None:
        """`find` looks up the latest version of a pod by its key; `draws` are those of the engine."""
        self._engine = engine
        self._state = engine.state
        self._queue = queue
        self._cycle = cycle
        self._find = find
        self._draws = draws
        self._conditions = conditions
        self._profiles = {
            name: GroupProfile(profile, engine, cycle.reserving, find) for name, profile in profiles.items()
        }

    def decide(self, group_attempt: GroupAttempt) -> Asking | Paused | GroupDecided:
        """Give all attempts at pods of the group their states.

        After Asking (extenders) or Paused (it takes long) nothing is assumed: call `decide` again.
        """
        group_attempt.draws = self._draws.begin(group_attempt.draws if isinstance(group_attempt.state, Paused) else ())
        try:
            return self._decide_within_budget(group_attempt)
        finally:
            self._draws.end()

    async def write_condition(self, decided: GroupDecided) -> None:
        """Write to the status of the group whether it was scheduled, and why not."""
        if decided.group is not None:
            await self._conditions.write(decided.group, decided.status)

    def _decide_within_budget(self, group_attempt: GroupAttempt) -> Asking | Paused | GroupDecided:
        group_attempt.left_out += [
            attempt for attempt in group_attempt.open_attempts() if self._is_to_be_left_out(attempt)
        ]
        attempts = group_attempt.open_attempts()
        for attempt in group_attempt.left_out:
            attempt.state = Done(AttemptOutcome.SKIPPED)
        if not attempts:
            self._queue.attempted(group_attempt.queued, (), None)
            return GroupDecided()
        try:
            with self._engine.budget.together(group_attempt.spent, len(attempts)):
                return self._decide(group_attempt, attempts)
        except AnswersMissingError as missing:
            return Asking(missing.questions)
        except TurnOverError as turn_over:
            group_attempt.spent = max(self._engine.budget.spent, NONZERO_SECONDS)
            return Paused(turn_over.expense)
        except Exception as failure:  # a plugin that breaks must not take pods with it, let alone the scheduler
            log.exception("the attempt at pod group %s broke", group_attempt.queued.group.key)
            group = group_of(attempts[0].queued.pod, self._state)
            return self._fail_all(group_attempt, attempts, group, error(describe(failure)))

    def _is_to_be_left_out(self, attempt: Attempt) -> bool:
        pod = attempt.queued.pod
        if not self._cycle.is_to_be_skipped(pod, self._find(pod.key)):
            return False
        self._queue.done(pod)
        self._state.nominated.keep_only_name_of(pod)
        return True

    def _decide(self, group_attempt: GroupAttempt, attempts: list[Attempt]) -> GroupDecided:
        pods = [attempt.queued.pod for attempt in attempts]
        group = group_of(pods[0], self._state)
        if group is None:
            key = group_attempt.queued.group.key
            return self._fail_all(
                group_attempt, attempts, None, error(f"pod group state not found for pod group {key}")
            )
        mistake = messages.mistake_in(group, pods, self._state.groups.placed(group.key), self._state.features)
        if mistake is not None:
            return self._fail_all(group_attempt, attempts, group, mistake)
        profile = self._profiles[pods[0].spec.scheduler_name]
        members = [
            Member(attempt.queued.pod, attempt.watch, attempt.answers, group_attempt.spent) for attempt in attempts
        ]
        placing = profile.place(group, members)
        if placing.status is None:
            return self._permit(group_attempt, attempts, group, profile, placing)
        return self._reject(group_attempt, attempts, group, profile, placing)

    # -- feasible -----------------------------------------------------------------------------------------------------

    def _permit(
        self,
        group_attempt: GroupAttempt,
        attempts: list[Attempt],
        group: PodGroup,
        profile: GroupProfile,
        placing: PlacingResult,
    ) -> GroupDecided:
        """Ask Permit plugins about each pod. If too few are left for the group, all are undone."""
        waits: dict[str, dict[str, float]] = {}
        for decision, _ in placing.standing:
            timeouts = waits[decision.pod.identity] = {}
            status = self._cycle.ask_to_permit(decision, timeouts)
            if status is not None:
                placing.refused[decision.pod.identity] = status
        if placing.refused:
            status = profile.placer.without_refused(group, placing)
            if status is not None:
                profile.placer.undo(placing)
                placing.status = status
                return self._submit(group_attempt, attempts, group, placing, status, None)
            profile.placer.undo_refused(placing)
        standing = {decision.pod.identity: decision for decision, _ in placing.standing}
        failed: list[tuple[Attempt, Failure | None]] = []
        for attempt in attempts:
            identity = attempt.queued.identity
            if identity in standing:
                attempt.state = self._cycle.proceed(attempt, standing[identity], waits[identity])
            else:
                failed.append((attempt, _own_failure(attempt, placing)))
        self._give_back(group_attempt, failed, placing, None)
        return GroupDecided(group)

    # -- not feasible -------------------------------------------------------------------------------------------------

    def _reject(
        self,
        group_attempt: GroupAttempt,
        attempts: list[Attempt],
        group: PodGroup,
        profile: GroupProfile,
        placing: PlacingResult,
    ) -> GroupDecided:
        status = placing.status
        assert status is not None
        room: GroupPostFilterResult | None = None
        outcome = status
        if status.code is Code.UNSCHEDULABLE:
            pods = [attempt.queued.pod for attempt in attempts]
            members = [Member(pod, answers=attempt.answers) for pod, attempt in zip(pods, attempts, strict=True)]
            room, answer = profile.post_filter(group, members, placing)
            if answer is not None and not answer.is_rejection:
                outcome = answer
            elif answer is not None and answer.message:
                outcome = messages.with_post_filter(group, status, answer.message, helped=False)
            elif room is not None:
                outcome = messages.with_post_filter(group, status, room.message, helped=True)
        return self._submit(group_attempt, attempts, group, placing, outcome, room)

    def _submit(
        self,
        group_attempt: GroupAttempt,
        attempts: list[Attempt],
        group: PodGroup,
        placing: PlacingResult,
        outcome: Status,
        room: GroupPostFilterResult | None,
    ) -> GroupDecided:
        """Put every pod back into the queue, with its own failure if it has one."""
        fitting = {decision.pod.identity for decision in placing.fitting}
        reasons = []
        for attempt in attempts:
            identity = attempt.queued.identity
            if not outcome.is_rejection:
                failure = _own_failure(attempt, placing)
                if failure is None or failure.is_rejection:
                    failure = Failure(outcome, outcome.message)
            elif identity in fitting and identity not in placing.refused:
                message = messages.fits_in_vain if room is None else messages.fits_later
                failure = Failure(Status(Code.UNSCHEDULABLE), message(group, outcome))
            else:
                assert placing.status is not None
                failure = _own_failure(attempt, placing) or Failure(placing.status, placing.status.message)
            if room is not None:
                failure.nominated = room.nominations.get(identity, "")
            reasons.append((attempt, failure))
        self._give_back(group_attempt, reasons, placing, outcome, None if room is None else room.room)
        return GroupDecided(group, outcome, waits_for_preemption=room is not None)

    def _fail_all(
        self, group_attempt: GroupAttempt, attempts: list[Attempt], group: PodGroup | None, status: Status
    ) -> GroupDecided:
        self._give_back(
            group_attempt,
            [(attempt, Failure(status, status.message)) for attempt in attempts],
            PlacingResult(None),
            status,
        )
        return GroupDecided(group, status)

    def _give_back(
        self,
        group_attempt: GroupAttempt,
        failed: Sequence[tuple[Attempt, Failure | None]],
        placing: PlacingResult,
        status: Status | None,
        room: PostFilterResult | None = None,
    ) -> None:
        """Put these pods back into the queue as their group. `Scheduler.finish` reports them and evicts victims."""
        if room is not None and room.preemption is not None and not self._cycle.evicts_first:
            room.preemption.hold_back()
        self._queue.attempted(group_attempt.queued, [attempt.queued for attempt, _ in failed], status)
        for attempt, failure in failed:
            assert failure is not None
            decision = placing.decisions.get(attempt.queued.identity)
            victims: tuple[PlacedPod, ...] = ()
            if room is not None and decision is not None:
                decision.post_filter, victims, room = room, tuple(room.victims), None
            self._queue.nominate(attempt.queued.pod, failure.nominated)
            attempt.state = Failed(failure, decision, victims, is_requeued=True)


def _own_failure(attempt: Attempt, placing: PlacingResult) -> Failure | None:
    """Why the pod itself found no node; None if it was not tried."""
    identity = attempt.queued.identity
    if identity in placing.refused:
        return rejection(placing.refused[identity])
    decision: Decision | None = placing.decisions.get(identity)
    return None if decision is None or decision.node else failure_of(decision)
