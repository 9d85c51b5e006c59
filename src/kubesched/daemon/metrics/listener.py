"""Metrics of attempts at pods, of the queue, of plugins and of writes: noted when they happen, counted many at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any

from kubesched.api.change import Change
from kubesched.api.meta import KubeObject
from kubesched.daemon.live_client import ClientObserver
from kubesched.daemon.metrics.registry import LabelValues, MetricsRegistry, alike
from kubesched.framework.decision import Decision
from kubesched.framework.events import ClusterEvent
from kubesched.framework.plugin import FilterPlugin, Plugin, PreFilterPlugin, PreScorePlugin
from kubesched.framework.profile import Profile
from kubesched.framework.status import Code
from kubesched.framework.stopwatch import Lap, PluginLap, Stopwatch
from kubesched.scheduler.attempt.attempt import EVICTION, Assumed, Attempt, AttemptOutcome, Done, Failed
from kubesched.scheduler.groups.group_attempt import GroupAttempt, GroupDecided
from kubesched.scheduler.listener import SchedulerListener
from kubesched.scheduler.queue.queued_pod import QueuedPod

PERMIT_WAIT = "PermitWait"
"""The name of the lap in which a pod waited for Permit plugins."""

Skipped = frozenset[str]
"""The plugins that were not asked."""

SearchNote = tuple[tuple[str, Skipped | None, Skipped | None], tuple[float, tuple[Lap, ...]]]
"""A node was found, or none. The profile, the plugins that did not filter, and those that did not score, None if it did
not come to that; seconds and laps until now."""

FailureNote = tuple[tuple[str, str], float]
"""An attempt has failed, though it may not be over. Result and profile; seconds."""

EndNote = tuple[tuple[str, int | None, bool, bool], float, float, list[Lap], list[PluginLap]]
"""An attempt is over. The profile, attempts that it took to bind the pod, None if it is not bound, whether nothing but
time had brought it back to the queue, whether all victims are on their way out; seconds, seconds since the first
attempt, laps, laps of plugins."""

_Texts = tuple[str, ...]
_MANY_ATTEMPTS = 15
_AFTER_SEARCH = frozenset({"Reserve", "Unreserve", "Permit"})


def _seconds_after_search(laps: Iterable[Lap]) -> float:
    return sum([seconds for point, _, seconds in laps if point in _AFTER_SEARCH])


def _attempts_label(attempts: int) -> str:
    return f"{_MANY_ATTEMPTS}+" if attempts >= _MANY_ATTEMPTS else str(attempts)


def _by_laps(attempt: EndNote) -> tuple[tuple[Any, _Texts, _Texts], tuple[float, float, tuple[float, ...]]]:
    """Labels, points and statuses, which most attempts share, as the key; the seconds of this attempt."""
    about, seconds, waited, laps, _ = attempt
    if not laps:
        return (about, (), ()), (seconds, waited, ())
    points, statuses, lap_seconds = zip(*laps)
    return (about, points, statuses), (seconds, waited, lap_seconds)


SAMPLED = 0.1
"""The share of attempts that have their plugins measured one by one."""

VOLUME_BINDING, DEFAULT_PREEMPTION = "VolumeBinding", "DefaultPreemption"
"""Plugins whose failures kube-scheduler counts by name."""

_BINDING_FAILED = {AttemptOutcome.BIND_UNSCHEDULABLE: "unschedulable", AttemptOutcome.BIND_ERROR: "error"}


class SchedulerMetrics(SchedulerListener):
    """Counts what a scheduler does: what happens for every pod is noted for later, what is seldom at once."""

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
        self._profiles = profiles
        family, batch = registry.family, registry.batch
        self._searched, self._failed = batch(self._count_searched), batch(self._count_failed)
        self._ended = batch(self._count_ended)
        self._attempts = family("scheduler_schedule_attempts_total")
        self._attempt_seconds = family("scheduler_scheduling_attempt_duration_seconds")
        self._algorithm = family("scheduler_scheduling_algorithm_duration_seconds").child()
        self._sli = family("scheduler_pod_scheduling_sli_duration_seconds")
        self._attempts_needed = family("scheduler_pod_scheduling_attempts").child()
        self._after_flush = family("scheduler_pod_scheduled_after_flush_total").child()
        self._plugins = family("scheduler_plugin_execution_duration_seconds")
        self._permit_wait = family("scheduler_permit_wait_duration_seconds")
        self._evictions = family("scheduler_preemption_goroutines_execution_total")
        self._eviction_seconds = family("scheduler_preemption_goroutines_duration_seconds")
        self._evaluations = family("scheduler_plugin_evaluation_total")
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
        self._ended.note((about, now - watch.started, now - first_tried, watch.laps, watch.plugin_laps))
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

    # -- many attempts at once -----------------------------------------------------------------------------------------

    def _count_searched(self, attempts: list[SearchNote]) -> None:
        for (profile, no_filters, no_scores), searches in alike(attempts).items():
            self._algorithm.observe_all([seconds - _seconds_after_search(laps) for seconds, laps in searches])
            self._count_evaluations(profile, no_filters, no_scores, len(searches))

    def _count_failed(self, attempts: list[FailureNote]) -> None:
        for (result, profile), seconds in alike(attempts).items():
            self._count_attempts(result, profile, seconds)

    def _count_ended(self, attempts: list[EndNote]) -> None:
        """Nearly all attempts have the same laps: they are sorted by that, and then counted lap by lap."""
        for ((profile, tries, flushed, has_evicted), points, statuses), ends in alike(map(_by_laps, attempts)).items():
            seconds, waited, laps = zip(*ends)
            if tries is not None:
                self._count_attempts("scheduled", profile, seconds)
                self._attempts_needed.observe(tries, len(ends))
                self._sli.observe_all((_attempts_label(tries),), waited)
                self._after_flush.inc(len(ends) * flushed)
            for point, status, lap_seconds in zip(points, statuses, zip(*laps)):
                self._count_point(point, status, profile, has_evicted, lap_seconds)
        self._plugins.observe_each(
            [((plugin, point, status), seconds) for *_, laps in attempts for plugin, point, status, seconds in laps]
        )

    def _count_attempts(self, result: str, profile: str, seconds: Sequence[float]) -> None:
        self._attempts.inc((result, profile), len(seconds))
        self._attempt_seconds.observe_all((result, profile), seconds)

    def _count_point(self, point: str, status: str, profile: str, has_evicted: bool, seconds: Sequence[float]) -> None:
        if point == PERMIT_WAIT:
            self._permit_wait.observe_all((status,), seconds)
        elif point == EVICTION:
            result = "success" if has_evicted else "error"
            self._evictions.inc((result,), len(seconds))
            self._eviction_seconds.observe_all((result,), seconds)
        else:
            self._points.observe_all((point, status, profile), seconds)

    def _count_evaluations(self, name: str, no_filters: Skipped | None, no_scores: Skipped | None, times: int) -> None:
        """Count the plugins that were asked."""
        if no_filters is None:
            return
        profile = self._profiles[name]
        points: list[tuple[str, Iterable[Plugin], Skipped]] = [
            ("PreFilter", profile.at("pre_filter", PreFilterPlugin), frozenset()),
            ("Filter", profile.at("filter", FilterPlugin), no_filters),
        ]
        if no_scores is not None:
            points += [
                ("PreScore", profile.at("pre_score", PreScorePlugin), frozenset()),
                ("Score", [plugin for plugin, _ in profile.scores], no_scores),
            ]
        for point, plugins, skipped in points:
            for plugin in plugins:
                if plugin.name not in skipped:
                    self._evaluations.inc((plugin.name, point, name), times)

    # -- plugins ------------------------------------------------------------------------------------------------------

    def counted(self, metric: str, labels: Sequence[str]) -> None:
        self._family(metric).child(*labels).inc()

    def measured(self, metric: str, seconds: float, labels: Sequence[str]) -> None:
        self._family(metric).child(*labels).observe(seconds)


class ClientMetrics(ClientObserver):
    """Counts and times what is written to the API server."""

    def __init__(self, registry: MetricsRegistry, clock: Callable[[], float]) -> None:
        super().__init__(clock)
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
