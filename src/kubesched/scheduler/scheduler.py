"""The scheduler: takes pods from the queue one by one, decides, assumes, binds; after a failure reports and requeues.

An attempt has three steps, so that a driver may do other things in between: `pop`, `decide` (quick, changes only
the cache) and `finish` (writes to the cluster, and may wait).
"""

from __future__ import annotations

import logging

from kubesched.api.change import Change
from kubesched.api.kinds import Kind
from kubesched.api.meta import KubeObject
from kubesched.api.pod import Pod
from kubesched.framework.budget import Expense
from kubesched.framework.decision import Decision
from kubesched.framework.engine import Engine
from kubesched.framework.errors import describe
from kubesched.framework.extender import ExtenderAnswers
from kubesched.framework.group_answers import GroupAnswers
from kubesched.framework.profile import custom_resources
from kubesched.framework.status import error
from kubesched.scheduler.attempt.attempt import (
    EVICTION,
    Asking,
    Assumed,
    Attempt,
    AttemptOutcome,
    Denied,
    Done,
    Failed,
    Paused,
    WaitingOnPermit,
)
from kubesched.scheduler.attempt.binding_cycle import BindingCycle
from kubesched.scheduler.attempt.failures import FailureReporter
from kubesched.scheduler.attempt.scheduling_cycle import SchedulingCycle
from kubesched.scheduler.event_handlers import EventHandlers
from kubesched.scheduler.groups.group_attempt import EntityAttempt, GroupAttempt, GroupDecided
from kubesched.scheduler.groups.group_cycle import GroupCycle
from kubesched.scheduler.groups.queued_group import QueuedPodGroup
from kubesched.scheduler.listener import Listeners

log = logging.getLogger(__name__)

_BUDGET_EXCEEDED = "kubesched_decision_budget_exceeded_total"


