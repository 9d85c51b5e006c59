"""What a scheduler decided: each attempt that is over, how long it took, and who had to go for whom."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable

import numpy as np

from kubesched.api.change import Change
from kubesched.api.meta import KubeObject
from kubesched.api.pod import Pod
from kubesched.framework.decision_view import main_reason
from kubesched.framework.stopwatch import Stopwatch
from kubesched.scheduler.attempt.attempt import Attempt, AttemptOutcome, Done, Failure
from kubesched.scheduler.attempt.words import reason
from kubesched.scheduler.listener import SchedulerListener
from kubesched.ui.model.entries import REMEMBERED, DecisionEntry, EntryLog, Latency, PreemptionEntry, in_milliseconds

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
        state, queued, watch = attempt.state, attempt.queued, attempt.watch
        if not isinstance(state, Done) or state.outcome is AttemptOutcome.SKIPPED:
            return
        seconds = None if watch is None else self._measure(watch)
        decision, failure = state.decision, state.failure
        if failure is None:
            # The usual end, of which a busy scheduler has thousands a second: noted as it is, for whoever asks.
            assert decision is not None
            pod, number = decision.pod, self.number + 1
            why = (
                pod.status.nominated_node_name,
                decision.evaluated,
                decision.feasible,
                decision.score,
                decision.draw.among,
            )
            key = queued.key
            placement = (number, self._clock(), key, pod.priority, decision.node, why, queued.attempts, seconds)
            self.note(key, "bound", placement)
            return
        entry = self._failed(attempt, failure, "preempts" if state.victims else state.outcome.value, seconds)
        self.note(queued.key, entry.outcome, entry)
        if state.victims:
            self._note_preemption(attempt, entry)

    def handled(self, change: Change[KubeObject], events: object, seconds: float) -> None:
        if change.new is None and isinstance(change.old, Pod):
            self.forget(change.old.key)

    def _failed(self, attempt: Attempt, failure: Failure, outcome: str, seconds: float | None) -> DecisionEntry:
        queued, decision = attempt.queued, attempt.decision
        diagnosis = decision.diagnosis if decision is not None else None
        if diagnosis is not None and diagnosis.rejected is None:
            reasons, cause = tuple(Counter(diagnosis.reasons()).most_common()), main_reason(diagnosis)
        else:
            cause = failure.status.message or failure.message
            reasons = ((cause, 0),)
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
            in_milliseconds(seconds),
            cause,
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
