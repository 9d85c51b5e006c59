"""The last decisions of a scheduler: what was decided, why, how long it took, and who had to go for whom."""

from __future__ import annotations

import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kubesched.api.change import Change
from kubesched.api.meta import KubeObject
from kubesched.api.pod import Pod
from kubesched.framework.stopwatch import Stopwatch
from kubesched.scheduler.attempt.attempt import Attempt, AttemptOutcome
from kubesched.scheduler.attempt.words import reason
from kubesched.scheduler.listener import SchedulerListener

_REMEMBERED = 2_000
_PREEMPTIONS = 500
_PODS = 20_000
_ATTEMPTS_OF_A_POD = 12
_IN_DETAIL = 8
"""One of so many attempts is measured plugin by plugin, while somebody looks."""


@dataclass(frozen=True, slots=True)
class DecisionEntry:
    """One attempt that is over."""

    number: int
    at: float
    """By the clock of the queue."""
    pod: str
    priority: int
    outcome: str
    node: str
    text: str
    attempt: int
    """Which attempt at the pod it was."""
    plugins: tuple[str, ...] = ()
    """Who rejected it."""
    reasons: tuple[tuple[str, int], ...] = ()
    """What was wrong with how many nodes, the most frequent first."""
    milliseconds: float | None = None


@dataclass(frozen=True, slots=True)
class PreemptionEntry:
    """Pods that had to go, and for whom."""

    at: float
    pod: str
    priority: int
    node: str
    victims: tuple[tuple[str, int], ...]
    """Their names and priorities."""
    why: str


@dataclass(frozen=True, slots=True)
class Latency:
    """How long attempts took, in milliseconds, from the turn in the queue to the end of the writing."""

    attempts: int
    p50: float
    p90: float
    p99: float
    slowest: float


class DecisionLog(SchedulerListener):
    """Listens to a scheduler. It measures only while somebody looks: until then attempts cost it a line each."""

    def __init__(self, clock: Callable[[], float], stopwatch: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._stopwatch = stopwatch
        self.entries: deque[DecisionEntry] = deque(maxlen=_REMEMBERED)
        self.preemptions: deque[PreemptionEntry] = deque(maxlen=_PREEMPTIONS)
        self.outcomes: Counter[str] = Counter()
        self.number = 0
        self.viewers = 0
        """How many pages are open."""
        self.points: dict[tuple[str, str], float] = {}
        """Seconds by plugin and extension point, of the attempts that were measured in detail."""
        self.in_detail = 0
        """How many those are."""
        self._seconds: deque[float] = deque(maxlen=_REMEMBERED)
        self._of_pods: OrderedDict[str, deque[DecisionEntry]] = OrderedDict()

    # -- what happens -------------------------------------------------------------------------------------------------

    def popped(self, attempt: Attempt) -> None:
        if self.viewers and attempt.watch is None:
            attempt.watch = Stopwatch(self._stopwatch, is_detailed=attempt.number % _IN_DETAIL == 0)

    def finished(self, attempt: Attempt) -> None:
        if attempt.outcome is None or attempt.outcome is AttemptOutcome.SKIPPED:
            return
        self.number += 1
        outcome = "preempts" if attempt.victims else str(attempt.outcome)
        self.outcomes[outcome] += 1
        entry = self._entry(attempt, outcome)
        self.entries.append(entry)
        self._remember(entry)
        if attempt.victims:
            self._note_preemption(attempt, entry)
        if attempt.watch is not None:
            self._measure(attempt.watch)

    def handled(self, change: Change[KubeObject], events: object, seconds: float) -> None:
        if change.new is None and isinstance(change.old, Pod):
            self._of_pods.pop(change.old.key, None)

    def _entry(self, attempt: Attempt, outcome: str) -> DecisionEntry:
        queued, failure, decision = attempt.queued, attempt.failure, attempt.decision
        plugins: tuple[str, ...] = ()
        reasons: tuple[tuple[str, int], ...] = ()
        if failure is not None:
            plugins = tuple(sorted(failure.unschedulable_plugins | failure.pending_plugins))
            diagnosis = decision.diagnosis if decision is not None else None
            if diagnosis is not None and diagnosis.rejected is None:
                reasons = tuple(Counter(diagnosis.reasons()).most_common())
            else:
                reasons = ((failure.status.message or failure.message, 0),)
        watch = attempt.watch
        return DecisionEntry(
            self.number,
            self._clock(),
            queued.key,
            queued.pod.priority,
            outcome,
            attempt.node,
            reason(attempt),
            queued.attempts,
            plugins,
            reasons,
            None if watch is None else round(watch.elapsed() * 1e3, 3),
        )

    def _remember(self, entry: DecisionEntry) -> None:
        known = self._of_pods.pop(entry.pod, None)
        if known is None:
            known = deque(maxlen=_ATTEMPTS_OF_A_POD)
        known.append(entry)
        self._of_pods[entry.pod] = known
        if len(self._of_pods) > _PODS:
            self._of_pods.popitem(last=False)

    def _note_preemption(self, attempt: Attempt, entry: DecisionEntry) -> None:
        assert attempt.failure is not None
        victims = tuple(sorted((victim.pod.key, victim.pod.priority) for victim in attempt.victims))
        why = ", ".join(f"{text} ({nodes:,})" if nodes else text for text, nodes in entry.reasons)
        node = attempt.failure.nominated or ""
        self.preemptions.append(PreemptionEntry(entry.at, entry.pod, entry.priority, node, victims, why))

    def _measure(self, watch: Stopwatch) -> None:
        self._seconds.append(watch.elapsed())
        if watch.is_detailed:
            self.in_detail += 1
            for plugin, point, _, seconds in watch.plugin_laps:
                self.points[plugin, point] = self.points.get((plugin, point), 0.0) + seconds

    # -- what is asked ------------------------------------------------------------------------------------------------

    def since(self, number: int, most: int) -> list[DecisionEntry]:
        """The entries after that number, oldest first; of very many, the last."""
        new = min(self.number - number, most, len(self.entries))
        return [self.entries[i] for i in range(len(self.entries) - new, len(self.entries))] if new > 0 else []

    def of(self, pod: str) -> list[DecisionEntry]:
        """What became of the attempts at a pod, the latest last."""
        return list(self._of_pods.get(pod, ()))

    def latest(self, pod: str) -> DecisionEntry | None:
        known = self._of_pods.get(pod)
        return known[-1] if known else None

    def latency(self) -> Latency | None:
        """None if nothing was measured yet."""
        if not self._seconds:
            return None
        values = np.array(self._seconds) * 1e3
        p50, p90, p99 = (round(float(value), 3) for value in np.percentile(values, (50, 90, 99)))
        return Latency(len(values), p50, p90, p99, round(float(values.max()), 3))
