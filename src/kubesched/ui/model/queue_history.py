"""The queue over time: how many pods were where, second by second, and how many attempts there were."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from kubesched.scheduler.queue.scheduling_queue import SchedulingQueue
from kubesched.scheduler.queue.unschedulable_pods import UnschedulablePods
from kubesched.ui.model.decisions import Latency, PreemptionEntry
from kubesched.ui.model.observed import ObservedCluster

_SAMPLES = 900
_SLOWEST = 10
_PREEMPTIONS = 200


@dataclass(frozen=True, slots=True)
class QueueCounts:
    """How many pods are where."""

    active: int = 0
    backoff: int = 0
    unschedulable: int = 0
    gated: int = 0


QueueSample = tuple[float, int, int, int, int, int, int]
"""Time, active, backoff, unschedulable, gated; all attempts until then, and those of them that ended in a binding."""


@dataclass(frozen=True, slots=True)
class PluginTime:
    """What a plugin costs at an extension point, in microseconds per attempt that was measured.

    Of an extender it is the time of waiting for an answer, per question; attempts at other pods go on meanwhile.
    """

    plugin: str
    point: str
    microseconds: float
    questions: int | None = None
    """How often an extender was asked."""
    failures: int | None = None


@dataclass(frozen=True, slots=True)
class QueueView:
    """All of it, for the view of queue and time."""

    now: float
    counts: QueueCounts
    samples: tuple[QueueSample, ...]
    outcomes: dict[str, int]
    latency: Latency | None
    plugins: tuple[PluginTime, ...]
    """The slowest, and extenders among them."""
    preemptions: tuple[PreemptionEntry, ...]
    """The latest first."""


class QueueHistory:
    """Takes samples and shows them."""

    def __init__(self, observed: ObservedCluster) -> None:
        self._observed = observed
        self._samples: deque[QueueSample] = deque(maxlen=_SAMPLES)

    def sample(self) -> None:
        """To be called every second."""
        log = self._observed.log
        attempts, bound = (log.number, log.outcomes["bound"]) if log is not None else (0, 0)
        at, counts = round(self._observed.clock(), 2), self.counts()
        sizes = (counts.active, counts.backoff, counts.unschedulable, counts.gated)
        self._samples.append((at, *sizes, attempts, bound))

    def counts(self) -> QueueCounts:
        """Now."""
        queue = self._observed.queue
        if queue is not None:
            return counts_of(queue)
        return QueueCounts(unschedulable=sum(1 for _ in self._observed.waiting()))

    def view(self) -> QueueView:
        log = self._observed.log
        return QueueView(
            now=self._observed.clock(),
            counts=self.counts(),
            samples=tuple(self._samples),
            outcomes=dict(log.outcomes) if log is not None else {},
            latency=log.latency() if log is not None else None,
            plugins=self._slowest(),
            preemptions=tuple(reversed(log.preemptions))[:_PREEMPTIONS] if log is not None else (),
        )

    def _slowest(self) -> tuple[PluginTime, ...]:
        log = self._observed.log
        times = [
            PluginTime(extender.name, verb, round(spent.mean * 1e6, 1), spent.questions, spent.failures)
            for extender in self._observed.extenders
            for verb, spent in extender.times.items()
        ]
        if log is not None and log.in_detail:
            times += (PluginTime(*names, round(sec / log.in_detail * 1e6, 1)) for names, sec in log.points.items())
        return tuple(sorted(times, key=lambda time: -time.microseconds)[:_SLOWEST])


def counts_of(queue: SchedulingQueue) -> QueueCounts:
    """Gated pods are in one pool with the unschedulable; they are counted by group, not one by one."""
    places = queue.places()
    gated = sum(
        len(members)
        for place in places["unschedulable"]
        if isinstance(place, UnschedulablePods)
        for group, members in place.classes()
        if group.gating_plugin
    )
    sizes = {name: sum(len(place) for place in parts) for name, parts in places.items()}
    return QueueCounts(sizes["active"], sizes["backoff"], sizes["unschedulable"] - gated, gated)
