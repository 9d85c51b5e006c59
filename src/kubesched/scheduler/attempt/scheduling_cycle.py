"""The scheduling cycle: the decision, Reserve and Permit for a pod; only the cache changes, and nothing waits."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from kubesched.api.pod import Pod
from kubesched.framework.budget import TurnOverError
from kubesched.framework.cycle import PODS_TO_ACTIVATE
from kubesched.framework.decision import Decision, Outcome
from kubesched.framework.engine import Engine
from kubesched.framework.errors import describe
from kubesched.framework.extender import AnswersMissingError
from kubesched.framework.plugin import PermitPlugin, ReservePlugin
from kubesched.framework.profile import Profile
from kubesched.framework.status import Code, Status, error
from kubesched.framework.waiting import WaitingPods
from kubesched.scheduler.attempt.attempt import (
    Asking,
    Assumed,
    Attempt,
    AttemptOutcome,
    Denied,
    Done,
    Failed,
    Failure,
    Paused,
    WaitingOnPermit,
)
from kubesched.scheduler.attempt.failures import denial, failure_of, rejection
from kubesched.scheduler.queue.scheduling_queue import SchedulingQueue
from kubesched.scheduler.write_counting import WriteCounter
from kubesched.state.cluster import ClusterState
from kubesched.state.pods import PlacedPod

log = logging.getLogger(__name__)

WAITING = Status(Code.WAIT)
NONZERO_SECONDS = 1e-9
"""What a turn takes at least: if a decision has taken no time, it is in its first turn."""


class SchedulingCycle:
    """The decision, Reserve and Permit for one pod at a time. It is undone as a whole if one of them fails."""

    def __init__(
        self,
        engine: Engine,
        queue: SchedulingQueue,
        writes: WriteCounter,
        profiles: dict[str, Profile],
        waiting: WaitingPods,
        find: Callable[[str], Pod | None],
        evicts_first: bool,
    ) -> None:
        """`find` looks up the latest version of a pod by its key.

        `evicts_first` if victims are evicted before their preemptor goes back to the queue; until then no pod is tried.
        """
        self.reserving = Reserving(engine.state, profiles)
        self._state = engine.state
        self._engine = engine
        self.queue = queue
        self.writes = writes
        self.profiles = profiles
        self._permit_plugins = {name: profile.at("permit", PermitPlugin) for name, profile in profiles.items()}
        self.waiting = waiting
        self._find = find
        self.evicts_first = evicts_first
        self._permitting: dict[str, tuple[Attempt, Decision]] = {}
        """Attempts that wait for a Permit plugin, by the identity of their pod."""

    def decide(self, attempt: Attempt) -> Asking | Paused | Failed | WaitingOnPermit | Assumed | Done:
        """Find a node, and assume the pod there if there is one.

        After Asking (extenders) or Paused (it takes long) call `decide` again.
        """
        pod = attempt.queued.pod
        decision: Decision | None = None
        try:
            has_waited = isinstance(attempt.state, Asking | Paused)
            if self.is_to_be_skipped(pod, self._find(pod.key) if has_waited else pod):
                self.queue.done(pod)
                self._state.nominated.keep_only_name_of(pod)
                return Done(AttemptOutcome.SKIPPED)
            decision = self._engine.decide(
                pod, watch=attempt.watch, find=self._find, extender_answers=attempt.answers, spent=attempt.spent
            )
            attempt.ran_out = self._engine.budget.ran_out
            if decision.outcome is not Outcome.SCHEDULED:
                failure = failure_of(decision, rejects_alike=self.profiles[decision.profile].rejects_alike)
                return Failed(failure, decision, self._begin_preemption(decision, failure))
            return self._assume(attempt, decision)
        except AnswersMissingError as missing:
            return Asking(missing.questions)
        except TurnOverError as turn_over:
            attempt.spent = max(self._engine.budget.spent, NONZERO_SECONDS)
            return Paused(turn_over.expense, self._state.facts(pod))
        except Exception as failure:  # a plugin that breaks must not take a pod with it, let alone the scheduler
            log.exception("the attempt at pod %s broke", attempt.queued.key)
            placed = self._state.placed(pod)
            if decision is not None and placed is not None and placed.assumed:
                self.reserving.forget(decision)
            text = describe(failure)
            return Failed(Failure(error(text), text), decision)

    def _assume(self, attempt: Attempt, decision: Decision) -> Failed | WaitingOnPermit | Assumed:
        rejected = self.reserving.assume_and_reserve(decision)
        timeouts: dict[str, float] = {}
        if rejected is None:
            rejected = self.ask_to_permit(decision, timeouts)
            decision.cycle.lap("Permit", WAITING if timeouts and rejected is None else rejected)
            if rejected is not None:
                self.reserving.forget(decision)
        if rejected is not None:
            return Failed(rejection(rejected), decision)
        return self.proceed(attempt, decision, timeouts)

    def proceed(self, attempt: Attempt, decision: Decision, timeouts: dict[str, float]) -> WaitingOnPermit | Assumed:
        """The pod is assumed and everything is reserved: it is to be bound, once all plugins permit it."""
        if timeouts:
            self._permitting[decision.pod.identity] = attempt, decision
            self.waiting.add(decision.pod, decision.node, timeouts)
        self.activate_others(decision)
        if timeouts:
            return WaitingOnPermit(decision)
        self.queue.done(decision.pod)
        return Assumed(decision)

    def settled(self) -> list[Attempt]:
        """Attempts that waited for a Permit plugin and need not any longer."""
        settled = []
        for waiting in self.waiting.settled():
            attempt, decision = self._permitting.pop(waiting.pod.identity)
            if waiting.refusal is None:
                attempt.state = Assumed(decision)
                self.queue.done(waiting.pod)
            else:
                attempt.state = Denied(denial(waiting.refusal), decision)
            settled.append(attempt)
        return settled

    def is_to_be_skipped(self, pod: Pod, latest: Pod | None) -> bool:
        """Whether the pod needs no attempt any more. `latest` is the pod as it is after a wait."""
        if not self._engine.knows(pod.spec.scheduler_name) or latest is None:
            return True
        if latest is not pod and latest.identity != pod.identity:
            return True
        if latest.is_terminating:
            note = f"skip schedule deleting pod: {pod.key}"
            self.writes.record_event(
                pod, related=None, type="Warning", reason="FailedScheduling", action="Scheduling", note=note
            )
            return True
        placed = self._state.placed(pod)
        return placed is not None and placed.assumed

    def ask_to_permit(self, decision: Decision, timeouts: dict[str, float]) -> Status | None:
        """Ask Permit plugins. None if none refuses; `timeouts` gets the seconds of each that asks to wait."""
        cycle = decision.cycle
        for plugin in self._permit_plugins[decision.profile]:
            status, seconds = cycle.ask(plugin.name, "Permit", plugin.permit, cycle, decision.pod, decision.node)
            if status is None:
                continue
            if status.code is Code.WAIT:
                timeouts[plugin.name] = seconds
                continue
            text = f'running Permit plugin "{plugin.name}": {status.message}'
            return status.by(plugin.name) if status.is_rejection else error(text)
        return None

    def activate_others(self, decision: Decision) -> None:
        """Activate the pods that plugins noted in this attempt (PODS_TO_ACTIVATE)."""
        pods = decision.cycle.find(PODS_TO_ACTIVATE)
        while pods:
            self.queue.activate(pods.pop(next(iter(pods))))

    def _begin_preemption(self, decision: Decision, failure: Failure) -> tuple[PlacedPod, ...]:
        """The victims, if there are any. From now on the pod is held back until their evictions have ended.

        If the preemption refuses to evict them, there are none, and the failure says so.
        """
        result = decision.post_filter
        if result is None or not result.nominated:
            return ()
        victims = tuple(victim for victim in result.victims if not victim.pod.is_terminating)
        if victims and result.preemption is not None:
            if refusal := result.preemption.refusal():
                failure.message, failure.nominated = f"{failure.message} {refusal}.", ""
                return ()
            if not self.evicts_first:
                result.preemption.hold_back()
        return victims


class Reserving:
    """The Reserve plugins of all profiles. Only the cache changes."""

    def __init__(self, state: ClusterState, profiles: Mapping[str, Profile]) -> None:
        self._state = state
        self._reserve_plugins = {name: profile.at("reserve", ReservePlugin) for name, profile in profiles.items()}

    def assume_and_reserve(self, decision: Decision) -> Status | None:
        """Assume the pod and ask Reserve plugins. A status if one refuses: then the pod is forgotten again."""
        pod, cycle = decision.pod, decision.cycle
        if self._state.placed(pod) is not None:  # another scheduler was faster
            return error(f"pod {pod.uid}({pod.key}) is in the cache, so can't be assumed")
        self._state.assume(pod, decision.node, cycle.facts)
        rejected: Status | None = None
        for plugin in self._reserve_plugins[decision.profile]:
            status = cycle.ask(plugin.name, "Reserve", plugin.reserve, cycle, pod, decision.node)
            if status is not None:
                text = f'running Reserve plugin "{plugin.name}": {status.message}'
                rejected = status.by(plugin.name) if status.is_rejection else error(text)
                break
        cycle.lap("Reserve", rejected)
        if rejected is not None:
            self.forget(decision)
        return rejected

    def forget(self, decision: Decision) -> None:
        """Unreserve, and forget the assumption."""
        self.unreserve(decision)
        self._state.forget(decision.pod)

    def unreserve(self, decision: Decision) -> None:
        """Call Unreserve of all Reserve plugins in reverse order, also of those that reserved nothing."""
        for plugin in reversed(self._reserve_plugins[decision.profile]):
            try:
                plugin.unreserve(decision.cycle, decision.pod, decision.node)
            except Exception:  # the other plugins must still be called, and the pod be forgotten
                log.exception("plugin %s broke giving back what it reserved for pod %s", plugin.name, decision.pod.key)
        decision.cycle.lap("Unreserve")
