"""Times at which something is due, in a heap."""

from __future__ import annotations

import heapq
from typing import Generic, TypeVar

T = TypeVar("T")


class Timers(Generic[T]):
    """Each thing is due at one time at most: the earliest that was set, unless it was replaced."""

    def __init__(self) -> None:
        self._times: dict[T, float] = {}
        self._heap: list[tuple[float, int, T]] = []
        self._count = 0

    def at(self, when: float, thing: T, *, replace: bool = False) -> None:
        if not replace and self._times.get(thing, float("inf")) <= when:
            return
        self._times[thing] = when
        self._count += 1
        heapq.heappush(self._heap, (when, self._count, thing))

    def __contains__(self, thing: T) -> bool:
        return thing in self._times

    def cancel(self, thing: T) -> None:
        self._times.pop(thing, None)

    def due(self, now: float, *, most: int) -> list[T]:
        """Things whose time has come, earliest first, each no longer waiting."""
        found: list[T] = []
        while len(found) < most and (when := self.next) is not None and when <= now:
            _, _, thing = heapq.heappop(self._heap)
            del self._times[thing]
            found.append(thing)
        return found

    @property
    def next(self) -> float | None:
        """When the next thing is due."""
        while self._heap and self._times.get(self._heap[0][2]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None
