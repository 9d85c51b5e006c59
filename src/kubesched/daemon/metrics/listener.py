"""What a scheduler and its client do, as metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter

from kubesched.api.change import Change
from kubesched.api.meta import KubeObject
from kubesched.daemon.metrics.counts import PERMIT_WAIT, AttemptCounts
from kubesched.daemon.metrics.family import LabelValues
from kubesched.daemon.metrics.registry import MetricsRegistry
from kubesched.framework.decision import Decision
from kubesched.framework.events import ClusterEvent
from kubesched.framework.profile import Profile
from kubesched.framework.status import Code
from kubesched.framework.stopwatch import Stopwatch
from kubesched.scheduler.attempt.attempt import Assumed, Attempt, AttemptOutcome, Done, Failed
from kubesched.scheduler.groups.group_attempt import GroupAttempt, GroupDecided
from kubesched.scheduler.listener import SchedulerListener
from kubesched.scheduler.queue.queued_pod import QueuedPod

SAMPLED = 0.1
"""The share of attempts that have their plugins measured one by one."""

VOLUME_BINDING, DEFAULT_PREEMPTION = "VolumeBinding", "DefaultPreemption"
"""Plugins whose failures kube-scheduler counts by name."""

_BINDING_FAILED = {AttemptOutcome.BIND_UNSCHEDULABLE: "unschedulable", AttemptOutcome.BIND_ERROR: "error"}


class SchedulerMetrics(SchedulerListener):
    """Counts what a scheduler does: what happens for every pod is noted for later, what is seldom at once.

    One thread, so nothing is locked but what the library locks.
    """

    def __init__(
        self,
        registry: MetricsRegistry,
        profiles: Mapping[str, Profile],
        *,
        clock: Callable[[], float],
        draw: Callable[[], float],
    ) -> None:
        """`clock` has seconds for durations; `draw()` is a number below 1, to choose the attempts to look into."""
        self._clock = clock
        self._draw = draw
        family, batch, counts = registry.family, registry.batch, AttemptCounts(registry, profiles)
        self._searched, self._failed = batch(counts.searched), batch(counts.failed)
        self._over = batch(counts.over)
        self._hints = batch(family("scheduler_queueing_hint_execution_duration_seconds").observe_each)
        self._handled = batch(family("scheduler_event_handling_duration_seconds").observe_each)
        self._points = family("scheduler_framework_extension_point_duration_seconds")
        self._pre_enqueued = batch(self._points.observe_each)
        self._incoming = family("scheduler_queue_incoming_pods_total")
        self._moved = batch(self._incoming.inc_each)
        self._victims = family("scheduler_preemption_victims").child()
        self._preemptions = family("scheduler_preemption_attempts_total").child()
        self._volume_errors = family("scheduler_volume_scheduling_stage_error_total")
        self._family = family
        self._binding: set[str] = set()
        """The pods that are being bound, by identity."""
        bindings = family("scheduler_goroutines").child("binding")
        registry.on_scrape(lambda: bindings.set(len(self._binding)))

    # -- the queue ----------------------------------------------------------------------------------------------------

    def moved(self, queued: QueuedPod, event: str, place: str) -> None:
        self._moved.note((_QUEUES[place], event))

    def pre_enqueued(self, profile: str, seconds: float) -> None:
        self._pre_enqueued.note((_pre_enqueue(profile), seconds))

    def held_back(self, pods: Sequence[QueuedPod], event: str, seconds: float) -> None:
        self._incoming[_QUEUES["Unschedulable"], event].inc(len(pods))
        for profile, count in Counter(map(_PROFILE, pods)).items():
            self._points[_pre_enqueue(profile)].observe(seconds, count)

    def hinted(self, queued: QueuedPod, plugin: str, event: ClusterEvent, hint: str, seconds: float) -> None:
        self._hints.note(((plugin, event.label, hint), seconds))

    def handled(self, change: Change[KubeObject], events: Sequence[ClusterEvent], seconds: float) -> None:
        if len(events) == 1:
            self._handled.note(((events[0].label,), seconds))
        else:
            for label in {event.label for event in events}:
                self._handled.note(((label,), seconds))

    # -- attempts -----------------------------------------------------------------------------------------------------

    def popped(self, attempt: Attempt) -> None:
        watch = attempt.watch = Stopwatch(self._clock, is_detailed=self._draw() < SAMPLED)
        if attempt.queued.first_tried is None:
            attempt.queued.first_tried = watch.started

    def group_decided(self, attempt: GroupAttempt) -> None:
        assert isinstance(attempt.state, GroupDecided)
        result, profile = attempt.state.result, attempt.attempts[0].queued.pod.spec.scheduler_name
        self._family("scheduler_podgroup_schedule_attempts_total").child(result, profile).inc()
        seconds = self._family("scheduler_podgroup_scheduling_attempt_duration_seconds")
        seconds.child(result, profile).observe(attempt.seconds)
        self._family("scheduler_podgroup_scheduling_algorithm_duration_seconds").child().observe(attempt.seconds)

    def decided(self, attempt: Attempt) -> None:
        state = attempt.state
        if isinstance(state, Done):  # skipped
            return
        watch, profile, decision = _watch_of(attempt), attempt.queued.pod.spec.scheduler_name, attempt.decision
        seconds, filters, scores = self._clock() - watch.started, None, None
        if decision is not None and decision.trace.pre_filter is not None:
            cycle = decision.cycle
            filters, scores = cycle.skipped_filters, cycle.skipped_scores if decision.trace.scores is not None else None
        self._searched.note(((profile, filters, scores), (seconds, tuple(watch.laps))))
        if isinstance(state, Failed):
            failure = state.failure
            self._failed.note((("unschedulable" if failure.is_rejection else "error", profile), seconds))
            if not failure.is_rejection and failure.status.plugin == VOLUME_BINDING:
                self._volume_errors.child("predicate").inc()
            if decision is not None:
                self._count_preemption(decision)

    def permitted(self, attempts: Sequence[Attempt]) -> None:
        for attempt in attempts:
            _watch_of(attempt).lap(PERMIT_WAIT, attempt.failure.status if attempt.failure is not None else None)

    def finishing(self, attempt: Attempt) -> None:
        if isinstance(attempt.state, Assumed):
            self._binding.add(attempt.queued.identity)

    def broken_off(self, attempt: Attempt) -> None:
        self._binding.discard(attempt.queued.identity)

    def finished(self, attempt: Attempt) -> None:
        watch, queued, outcome = _watch_of(attempt), attempt.queued, attempt.outcome
        self._binding.discard(queued.identity)
        now, profile = self._clock(), queued.pod.spec.scheduler_name
        first_tried = watch.started if queued.first_tried is None else queued.first_tried
        attempts = queued.attempts if outcome is AttemptOutcome.BOUND else None
        has_evicted = isinstance(attempt.state, Done) and attempt.state.evicted
        about = (profile, attempts, queued.flushed, has_evicted)
        self._over.note((about, now - watch.started, now - first_tried, watch.laps, watch.plugin_laps))
        if outcome in _BINDING_FAILED:
            self._failed.note(((_BINDING_FAILED[outcome], profile), now - watch.started))
            if attempt.failure is not None and attempt.failure.status.plugin == VOLUME_BINDING:
                self._volume_errors.child("bind").inc()

    def _count_preemption(self, decision: Decision) -> None:
        if _tried_preemption(decision):
            self._preemptions.inc()
            victims = () if decision.post_filter is None else decision.post_filter.victims
            if not all(victim.pod.is_terminating for victim in victims):
                self._victims.observe(len(victims))

    # -- plugins ------------------------------------------------------------------------------------------------------

    def counted(self, metric: str, labels: Sequence[str]) -> None:
        self._family(metric).child(*labels).inc()

    def measured(self, metric: str, seconds: float, labels: Sequence[str]) -> None:
        self._family(metric).child(*labels).observe(seconds)


class ClientMetrics:
    """A `ClientObserver` that counts."""

    def __init__(self, registry: MetricsRegistry, clock: Callable[[], float]) -> None:
        """`clock` has seconds for durations."""
        self.now = clock
        self._calls = registry.family("scheduler_async_api_call_execution_total")
        self._call_seconds = registry.family("scheduler_async_api_call_execution_duration_seconds")
        self._written = registry.batch(self._count_written)
        self._pending_calls = registry.family("scheduler_pending_async_api_calls")

    def writing(self, call: str, by: int) -> None:
        self._pending_calls[call,].inc(by)

    def wrote(self, call: str, result: str, seconds: float) -> None:
        self._written.note(((call, result), seconds))

    def _count_written(self, calls: list[tuple[LabelValues, float]]) -> None:
        self._calls.inc_each([values for values, _ in calls])
        self._call_seconds.observe_each(calls)


def _pre_enqueue(profile: str) -> LabelValues:
    # kube-scheduler says Success even where a plugin held the pod back.
    return "PreEnqueue", _SUCCESS, profile


def _watch_of(attempt: Attempt) -> Stopwatch:
    assert attempt.watch is not None  # given to it in `popped`
    return attempt.watch


_PROFILE = attrgetter("pod.spec.scheduler_name")
_SUCCESS = str(Code.SUCCESS)
_QUEUES = {"Active": "active", "Backoff": "backoff", "Unschedulable": "unschedulable"}


def _tried_preemption(decision: Decision) -> bool:
    """Whether the attempt came as far as preemption: a post-filter before it may have ended the matter."""
    status = decision.post_filter_status
    if status is None:
        return decision.post_filter is not None and bool(decision.post_filter.nominated)
    return status.code is Code.UNSCHEDULABLE or status.plugin == DEFAULT_PREEMPTION
