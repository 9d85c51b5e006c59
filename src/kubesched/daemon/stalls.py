"""The watchdog over the event loop, which counts and logs when the loop stands still: then nothing is read or written.

A tick that comes late shows a stall. The culprit is the longest work of the scheduler since the tick before.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from kubesched.api.change import Change
from kubesched.api.meta import KubeObject
from kubesched.daemon.log import Log
from kubesched.daemon.metrics.registry import MetricsRegistry
from kubesched.framework.events import ClusterEvent
from kubesched.scheduler.attempt.attempt import Attempt
from kubesched.scheduler.groups.group_attempt import GroupAttempt
from kubesched.scheduler.listener import SchedulerListener

LONGEST = 0.05
"""Seconds that the event loop may stand still; also from one tick to the next."""

log = Log(__name__)


class Work(NamedTuple):
    """Work that the event loop did without a break."""

    seconds: float
    sort: str
    name: str


_NOTHING = Work(LONGEST / 5, "other", "nothing that took long by itself")
_AWAY = "machine", "the thread had no processor, or waited for the disk"


class Stalls(SchedulerListener):
    """Listens to the scheduler, and ticks beside it."""

    def __init__(self, registry: MetricsRegistry, cpu: Callable[[], float] = time.thread_time) -> None:
        """`cpu` has the seconds that the thread has worked."""
        self._cpu = cpu
        self._stalls = registry.family("kubesched_event_loop_stalls_total")
        self._longest = _NOTHING

    def handled(self, change: Change[KubeObject], events: Sequence[ClusterEvent], seconds: float) -> None:
        if seconds > self._longest.seconds:
            self._longest = Work(seconds, "event", f"{type(change.obj).__name__} {change.obj.key} {change.verb}")

    def decided(self, attempt: Attempt) -> None:
        watch = attempt.watch
        if watch is not None and watch.elapsed() > self._longest.seconds:
            seconds = sum(lap[-1] for lap in watch.laps)  # of its last turn
            if seconds > self._longest.seconds:
                point, _, longest = max(watch.laps, key=lambda lap: lap[-1])
                plugin = next((lap[0] for lap in watch.plugin_laps if lap[-1] > longest / 2), "")
                self._longest = Work(seconds, "decision", f"Pod {attempt.queued.key} {point} {plugin}".strip())

    def group_decided(self, attempt: GroupAttempt) -> None:
        if attempt.seconds > self._longest.seconds:
            self._longest = Work(attempt.seconds, "decision", f"PodGroup {attempt.queued.key}")

    async def run(self) -> None:
        """Tick for ever."""
        now, began = asyncio.get_running_loop().time, 0.0

        def collecting(phase: str, info: dict[str, int]) -> None:
            nonlocal began
            if phase == "start":
                began = now()
            elif now() - began > self._longest.seconds:
                self._longest = Work(now() - began, "garbage collection", f"generation {info['generation']}")

        gc.callbacks.append(collecting)
        try:
            while True:
                self._longest, due, worked = _NOTHING, now() + LONGEST, self._cpu()
                await asyncio.sleep(LONGEST)
                stall = max(now() - due, self._longest.seconds)
                if stall > LONGEST:
                    self._report(stall, self._cpu() - worked)
        finally:
            gc.callbacks.remove(collecting)

    def _report(self, seconds: float, worked: float) -> None:
        sort, name = self._longest[1:] if worked > seconds / 2 else _AWAY
        self._stalls.child(sort).inc()
        log.info("The event loop stood still", seconds=round(seconds, 3), culprit=sort, name=name)
