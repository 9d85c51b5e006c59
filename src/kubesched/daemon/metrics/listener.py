"""What a scheduler and its client do, as metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter

from kubesched.api.change import Change
from kubesched.api.meta import KubeObject
from kubesched.daemon.metrics.registry import MetricsRegistry
from kubesched.framework.decision import Decision
from kubesched.framework.events import ClusterEvent
from kubesched.framework.plugin import FilterPlugin, PreFilterPlugin, PreScorePlugin
from kubesched.framework.profile import Profile
from kubesched.framework.status import Code
from kubesched.framework.stopwatch import Stopwatch
from kubesched.plugins.default_preemption import DefaultPreemption
from kubesched.plugins.volume_binding.plugin import VolumeBinding
from kubesched.scheduler.attempt.attempt import EVICTION, Assumed, Attempt, AttemptOutcome, Done, Failed
from kubesched.scheduler.groups.group_turn import GroupTurn
from kubesched.scheduler.listener import SchedulerListener
from kubesched.scheduler.queue.queued_pod import QueuedPod

SAMPLED_PERCENT = 10
"""How many attempts have their plugins measured one by one."""

_MANY_ATTEMPTS = 15
_PERMIT_WAIT = "PermitWait"
"""What a stopwatch calls the time that a pod waited for Permit plugins."""
_BINDING_FAILED = {AttemptOutcome.BIND_UNSCHEDULABLE: "unschedulable", AttemptOutcome.BIND_ERROR: "error"}
_ONCE_A_NODE_IS_FOUND = frozenset({"Reserve", "Unreserve", "Permit"})


class SchedulerMetrics(SchedulerListener):
    """Counts what a scheduler does. One thread, so nothing is locked but what the library locks."""

    def __init__(
        self,
        registry: MetricsRegistry,
        profiles: Mapping[str, Profile],
        *,
        clock: Callable[[], float],
        draw: Callable[[int], int],
    ) -> None:
        """`clock` has seconds for durations; `draw(n)` is a number below n, to choose the attempts to look into."""
        self._clock = clock
        self._draw = draw
        self._profiles = profiles
        family = registry.family
        self._attempts = family("scheduler_schedule_attempts_total").children
        self._attempt_seconds = family("scheduler_scheduling_attempt_duration_seconds").children
        self._algorithm = family("scheduler_scheduling_algorithm_duration_seconds").child()
        self._event_seconds = family("scheduler_event_handling_duration_seconds").children
        self._victims = family("scheduler_preemption_victims").child()
        self._preemptions = family("scheduler_preemption_attempts_total").child()
        self._bindings = family("scheduler_goroutines").child("binding")
        self._sli = family("scheduler_pod_scheduling_sli_duration_seconds").children
        self._attempts_needed = family("scheduler_pod_scheduling_attempts").child()
        self._after_flush = family("scheduler_pod_scheduled_after_flush_total").child()
        self._points = family("scheduler_framework_extension_point_duration_seconds").children
        self._plugins = family("scheduler_plugin_execution_duration_seconds").children
        self._hints = family("scheduler_queueing_hint_execution_duration_seconds").children
        self._incoming = family("scheduler_queue_incoming_pods_total").children
        self._permit_wait = family("scheduler_permit_wait_duration_seconds")
        self._evaluations = family("scheduler_plugin_evaluation_total")
        self._evictions = family("scheduler_preemption_goroutines_execution_total")
        self._eviction_seconds = family("scheduler_preemption_goroutines_duration_seconds")
        self._family = family
        self._volume_errors = family("scheduler_volume_scheduling_stage_error_total")
        self._binding: set[str] = set()
        """The pods that are being bound, by identity."""
        self._filtered: Counter[tuple[str, frozenset[str]]] = Counter()
        self._scored: Counter[tuple[str, frozenset[str]]] = Counter()
        """Attempts that came so far, by profile and by the plugins that were skipped; a scrape sorts them by plugin."""
        registry.on_scrape(self._count_evaluations)

    # -- the queue ----------------------------------------------------------------------------------------------------

    def moved(self, queued: QueuedPod, event: str, place: str) -> None:
        self._incoming[_QUEUES[place], event].inc()

    def pre_enqueued(self, profile: str, seconds: float) -> None:
        # kube-scheduler says Success even where a plugin held the pod back.
        self._points["PreEnqueue", str(Code.SUCCESS), profile].observe(seconds)

    def held_back(self, pods: Sequence[QueuedPod], event: str, seconds: float) -> None:
        self._incoming[_QUEUES["Unschedulable"], event].inc(len(pods))
        for profile, count in Counter(map(_PROFILE, pods)).items():
            self._points["PreEnqueue", str(Code.SUCCESS), profile].observe(seconds, count)

    def hinted(self, queued: QueuedPod, plugin: str, event: ClusterEvent, hint: str, seconds: float) -> None:
        self._hints[plugin, event.label, hint].observe(seconds)

    def handled(self, change: Change[KubeObject], events: Sequence[ClusterEvent], seconds: float) -> None:
        labels = (event.label for event in events)
        for label in labels if len(events) == 1 else set(labels):
            self._event_seconds[label,].observe(seconds)

    # -- attempts -----------------------------------------------------------------------------------------------------

    def popped(self, attempt: Attempt) -> None:
        watch = attempt.watch = Stopwatch(self._clock, is_detailed=self._draw(100) < SAMPLED_PERCENT)
        if attempt.queued.first_tried is None:
            attempt.queued.first_tried = watch.started

    def group_decided(self, turn: GroupTurn) -> None:
        profile = turn.attempts[0].queued.pod.spec.scheduler_name
        self._family("scheduler_podgroup_schedule_attempts_total").child(turn.result, profile).inc()
        seconds = self._family("scheduler_podgroup_scheduling_attempt_duration_seconds")
        seconds.child(turn.result, profile).observe(turn.seconds)
        self._family("scheduler_podgroup_scheduling_algorithm_duration_seconds").child().observe(turn.seconds)

    def decided(self, attempt: Attempt) -> None:
        if isinstance(attempt.state, Done):  # skipped
            return
        watch = _watch_of(attempt)
        later = sum(seconds for point, _, seconds in watch.laps if point in _ONCE_A_NODE_IS_FOUND)
        self._algorithm.observe(watch.elapsed() - later)
        if attempt.decision is not None:
            self._note_evaluations(attempt.decision)
            self._note_preemption(attempt.decision)
        if isinstance(attempt.state, Failed):
            failure = attempt.state.failure
            if not failure.is_rejection and failure.status.plugin == VolumeBinding.name:
                self._volume_errors.child("predicate").inc()
            self._attempted(attempt, "unschedulable" if failure.is_rejection else "error")

    def permitted(self, attempts: Sequence[Attempt]) -> None:
        for attempt in attempts:
            _watch_of(attempt).lap(_PERMIT_WAIT, attempt.failure.status if attempt.failure is not None else None)

    def finishing(self, attempt: Attempt) -> None:
        if isinstance(attempt.state, Assumed):
            self._binding.add(attempt.queued.identity)
            self._bindings.set(len(self._binding))

    def broken_off(self, attempt: Attempt) -> None:
        self._binding.discard(attempt.queued.identity)
        self._bindings.set(len(self._binding))

    def finished(self, attempt: Attempt) -> None:
        self._binding.discard(attempt.queued.identity)
        self._bindings.set(len(self._binding))
        watch, queued = _watch_of(attempt), attempt.queued
        if attempt.outcome is AttemptOutcome.BOUND:
            self._attempted(attempt, "scheduled")
            self._attempts_needed.observe(queued.attempts)
            if queued.first_tried is not None:
                tries = f"{_MANY_ATTEMPTS}+" if queued.attempts >= _MANY_ATTEMPTS else str(queued.attempts)
                self._sli[tries,].observe(self._clock() - queued.first_tried)
            if queued.flushed:
                self._after_flush.inc()
        elif attempt.outcome in _BINDING_FAILED:
            self._attempted(attempt, _BINDING_FAILED[attempt.outcome])
            if attempt.failure is not None and attempt.failure.status.plugin == VolumeBinding.name:
                self._volume_errors.child("bind").inc()
        self._note_laps(attempt, watch)

    def _note_preemption(self, decision: Decision) -> None:
        if _tried_preemption(decision):
            self._preemptions.inc()
            victims = () if decision.post_filter is None else decision.post_filter.victims
            if not all(victim.pod.is_terminating for victim in victims):
                self._victims.observe(len(victims))

    def _attempted(self, attempt: Attempt, result: str) -> None:
        profile = attempt.queued.pod.spec.scheduler_name
        self._attempts[result, profile].inc()
        self._attempt_seconds[result, profile].observe(_watch_of(attempt).elapsed())

    def _note_laps(self, attempt: Attempt, watch: Stopwatch) -> None:
        profile = attempt.queued.pod.spec.scheduler_name
        for point, status, seconds in watch.laps:
            if point == _PERMIT_WAIT:
                self._permit_wait.child(status).observe(seconds)
            elif point == EVICTION:
                result = "success" if isinstance(attempt.state, Done) and attempt.state.evicted else "error"
                self._evictions.child(result).inc()
                self._eviction_seconds.child(result).observe(seconds)
            else:
                self._points[point, status, profile].observe(seconds)
        for plugin, point, status, seconds in watch.plugin_laps:
            self._plugins[plugin, point, status].observe(seconds)

    def counted(self, metric: str, labels: Sequence[str]) -> None:
        self._family(metric).child(*labels).inc()

    def measured(self, metric: str, seconds: float, labels: Sequence[str]) -> None:
        self._family(metric).child(*labels).observe(seconds)

    # -- who was asked ------------------------------------------------------------------------------------------------

    def _note_evaluations(self, decision: Decision) -> None:
        cycle, trace = decision.cycle, decision.trace
        if trace.pre_filter is None:
            return
        self._filtered[decision.profile, cycle.skipped_filters] += 1
        if trace.scores is not None:
            self._scored[decision.profile, cycle.skipped_scores] += 1

    def _count_evaluations(self) -> None:
        for (name, skipped), attempts in self._filtered.items():
            profile = self._profiles[name]
            self._evaluated("PreFilter", name, (p.name for p in profile.at("pre_filter", PreFilterPlugin)), attempts)
            filters = (p.name for p in profile.at("filter", FilterPlugin) if p.name not in skipped)
            self._evaluated("Filter", name, filters, attempts)
        for (name, skipped), attempts in self._scored.items():
            profile = self._profiles[name]
            self._evaluated("PreScore", name, (p.name for p in profile.at("pre_score", PreScorePlugin)), attempts)
            scores = (plugin.name for plugin, _ in profile.scores if plugin.name not in skipped)
            self._evaluated("Score", name, scores, attempts)
        self._filtered.clear()
        self._scored.clear()

    def _evaluated(self, point: str, profile: str, plugins: Iterable[str], attempts: int) -> None:
        for plugin in plugins:
            self._evaluations.child(plugin, point, profile).inc(attempts)


class ClientMetrics:
    """A `ClientObserver` that counts."""

    def __init__(self, registry: MetricsRegistry, clock: Callable[[], float]) -> None:
        """`clock` has seconds for durations."""
        self.now = clock
        self._calls = registry.family("scheduler_async_api_call_execution_total").children
        self._call_seconds = registry.family("scheduler_async_api_call_execution_duration_seconds").children
        self._pending_calls = registry.family("scheduler_pending_async_api_calls").children

    def writing(self, call: str, by: int) -> None:
        self._pending_calls[call,].inc(by)

    def wrote(self, call: str, result: str, seconds: float) -> None:
        self._calls[call, result].inc()
        self._call_seconds[call, result].observe(seconds)


def _watch_of(attempt: Attempt) -> Stopwatch:
    assert attempt.watch is not None  # given to it in `popped`
    return attempt.watch


_PROFILE = attrgetter("pod.spec.scheduler_name")
_QUEUES = {"Active": "active", "Backoff": "backoff", "Unschedulable": "unschedulable"}


def _tried_preemption(decision: Decision) -> bool:
    """Whether the attempt came as far as preemption: a post-filter before it may have ended the matter."""
    status = decision.post_filter_status
    if status is None:
        return decision.post_filter is not None and bool(decision.post_filter.nominated)
    return status.code is Code.UNSCHEDULABLE or status.plugin == DefaultPreemption.name
