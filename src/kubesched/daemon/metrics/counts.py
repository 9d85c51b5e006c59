"""What many attempts at pods amount to in metrics, counted all at once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from kubesched.daemon.metrics.family import alike
from kubesched.daemon.metrics.registry import MetricsRegistry
from kubesched.framework.plugin import FilterPlugin, Plugin, PreFilterPlugin, PreScorePlugin
from kubesched.framework.profile import Profile
from kubesched.framework.stopwatch import Lap, PluginLap
from kubesched.scheduler.attempt.attempt import EVICTION

PERMIT_WAIT = "PermitWait"
"""What a stopwatch calls the time that a pod waited for Permit plugins."""

Skipped = frozenset[str]
"""The plugins that were not asked."""

Searched = tuple[tuple[str, Skipped | None, Skipped | None], tuple[float, tuple[Lap, ...]]]
"""A node was found, or none. The profile, the plugins that did not filter, and those that did not score, None if it did
not come to that; seconds and laps until now."""

Failed = tuple[tuple[str, str], float]
"""An attempt has failed, though it may not be over. Result and profile; seconds."""

Over = tuple[tuple[str, int | None, bool, bool], float, float, list[Lap], list[PluginLap]]
"""An attempt is over. The profile, attempts that it took to bind the pod, None if it is not bound, whether nothing but
time had brought it back to the queue, whether all victims are on their way out; seconds, seconds since the first
attempt, laps, laps of plugins."""

_Texts = tuple[str, ...]
_MANY_ATTEMPTS = 15
_ONCE_A_NODE_IS_FOUND = frozenset({"Reserve", "Unreserve", "Permit"})


class AttemptCounts:
    """Takes lists of the tuples above."""

    def __init__(self, registry: MetricsRegistry, profiles: Mapping[str, Profile]) -> None:
        family = registry.family
        self._profiles = profiles
        self._attempts = family("scheduler_schedule_attempts_total")
        self._attempt_seconds = family("scheduler_scheduling_attempt_duration_seconds")
        self._algorithm = family("scheduler_scheduling_algorithm_duration_seconds").child()
        self._sli = family("scheduler_pod_scheduling_sli_duration_seconds")
        self._attempts_needed = family("scheduler_pod_scheduling_attempts").child()
        self._after_flush = family("scheduler_pod_scheduled_after_flush_total").child()
        self._points = family("scheduler_framework_extension_point_duration_seconds")
        self._plugins = family("scheduler_plugin_execution_duration_seconds")
        self._permit_wait = family("scheduler_permit_wait_duration_seconds")
        self._evictions = family("scheduler_preemption_goroutines_execution_total")
        self._eviction_seconds = family("scheduler_preemption_goroutines_duration_seconds")
        self._evaluations = family("scheduler_plugin_evaluation_total")

    def searched(self, attempts: list[Searched]) -> None:
        for (profile, no_filters, no_scores), some in alike(attempts).items():
            self._algorithm.observe_all([seconds - _later(laps) for seconds, laps in some])
            self._count_evaluations(profile, no_filters, no_scores, len(some))

    def failed(self, attempts: list[Failed]) -> None:
        for (result, profile), seconds in alike(attempts).items():
            self._count_attempts(result, profile, seconds)

    def over(self, attempts: list[Over]) -> None:
        """Nearly all attempts have the same laps: they are sorted by that, and then counted lap by lap."""
        for ((profile, tries, flushed, has_evicted), points, statuses), some in alike(map(_by_laps, attempts)).items():
            seconds, waited, laps = zip(*some)
            if tries is not None:
                self._count_attempts("scheduled", profile, seconds)
                self._attempts_needed.observe(tries, len(some))
                self._sli.observe_all((_tries(tries),), waited)
                self._after_flush.inc(len(some) * flushed)
            for point, status, each in zip(points, statuses, zip(*laps)):
                self._count_point(point, status, profile, has_evicted, each)
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
        """Who was asked."""
        if no_filters is None:
            return
        profile = self._profiles[name]
        self._evaluated("PreFilter", name, profile.at("pre_filter", PreFilterPlugin), (), times)
        self._evaluated("Filter", name, profile.at("filter", FilterPlugin), no_filters, times)
        if no_scores is not None:
            self._evaluated("PreScore", name, profile.at("pre_score", PreScorePlugin), (), times)
            self._evaluated("Score", name, [plugin for plugin, _ in profile.scores], no_scores, times)

    def _evaluated(
        self, point: str, profile: str, plugins: Iterable[Plugin], but: Collection[str], attempts: int
    ) -> None:
        for plugin in plugins:
            if plugin.name not in but:
                self._evaluations.inc((plugin.name, point, profile), attempts)


def _later(laps: Iterable[Lap]) -> float:
    return sum([seconds for point, _, seconds in laps if point in _ONCE_A_NODE_IS_FOUND])


def _tries(attempts: int) -> str:
    return f"{_MANY_ATTEMPTS}+" if attempts >= _MANY_ATTEMPTS else str(attempts)


def _by_laps(attempt: Over) -> tuple[tuple[Any, _Texts, _Texts], tuple[float, float, tuple[float, ...]]]:
    """What it has in common with most attempts, and what it has not."""
    about, seconds, waited, laps, _ = attempt
    if not laps:
        return (about, (), ()), (seconds, waited, ())
    points, statuses, each = zip(*laps)
    return (about, points, statuses), (seconds, waited, each)