class Scheduler:
    """All profiles of a configuration at work on one cluster. `assembly.build_scheduler` makes one."""

    def __init__(
        self,
        *,
        kinds: tuple[Kind, ...],
        listeners: Listeners,
        engine: Engine,
        event_handlers: EventHandlers,
        scheduling: SchedulingCycle,
        binding: BindingCycle,
        failures: FailureReporter,
        groups: GroupCycle | None,
    ) -> None:
        """`kinds` must be watched. Without `groups`, pods are scheduled one by one."""
        self.kinds = kinds
        self.listeners = listeners
        self.engine = engine
        self.state = engine.state
        self.pods = event_handlers.pods
        """All pods by key, as the watch last showed them."""
        self.queue = scheduling.queue
        self.profiles = scheduling.profiles
        self.waiting = scheduling.waiting
        self.writes = scheduling.writes
        self.evicts_first = scheduling.evicts_first
        """Whether victims are evicted before their preemptor goes back to the queue; until then no pod is tried."""
        self.extenders = binding.extenders
        self._event_handlers = event_handlers
        self._scheduling = scheduling
        self._binding = binding
        self._failures = failures
        self._groups = groups
        self._popped = 0

    @property
    def custom_resources(self) -> frozenset[str]:
        """Resources that must be watched only because plugins wait for them: `racks.v1.example.com`."""
        return custom_resources(plugin for profile in self.profiles.values() for plugin in profile.plugins.values())

    # -- changes that the watch shows ---------------------------------------------------------------------------------

    def handle(self, change: Change[KubeObject]) -> None:
        """Bring cache and queue up to date with a change of the cluster: the only way to do so."""
        listeners = self.listeners
        listeners.handling(change)
        before = listeners.stopwatch()
        events = self._event_handlers.handle(change)
        listeners.handled(change, events, listeners.stopwatch() - before)

    # -- time ---------------------------------------------------------------------------------------------------------

    def flush_backoff(self) -> None:
        """To be called every second."""
        self.listeners.flushing_backoff()
        self.queue.flush_backoff()

    def flush_leftovers(self) -> None:
        """To be called every half minute."""
        self.listeners.flushing_leftovers()
        self.queue.flush_leftovers()

    def activate(self, pod: Pod) -> None:
        """Try a waiting pod, whether or not an event may have helped it."""
        self.listeners.activating(pod)
        self.queue.activate(pod)

    # -- an attempt ---------------------------------------------------------------------------------------------------

    def pop(self) -> EntityAttempt | None:
        """Begin an attempt at the next pod or pod group; None if none is to be tried now."""
        popped = self.queue.pop()
        if popped is None:
            return None
        entity, pods, place = popped
        is_group = isinstance(entity, QueuedPodGroup)
        attempts = []
        for queued in pods:
            self._popped += 1
            kind = GroupAnswers if is_group else ExtenderAnswers
            answers = self.engine.answers_for(queued.pod, kind) if self.extenders else None
            attempt = Attempt(queued, place, answers=answers, number=self._popped)
            self.listeners.popped(attempt)
            attempts.append(attempt)
        return GroupAttempt(entity, attempts) if isinstance(entity, QueuedPodGroup) else attempts[0]

    def decide(self, attempt: EntityAttempt) -> None:
        """Find a node and assume the pod there, or find out why not; or what to ask extenders before that.

        After Paused, for a decision that takes long, or Asking, call it again later. It decides all pods of a group at
        once: then finish each of `attempts`, and the attempt at the group as well.
        """
        if isinstance(attempt, GroupAttempt):
            self._decide_group(attempt)
            return
        state = attempt.state = self._scheduling.decide(attempt)
        if isinstance(state, Paused):
            self._count_expense(state.expense, "paused")
            return
        if isinstance(state, Asking):
            return
        if attempt.ran_out is not None:
            self._count_expense(attempt.ran_out, "given up")
        self._report_decided(attempt)

    def _decide_group(self, attempt: GroupAttempt) -> None:
        assert self._groups is not None
        before = self.listeners.stopwatch() if self.listeners else 0.0
        state = attempt.state = self._groups.decide(attempt)
        if isinstance(state, Paused):
            self._count_expense(state.expense, "paused")
        if not isinstance(state, GroupDecided):
            return
        if (ran_out := self.engine.budget.ran_out) is not None:
            self._count_expense(ran_out, "given up")
        attempt.seconds = self.listeners.stopwatch() - before if self.listeners else 0.0
        self.listeners.group_decided(attempt)
        for pod_attempt in attempt.attempts:
            self._report_decided(pod_attempt)

    def _report_decided(self, attempt: Attempt) -> None:
        self.listeners.decided(attempt)
        if isinstance(attempt.state, Assumed | WaitingOnPermit):
            attempt.state.decision.forget_columns()

    def _count_expense(self, expense: Expense, result: str) -> None:
        self.listeners.counted(_BUDGET_EXCEEDED, (*expense, result))

    def permitted(self) -> list[Attempt]:
        """Attempts that waited for a Permit plugin and need not any longer: finish them now."""
        settled = self._scheduling.settled()
        if settled:
            self.listeners.permitted(settled)
        return settled

    async def wait(self, attempt: Attempt) -> None:
        """Name the node in the status of a pod that waits for a Permit plugin. To be over before `finish`."""
        self.listeners.waiting(attempt)
        await self._binding.nominate_expected_node(attempt.queued.pod, attempt.node)

    async def finish(self, attempt: EntityAttempt) -> None:
        """Write the decision: bind the pod, or report its failure; or write the condition of the group."""
        if isinstance(attempt, GroupAttempt):
            if self._groups is not None and isinstance(attempt.state, GroupDecided):
                await self._groups.write_condition(attempt.state)
            return
        self.listeners.finishing(attempt)
        try:
            match attempt.state:
                case Assumed(decision):
                    await self._bind(attempt, decision)
                case Denied() as denied:
                    attempt.state = await self._take_back(attempt, denied)
                case Failed() as failed:
                    attempt.state = await self._give_up(attempt, failed)
        except BaseException:  # a task that is cancelled among them
            self.listeners.broken_off(attempt)
            raise
        self.listeners.finished(attempt)

    async def _bind(self, attempt: Attempt, decision: Decision) -> None:
        failure = await self._binding.run(attempt.queued.pod, decision)
        if failure is None:
            attempt.state = Done(AttemptOutcome.BOUND, decision)
            self._scheduling.activate_others(decision)
        else:
            attempt.state = denied = Denied(failure, decision)
            attempt.state = await self._take_back(attempt, denied)

    async def _take_back(self, attempt: Attempt, denied: Denied) -> Done:
        """Unreserve, report, requeue. The freed room wakes other pods; the pod itself only if no plugin rejected it."""
        failure, decision = denied.failure, denied.decision
        assumed, identity = await self._binding.take_back(decision), attempt.queued.identity
        if not failure.is_rejection:
            self._binding.announce(assumed)
        await self._failures.report(attempt.queued, failure)
        if failure.is_rejection:
            self._binding.announce(
                assumed, lambda entity: all(queued.identity != identity for queued in entity.queued_pods)
            )
            return Done(AttemptOutcome.BIND_UNSCHEDULABLE, decision, failure)
        return Done(AttemptOutcome.BIND_ERROR, decision, failure)

    async def _give_up(self, attempt: Attempt, failed: Failed) -> Done:
        """Requeue the pod, which has no node, and evict the victims that make room for it."""
        failure, decision = failed.failure, failed.decision
        evicted = await self._evict(attempt, failed) if self.evicts_first else False
        if decision is not None:
            await self._binding.run_deferred(decision)
        if failed.is_requeued:
            await self._failures.tell(attempt.queued.pod, failure)
        else:
            await self._failures.report(attempt.queued, failure)
        if not self.evicts_first:
            evicted = await self._evict(attempt, failed)
        outcome = AttemptOutcome.UNSCHEDULABLE if failure.is_rejection else AttemptOutcome.ERROR
        return Done(outcome, decision, failure, failed.victims, evicted)

    async def _evict(self, attempt: Attempt, failed: Failed) -> bool:
        """Evict the victims that a post-filter found. With `evicts_first`, a failure clears the nomination."""
        decision = failed.decision
        result = decision.post_filter if decision is not None and failed.victims else None
        if decision is None or result is None or result.preemption is None:
            return False
        decision.cycle.start_lap()
        try:
            status = await result.preemption.carry_out()
        except Exception as failure:  # of a plugin
            log.exception("the preemption for pod %s broke", attempt.queued.key)
            status = error(f"preemption: {describe(failure)}")
        if status is not None and self.evicts_first:
            reasons = decision.diagnosis.message() if decision.diagnosis is not None else ""
            failed.failure.message, failed.failure.nominated = f"{reasons} {status.message}", None
        elif status is not None:
            log.warning("the preemption for pod %s failed: %s", attempt.queued.key, status.message)
        decision.cycle.lap(EVICTION)
        return status is None
