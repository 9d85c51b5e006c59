"""The last decisions about pods: what was decided, why, how long it took, who was evicted; noted or seen in changes."""

from __future__ import annotations

import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from kubesched.api.change import Change
from kubesched.api.meta import KubeObject
from kubesched.api.pod import Pod
from kubesched.framework.decision_view import main_reason
from kubesched.framework.stopwatch import Stopwatch
from kubesched.scheduler.attempt.attempt import Attempt, AttemptOutcome, Done, Failure
from kubesched.scheduler.attempt.words import Placing, reason, why_placed
from kubesched.scheduler.listener import SchedulerListener
from kubesched.simulate.cluster import waits

_IN_DETAIL = 8
"""One of so many attempts is measured plugin by plugin, while a page is open."""
REMEMBERED = 2_000
_PREEMPTIONS = 500
_PODS = 20_000
_ATTEMPTS_OF_A_POD = 12
_SCHEDULED = "PodScheduled"


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
    cause: str = ""
    """Of the reasons the one by which pending pods are grouped (`main_reason`)."""
    times: int = 1
    """How many attempts in a row ended like this one, the last of them."""
    first: float | None = None
    """When the first of several did."""


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


Placement = tuple[int, float, str, int, str, tuple[str, int, int, int, int], int, float | None]
"""Of a pod that was bound: number, time, pod, priority, node, why there (`Placing`), attempt, seconds."""

NotedDecision = DecisionEntry | Placement
"""An entry, or what one is made from: most decisions of a busy scheduler are never read."""


def _as_entry(noted: NotedDecision) -> DecisionEntry:
    if isinstance(noted, DecisionEntry):
        return noted
    number, at, pod, priority, node, placing, attempt, seconds = noted
    text = why_placed(node, Placing(*placing))
    return DecisionEntry(number, at, pod, priority, "bound", node, text, attempt, milliseconds=in_milliseconds(seconds))


def _appended(known: tuple[NotedDecision, ...], entry: NotedDecision) -> tuple[NotedDecision, ...]:
    """One more attempt at a pod; one that ended like the last takes its place, and counts it."""
    last = known[-1]
    if isinstance(last, DecisionEntry) and isinstance(entry, DecisionEntry) and _ending(last) == _ending(entry):
        first = last.at if last.first is None else last.first
        return (*known[:-1], replace(entry, times=last.times + 1, first=first))
    return (*known[1 - _ATTEMPTS_OF_A_POD :], entry)


def _ending(entry: DecisionEntry) -> tuple[str, str, str]:
    return entry.outcome, entry.node, entry.text


def in_milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * 1e3, 3)


class EntryLog:
    """What is remembered, all of it bounded. Whoever sees decisions derives from it and notes them."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """`clock` is that of the entries."""
        self._clock = clock
        self._last: deque[NotedDecision] = deque(maxlen=REMEMBERED)
        self.preemptions: deque[PreemptionEntry] = deque(maxlen=_PREEMPTIONS)
        self.outcomes: Counter[str] = Counter()
        self.number = 0
        """That of the last entry."""
        self.viewers = 0
        """How many pages are open."""
        self.points: dict[tuple[str, str], float] = {}
        """Seconds by plugin and extension point, of the attempts that were measured in detail."""
        self.in_detail = 0
        """How many those are."""
        self._of_pods: OrderedDict[str, tuple[NotedDecision, ...]] = OrderedDict()

    @property
    def entries(self) -> list[DecisionEntry]:
        """The last ones, oldest first."""
        return [_as_entry(entry) for entry in self._last]

    def note(self, pod: str, outcome: str, entry: NotedDecision) -> None:
        """One more, whose number is the next."""
        self.number += 1
        self.outcomes[outcome] += 1
        self._last.append(entry)
        known = self._of_pods.pop(pod, None)
        self._of_pods[pod] = (entry,) if known is None else _appended(known, entry)
        if len(self._of_pods) > _PODS:
            self._of_pods.popitem(last=False)

    def forget(self, pod: str) -> None:
        """The pod is gone."""
        self._of_pods.pop(pod, None)

    def since(self, number: int, most: int) -> list[DecisionEntry]:
        """The entries after that number, oldest first; of very many, the last."""
        last = self._last
        new = min(self.number - number, most, len(last))
        return [_as_entry(last[i]) for i in range(len(last) - new, len(last))] if new > 0 else []

    def of(self, pod: str) -> list[DecisionEntry]:
        """What became of the attempts at a pod, the latest last."""
        return [_as_entry(entry) for entry in self._of_pods.get(pod, ())]

    def latest(self, pod: str) -> DecisionEntry | None:
        known = self._of_pods.get(pod)
        return _as_entry(known[-1]) if known else None

    def latency(self) -> Latency | None:
        """How long attempts took; None if nothing was measured."""
        return None


class DecisionLog(EntryLog, SchedulerListener):
    """Listens to a scheduler. It measures only while a page is open: until then it notes one line per attempt."""

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
            # The usual end, of which a busy scheduler has thousands a second: noted as it is.
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


class SeenDecisions(EntryLog, SchedulerListener):
    """Notes what changes of pods amount to, and keeps count of those that wait. Lists are not news, watches are."""

    def __init__(self, clock: Callable[[], float], pods: Iterable[Pod] = ()) -> None:
        """`pods` are those that there are already."""
        super().__init__(clock)
        self._waiting = {pod.key: pod for pod in pods if waits(pod)}

    def without_node(self) -> Iterator[Pod]:
        """Pods that have no node, now."""
        return iter(tuple(self._waiting.values()))

    def handling(self, change: Change[KubeObject]) -> None:
        match change:
            case Change(Pod() as old, None):
                self.forget(old.key)
                self._waiting.pop(old.key, None)
            case Change(old, Pod() as new):
                if waits(new):
                    self._waiting[new.key] = new
                else:
                    self._waiting.pop(new.key, None)
                if isinstance(old, Pod):
                    self._compare(old, new)

    def _compare(self, old: Pod, new: Pod) -> None:
        if new.spec.node_name:
            if not old.spec.node_name:
                self._see(new, "bound", new.spec.node_name, f"bound by {new.spec.scheduler_name}")
            return
        nominated, message = new.status.nominated_node_name, why_unscheduled(new)
        if nominated and nominated != old.status.nominated_node_name:
            self._see(new, "preempts", nominated, f"room is being made on {nominated}")
        elif message and message != why_unscheduled(old):
            self._see(new, "unschedulable", "", message)

    def _see(self, pod: Pod, outcome: str, node: str, text: str) -> None:
        attempt = sum(entry.times for entry in self.of(pod.key)) + 1
        entry = DecisionEntry(self.number + 1, self._clock(), pod.key, pod.priority, outcome, node, text, attempt)
        self.note(pod.key, outcome, entry)


def why_unscheduled(pod: Pod) -> str:
    """What the scheduler in charge last said about a pod that it could not place."""
    for condition in pod.status.conditions:
        if condition.type == _SCHEDULED and condition.status == "False":
            return condition.message or condition.reason
    return ""
