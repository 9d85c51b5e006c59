"""Backoff: how long a pod must wait after it failed, twice as long with every failure."""

from __future__ import annotations

from collections.abc import Callable

from kubesched.scheduler.queue.queued_pod import QueuedPod


class Backoff:
    """Until when pods must wait. A longest wait of 0 means that none has to."""

    def __init__(self, clock: Callable[[], float], initial: float, longest: float, *, by_the_second: bool) -> None:
        """`by_the_second` lets all that ends within a second end together, so that the queue's order counts there."""
        self._clock = clock
        self._initial, self._longest = initial, longest
        self._by_the_second = by_the_second

    def until(self, queued: QueuedPod) -> float:
        """The moment until which the pod must wait; 0 if it need not."""
        failures = queued.error_count or queued.unschedulable_count
        if not failures or not self._longest:
            return 0.0
        if queued.backoff_until is None:
            delay = min(self._initial * 2 ** min(failures - 1, 62), self._longest)
            queued.backoff_until = self._aligned(queued.timestamp + delay)
        return queued.backoff_until

    def is_under_way(self, queued: QueuedPod) -> bool:
        until = self.until(queued)
        return until > 0 and until >= self._aligned(self._clock())

    def _aligned(self, time: float) -> float:
        return float(time // 1) if self._by_the_second else time
