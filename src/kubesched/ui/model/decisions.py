"""What a scheduler decided: each attempt that is over, how long it took, and who had to go for whom."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable
from functools import partial

import numpy as np

from kubesched.api.change import Change
from kubesched.api.meta import KubeObject
from kubesched.api.pod import Pod
from kubesched.framework.stopwatch import Stopwatch
from kubesched.scheduler.attempt.attempt import Attempt, AttemptOutcome, Failure
from kubesched.scheduler.attempt.words import Placing, facts_of, reason, why_placed
from kubesched.scheduler.listener import SchedulerListener
from kubesched.ui.model.entries import REMEMBERED, DecisionEntry, EntryLog, Latency, Noted, PreemptionEntry

_IN_DETAIL = 8
"""One of so many attempts is measured plugin by plugin, while somebody looks."""


class DecisionLog(EntryLog, SchedulerListener):
    """Listens to a scheduler. It measures only while somebody looks: until then attempts cost it a line each."""

    def __init__(self, clock: Callable[[], float], stopwatch: Callable[[], float] | None = time.perf_counter) -> None:
        """Without a stopwatch nothing is measured: where attempts are repeated, how long they take says nothing."""
        super().__init__(clock)
        self._stopwatch = stopwatch
        self._seconds: deque[float] = deque(maxlen=REMEMBERED)

    # -- what happens -------------------------------------------------------------------------------------------------

    def popped(self, attempt: Attempt) -> None:
        if self.viewers and self._stopwatch is not None and attempt.watch is None:
            attempt.watch = Stopwatch(self._stopwatch, is_detailed=attempt.number % _IN_DETAIL == 0)

    def finished(self, attempt: Attempt) -> None:
        outcome, victims = attempt.outcome, attempt.victims
        if outcome is None or outcome is AttemptOutcome.SKIPPED:
            return
        queued, watch = attempt.queued, attempt.watch
        seconds = None if watch is None else self._measure(watch)
        if attempt.failure is None:
            self.note(queued.key, outcome.value, self._placed(attempt, outcome.value, seconds))
            return
        entry = self._failed(attempt, attempt.failure, "preempts" if victims else outcome.value, seconds)
        self.note(queued.key, entry.outcome, entry)
        if victims:
            self._note_preemption(attempt, entry)

    def handled(self, change: Change[KubeObject], events: object, seconds: float) -> None:
        if change.new is None and isinstance(change.old, Pod):
            self.forget(change.old.key)

    def _placed(self, attempt: Attempt, outcome: str, seconds: float | None) -> Noted:
        """The usual end of an attempt. Its words are found when somebody wants to read them."""
        queued, decision = attempt.queued, attempt.decision
        assert decision is not None
        number, at = self.number + 1, self._clock()
        about = (queued.key, queued.pod.priority, outcome, attempt.node)
        return partial(_placed_entry, number, at, about, facts_of(decision), queued.attempts, seconds)

    def _failed(self, attempt: Attempt, failure: Failure, outcome: str, seconds: float | None) -> DecisionEntry:
        queued, decision = attempt.queued, attempt.decision
        diagnosis = decision.diagnosis if decision is not None else None
        if diagnosis is not None and diagnosis.rejected is None:
            reasons = tuple(Counter(diagnosis.reasons()).most_common())
        else:
            reasons = ((failure.status.message or failure.message, 0),)
        return DecisionEntry(
            self.number + 1,
            self._clock(),
            queued.key,
            queued.pod.priority,
            outcome,
            attempt.node,
            reason(attempt),
            queued.attempts,
            tuple(sorted(failure.unschedulable_plugins | failure.pending_plugins)),
            reasons,
            _milliseconds(seconds),
        )

    def _note_preemption(self, attempt: Attempt, entry: DecisionEntry) -> None:
        assert attempt.failure is not None
        victims = tuple(sorted((victim.pod.key, victim.pod.priority) for victim in attempt.victims))
        why = ", ".join(f"{text} ({nodes:,})" if nodes else text for text, nodes in entry.reasons)
        node = attempt.failure.nominated or ""
        self.preemptions.append(PreemptionEntry(entry.at, entry.pod, entry.priority, node, victims, why))

    def _measure(self, watch: Stopwatch) -> float:
        seconds = watch.elapsed()
        self._seconds.append(seconds)
        if watch.is_detailed:
            self.in_detail += 1
            for plugin, point, _, of_plugin in watch.plugin_laps:
                self.points[plugin, point] = self.points.get((plugin, point), 0.0) + of_plugin
        return seconds

    def latency(self) -> Latency | None:
        """None if nothing was measured yet."""
        if not self._seconds:
            return None
        values = np.array(self._seconds) * 1e3
        p50, p90, p99 = (round(float(value), 3) for value in np.percentile(values, (50, 90, 99)))
        return Latency(len(values), p50, p90, p99, round(float(values.max()), 3))


def _placed_entry(
    number: int,
    at: float,
    about: tuple[str, int, str, str],
    facts: Placing,
    attempts: int,
    seconds: float | None,
) -> DecisionEntry:
    """`about` is the pod, its priority, the outcome and the node."""
    text = why_placed(about[3], facts)
    return DecisionEntry(number, at, *about, text, attempts, milliseconds=_milliseconds(seconds))


def _milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * 1e3, 3)
