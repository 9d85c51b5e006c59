"""The scheduler: takes pods from the queue one by one, decides, assumes, binds; on failure reports and requeues.

An attempt has three steps, so that a driver may do other things in between: `pop`, `decide` (quick, changes only what
is believed) and `finish` (writes to the cluster, and may wait).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence

from kubesched.api.change import Change
from kubesched.api.meta import KubeObject
from kubesched.api.pod import Pod
from kubesched.config import SchedulerConfiguration
from kubesched.framework.client import ClusterClient
from kubesched.framework.cycle import PODS_TO_ACTIVATE, Cycle
from kubesched.framework.decision import Decision, Outcome
from kubesched.framework.engine import Engine
from kubesched.framework.errors import describe
from kubesched.framework.extender import EXTENDER, AnswersMissingError, Extender, ignoring_managed_resources
from kubesched.framework.interests import ANY_EVENT, custom_resources, interests_of
from kubesched.framework.plugin import (
    PermitPlugin,
    PluginContext,
    PreEnqueuePlugin,
    QueueSortPlugin,
    ReservePlugin,
)
from kubesched.framework.profile import Profile
from kubesched.framework.registry import Registry
from kubesched.framework.status import Code, Status, error
from kubesched.framework.waiting import WaitingPods
from kubesched.scheduler.attempt.attempt import EVICTION, Attempt, Failure
from kubesched.scheduler.attempt.binding_cycle import BindingCycle, PreBinding
from kubesched.scheduler.attempt.failures import FailureReporter, breakdown, denial, failure_of, rejection
from kubesched.scheduler.event_handlers import EventHandlers
from kubesched.scheduler.handle import SchedulerHandle
from kubesched.scheduler.listener import SchedulerListener
from kubesched.scheduler.queue.scheduling_queue import LONGEST_WAIT, SchedulingQueue
from kubesched.state.cluster import ClusterState

__all__ = ["Attempt", "Scheduler"]

_log = logging.getLogger(__name__)

WAITING = Status(Code.WAIT)


class Scheduler:
    """All profiles of a configuration at work on one cluster."""

    def __init__(
        self,
        configuration: SchedulerConfiguration,
        client: ClusterClient,
        *,
        clock: Callable[[], float],
        draw: Callable[[int], int],
        plugins: Registry,
        choose: Callable[[list[str]], str] | None = None,
        extenders: Sequence[Extender] = (),
        longest_wait: float = LONGEST_WAIT,
        now: Callable[[], float] = time.time,
        stopwatch: Callable[[], float] = time.monotonic,
        listeners: Iterable[SchedulerListener] = (),
    ) -> None:
        """`plugins` are those that profiles may name; `client` is for what they and the scheduler write.

        `clock` tells seconds; `draw` decides among equally good nodes, unless `choose` does so by name.
        `now` is the time of day in seconds since 1970, for what objects say about times; `stopwatch` is for durations.
        `extenders` have a say after the plugins, in this order; those of the configuration are made elsewhere.
        After `longest_wait` seconds a pod is tried again even if nothing happened.
        """
        configuration = ignoring_managed_resources(configuration)
        self.extenders = list(extenders)
        self.listeners: list[SchedulerListener] = list(listeners)
        self._stopwatch = stopwatch
        features = configuration.features
        self.state = ClusterState(features)
        self.waiting = WaitingPods(clock, self._on_settled)
        pre_binding = PreBinding()
        handle = SchedulerHandle(lambda: self.queue, pre_binding, self.listeners)
        context = PluginContext(
            features=features, waiting=self.waiting, now=now, stopwatch=stopwatch, client=client, handle=handle
        )
        self.profiles = {config.scheduler_name: Profile(config, plugins, context) for config in configuration.profiles}
        self.engine = Engine(
            self.state,
            self.profiles.values(),
            draw,
            configuration.percentage_of_nodes_to_score or 0,
            choose=choose,
            extenders=self.extenders,
        )
        self.pods: dict[str, Pod] = {}
        """All pods by name, as the watch last showed them."""
        self.queue = self._make_queue(configuration, clock, longest_wait)
        self._client = client
        self._event_handlers = EventHandlers(self.state, self.queue, self.pods, self.waiting, self.engine.knows)
        self._failures = FailureReporter(self.queue, self.pods.get, client)
        self._binding = BindingCycle(
            self.state, self.queue, client, self.profiles, self._give_back, pre_binding, self.extenders
        )
        self.evicts_first = not features.async_preemption
        """Whether victims are evicted before their preemptor goes back to the queue; until then nobody is tried."""
        self._permitting: dict[str, Attempt] = {}

    @property
    def custom_resources(self) -> frozenset[str]:
        """Resources that must be watched only because plugins wait for them: `racks.v1.example.com`."""
        return custom_resources(plugin for profile in self.profiles.values() for plugin in profile.plugins.values())

    def _make_queue(
        self, configuration: SchedulerConfiguration, clock: Callable[[], float], longest_wait: float
    ) -> SchedulingQueue:
        profiles = self.profiles
        of_extenders = {EXTENDER: ANY_EVENT} if self.extenders else {}
        return SchedulingQueue(
            self.state,
            next(iter(profiles.values())).at("queue_sort", QueueSortPlugin)[0],
            {name: profile.at("pre_enqueue", PreEnqueuePlugin) for name, profile in profiles.items()},
            {
                name: of_extenders | {plugin.name: interests_of(plugin) for plugin in profile.plugins.values()}
                for name, profile in profiles.items()
            },
            clock=clock,
            find=self.pods.get,
            initial_backoff=configuration.pod_initial_backoff_seconds,
            max_backoff=configuration.pod_max_backoff_seconds,
            longest_wait=longest_wait,
            listeners=self.listeners,
            stopwatch=self._stopwatch,
        )

    # -- what the watch says ------------------------------------------------------------------------------------------

    def handle(self, change: Change[KubeObject]) -> None:
        """Bring cache and queue up to date with a change of the cluster. There is no other way to do so."""
        for listener in self.listeners:
            listener.handling(change)
        before = self._stopwatch() if self.listeners else 0.0
        events = self._event_handlers.handle(change)
        if self.listeners:
            seconds = self._stopwatch() - before
            for listener in self.listeners:
                listener.handled(change, events, seconds)

    # -- time ---------------------------------------------------------------------------------------------------------

    def flush_backoff(self) -> None:
        """To be called every second."""
        for listener in self.listeners:
            listener.flushing_backoff()
        self.queue.flush_backoff()

    def flush_leftovers(self) -> None:
        """To be called every half minute."""
        for listener in self.listeners:
            listener.flushing_leftovers()
        self.queue.flush_leftovers()

    # -- an attempt ---------------------------------------------------------------------------------------------------

    def pop(self) -> Attempt | None:
        """The next pod's turn."""
        popped = self.queue.pop()
        if popped is None:
            return None
        attempt = Attempt(*popped, answers=self.engine.answers_for(popped[0].pod))
        for listener in self.listeners:
            listener.popped(attempt)
        return attempt

    def decide(self, attempt: Attempt) -> None:
        """Find a node and assume the pod there, or find out why not; or what to ask extenders before that."""
        try:
            self._decide(attempt)
        except AnswersMissingError as missing:
            attempt.phase, attempt.questions = "asking", missing.questions
            return
        except Exception as problem:  # a plugin that breaks must not take a pod with it, let alone the scheduler
            _log.exception("the attempt at pod %s broke", attempt.queued.key)
            placed = self.state.placed(attempt.queued.pod)
            if attempt.decision is not None and placed is not None and placed.assumed:
                self._unreserve(attempt.decision)
            attempt.phase, attempt.failure, attempt.node, attempt.victims = "failed", breakdown(problem), "", ()
        for listener in self.listeners:
            listener.decided(attempt)

    def _decide(self, attempt: Attempt) -> None:
        pod = attempt.queued.pod
        if self._is_to_be_skipped(pod, self.pods.get(pod.key) if attempt.phase == "asking" else pod):
            self.queue.done(pod)
            self.state.nominated.keep_only_name_of(pod)
            attempt.phase, attempt.outcome = "done", "skipped"
            return
        decision = self.engine.decide(pod, watch=attempt.watch, find=self.pods.get, extender_answers=attempt.answers)
        attempt.decision = decision
        if decision.outcome is not Outcome.SCHEDULED:
            attempt.phase, attempt.failure = "failed", failure_of(decision)
            self._begin_preemption(attempt, decision)
            return
        attempt.node = decision.node
        rejected = self._assume_and_reserve(pod, decision) or self._permit(attempt, decision)
        if rejected is not None:
            attempt.phase, attempt.failure, attempt.node = "failed", rejection(rejected), ""
            return
        self._activate_others(decision)
        if attempt.phase != "waiting":
            attempt.phase = "assumed"
            self.queue.done(pod)

    def _on_settled(self) -> None:
        for listener in self.listeners:
            listener.settled()

    def permitted(self) -> list[Attempt]:
        """Attempts that waited for a Permit plugin and need not any longer: to be finished now."""
        over = []
        for waiting in self.waiting.settled():
            attempt = self._permitting.pop(waiting.pod.identity)
            if waiting.refusal is None:
                attempt.phase = "assumed"
                self.queue.done(waiting.pod)
            else:
                attempt.phase, attempt.failure = "denied", denial(waiting.refusal)
            over.append(attempt)
        for listener in self.listeners if over else ():
            listener.permitted(over)
        return over

    async def wait(self, attempt: Attempt) -> None:
        """While a pod waits for a Permit plugin, everybody may see where it will go. To be over before `finish`."""
        for listener in self.listeners:
            listener.waiting(attempt)
        await self._binding.tell_expected_node(attempt.queued.pod, attempt.node)

    async def finish(self, attempt: Attempt) -> None:
        """Carry out what was decided."""
        for listener in self.listeners:
            listener.finishing(attempt)
        try:
            await self._finish(attempt)
        except BaseException:  # a task that is cancelled among them
            for listener in self.listeners:
                listener.broken_off(attempt)
            raise
        for listener in self.listeners:
            listener.finished(attempt)

    async def _finish(self, attempt: Attempt) -> None:
        if attempt.phase == "assumed":
            attempt.failure = await self._binding.run(attempt)
            if attempt.failure is None:
                attempt.phase, attempt.outcome = "done", "bound"
                assert attempt.decision is not None
                self._activate_others(attempt.decision)
                return
            await self._take_back(attempt, attempt.failure)
        elif attempt.phase == "denied":
            assert attempt.failure is not None
            await self._take_back(attempt, attempt.failure)
        elif attempt.phase == "failed":
            assert attempt.failure is not None
            attempt.outcome = "unschedulable" if attempt.is_rejected else "error"
            if self.evicts_first:
                await self._evict(attempt)
            if attempt.decision is not None:
                await self._binding.run_deferred(attempt.decision)
            await self._failures.report(attempt, attempt.failure)
            if not self.evicts_first:
                await self._evict(attempt)
        attempt.phase = "done"

    async def _take_back(self, attempt: Attempt, failure: Failure) -> None:
        """The pod will not arrive. Others hear of it, but it must not wake itself if somebody rejected it."""
        assert attempt.decision is not None
        attempt.outcome = "bind-unschedulable" if attempt.is_rejected else "bind-error"
        assumed, me = await self._binding.take_back(attempt.decision), attempt.queued.identity
        if not attempt.is_rejected:
            self._binding.announce(assumed)
        await self._failures.report(attempt, failure)
        if attempt.is_rejected:
            self._binding.announce(assumed, lambda pod: pod.identity != me)

    async def _evict(self, attempt: Attempt) -> None:
        """Make the room that a post-filter found. Where that comes first and fails, no node is nominated."""
        decision, failure = attempt.decision, attempt.failure
        result = decision.post_filter if decision is not None and attempt.victims else None
        if decision is None or failure is None or result is None or result.preemption is None:
            return
        if attempt.watch is not None:
            attempt.watch.start()
        try:
            status = await result.preemption.carry_out()
        except Exception as problem:  # of a plugin
            _log.exception("the preemption for pod %s broke", attempt.queued.key)
            status = error(f"preemption: {describe(problem)}")
        attempt.evicted = status is None
        if status is not None and self.evicts_first:
            said = decision.diagnosis.message() if decision.diagnosis is not None else ""
            failure.message, failure.nominated = f"{said} {status.message}", None
        elif status is not None:
            _log.warning("the preemption for pod %s failed: %s", attempt.queued.key, status.message)
        if attempt.watch is not None:
            attempt.watch.lap(EVICTION)

    def _is_to_be_skipped(self, pod: Pod, latest: Pod | None) -> bool:
        """`latest` is the pod after extenders were asked about it."""
        if not self.engine.knows(pod.spec.scheduler_name) or latest is None or latest.identity != pod.identity:
            return True
        if latest.is_terminating:
            note = f"skip schedule deleting pod: {pod.key}"
            self._client.record_event(
                pod, related=None, type="Warning", reason="FailedScheduling", action="Scheduling", note=note
            )
            return True
        placed = self.state.placed(pod)
        return placed is not None and placed.assumed

    def _assume_and_reserve(self, pod: Pod, decision: Decision) -> Status | None:
        """None if the pod is assumed and everything is set aside for it; else nothing is."""
        assert decision.cycle is not None
        if self.state.placed(pod) is not None:  # somebody else was faster
            return error(f"pod {pod.uid}({pod.key}) is in the cache, so can't be assumed")
        self.state.assume(pod, decision.node, decision.cycle.facts)
        rejected: Status | None = None
        for plugin in self.profiles[decision.profile].at("reserve", ReservePlugin):
            status = decision.cycle.ask(plugin.name, "Reserve", plugin.reserve, decision.cycle, pod, decision.node)
            if status is not None:
                text = f'running Reserve plugin "{plugin.name}": {status.message}'
                rejected = status.by(plugin.name) if status.is_rejection else error(text)
                break
        decision.cycle.lap("Reserve", rejected)
        if rejected is not None:
            self._unreserve(decision)
        return rejected

    def _permit(self, attempt: Attempt, decision: Decision) -> Status | None:
        """The last word before binding: None if it is yes, or not yet."""
        assert decision.cycle is not None
        rejected = self._ask_to_permit(attempt, decision, decision.cycle)
        decision.cycle.lap("Permit", WAITING if attempt.phase == "waiting" else rejected)
        if rejected is not None:
            self._unreserve(decision)
        return rejected

    def _ask_to_permit(self, attempt: Attempt, decision: Decision, cycle: Cycle) -> Status | None:
        timeouts: dict[str, float] = {}
        for plugin in self.profiles[decision.profile].at("permit", PermitPlugin):
            status, seconds = cycle.ask(plugin.name, "Permit", plugin.permit, cycle, decision.pod, decision.node)
            if status is None:
                continue
            if status.code is Code.WAIT:
                timeouts[plugin.name] = seconds
                continue
            text = f'running Permit plugin "{plugin.name}": {status.message}'
            return status.by(plugin.name) if status.is_rejection else error(text)
        if timeouts:
            attempt.phase = "waiting"
            self._permitting[decision.pod.identity] = attempt
            self.waiting.add(decision.pod, decision.node, timeouts)
        return None

    def _activate_others(self, decision: Decision) -> None:
        """Pods that a plugin put aside in this attempt to be tried soon."""
        assert decision.cycle is not None
        pods = decision.cycle.find(PODS_TO_ACTIVATE)
        while pods:
            self.queue.activate(pods.pop(next(iter(pods))))

    def _unreserve(self, decision: Decision) -> None:
        """Give everything back and forget the assumption."""
        self._give_back(decision)
        self.state.forget(decision.pod)

    def _give_back(self, decision: Decision) -> None:
        """What the plugins set aside is free again, in the opposite order; also those are told that have nothing."""
        assert decision.cycle is not None
        for plugin in reversed(self.profiles[decision.profile].at("reserve", ReservePlugin)):
            try:
                plugin.unreserve(decision.cycle, decision.pod, decision.node)
            except Exception:  # the others must still give back theirs, and the pod its place
                _log.exception("plugin %s broke giving back what it reserved for pod %s", plugin.name, decision.pod.key)
        decision.cycle.lap("Unreserve")

    def _begin_preemption(self, attempt: Attempt, decision: Decision) -> None:
        """From here on the pod is held back until its victims are on their way out."""
        if decision.post_filter is None or not decision.post_filter.nominated:
            return
        attempt.victims = tuple(v for v in decision.post_filter.victims if not v.pod.is_terminating)
        preemption = decision.post_filter.preemption
        if attempt.victims and preemption is not None and not self.evicts_first:
            preemption.hold_back()
