"""What is measured of one scheduler in one run."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Mapping
from typing import Self

import msgspec

from bench.peer.pods import PodWatch
from bench.peer.schedulers import Scheduler

_EVERY = 0.02
"""Seconds between two looks at whether a pod is bound."""


class Result(msgspec.Struct, frozen=True):
    """One run."""

    pods: int
    seconds: float
    """From the start of the measurement to the last binding; where pods waited for a scheduler, from the first one."""
    cpu_seconds: float
    """Of the scheduler, until it came to rest: with its Events."""
    attempts: dict[str, int]
    """By result."""
    queued: dict[str, int]
    """Pods that came into a queue, by queue and event: who woke whom."""
    rss_mb: float
    peak_rss_mb: float
    p50: float
    """Seconds from the request that made a pod to its binding."""
    p99: float
    seen_p50: float = 0.0
    """Seconds from when a watch showed the pod to its binding: what the API server needs to make a pod is not in it."""
    seen_p99: float = 0.0
    others_cpu_seconds: float = 0.0
    """CPU of the API server, etcd, controllers and the load generator: no scheduler can be faster than these."""
    cuts: int = 0
    """How often the API server cut the watch by which bindings are timed here: then latencies are too long."""
    first_seconds: float = 0.0
    """From the birth of the scheduler's process to the first binding, where it was born for the measurement."""
    first_cpu_seconds: float = 0.0
    """What it had used by then."""

    @property
    def pods_per_second(self) -> float:
        return self.pods / self.seconds if self.seconds else 0.0

    @property
    def cpu_ms_per_pod(self) -> float:
        return self.cpu_seconds * 1000 / self.pods if self.pods else 0.0

    @property
    def others_cpu_ms_per_pod(self) -> float:
        return self.others_cpu_seconds * 1000 / self.pods if self.pods else 0.0


class Meter:
    """Begins to measure when it is made."""

    def __init__(
        self,
        scheduler: Scheduler,
        watch: PodWatch,
        namespaces: tuple[str, ...],
        selector: Mapping[str, str],
        *,
        is_born: bool = False,
    ) -> None:
        self._scheduler = scheduler
        self._watch = watch
        self._namespaces = namespaces
        self._selector = selector
        self._counted = scheduler.counted() if not is_born else Counter[str]()
        self._cpu = scheduler.cpu_seconds()
        self._others_cpu = scheduler.cpu_seconds_of_others()
        self._since = self._began = time.monotonic()
        self._first = 0.0, 0.0

    @classmethod
    def from_birth(cls, scheduler: Scheduler, watch: PodWatch, namespaces: tuple[str, ...]) -> Self:
        """Everything that a scheduler has done since its process began; time counts from the first binding."""
        meter = cls(scheduler, watch, namespaces, {}, is_born=True)
        meter._cpu, meter._since = 0.0, 0.0
        return meter

    async def note_first_binding(self) -> None:
        """Wait for it."""
        while not any(map(self._watch.count_bound, self._namespaces)):
            await asyncio.sleep(_EVERY)
        self._first = time.monotonic() - self._began, self._scheduler.cpu_seconds()

    def result(self) -> Result:
        """What has happened since."""
        cpu = self._scheduler.cpu_seconds() - self._cpu
        others_cpu = self._scheduler.cpu_seconds_of_others() - self._others_cpu
        bound = self._watch.bound(self._namespaces, self._selector, self._since)
        begun = self._since or min((each.bound for each in bound), default=0.0)
        waits = sorted(each.bound - each.created for each in bound)
        seen = sorted(each.bound - each.seen for each in bound)
        counted = self._scheduler.counted()
        counted.subtract(self._counted)
        return Result(
            pods=len(bound),
            seconds=max((each.bound for each in bound), default=begun) - begun,
            cpu_seconds=cpu,
            attempts={name: count for name, count in (+counted).items() if " " not in name},
            queued={name: count for name, count in (+counted).items() if " " in name},
            rss_mb=self._scheduler.rss_mb(),
            peak_rss_mb=self._scheduler.peak_rss_mb(),
            p50=quantile(waits, 0.5),
            p99=quantile(waits, 0.99),
            seen_p50=quantile(seen, 0.5),
            seen_p99=quantile(seen, 0.99),
            others_cpu_seconds=others_cpu,
            cuts=self._watch.cuts,
            first_seconds=self._first[0],
            first_cpu_seconds=self._first[1],
        )


def quantile(ordered: list[float], share: float) -> float:
    """The value that this share of all does not exceed; 0 where there are none."""
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0.0
