"""Keys that wait for work: at once, at a time, or again after a failure."""

from __future__ import annotations

import heapq

Key = tuple[str, str]
"""Namespace (empty for objects of the cluster) and name."""

_FIRST_RETRY = 0.05
_LAST_RETRY = 30.0
_SHORTEST_REST = 0.01


class WorkQueue:
    """Each key waits once, however often it was added. Keys that are due are taken in the order they became so."""

    def __init__(self) -> None:
        self._dirty: dict[Key, None] = {}
        self._due: dict[Key, float] = {}
        self._heap: list[tuple[float, Key]] = []
        self._failures: dict[Key, int] = {}
        self._rests: dict[Key, float] = {}

    def add(self, key: Key) -> None:
        if key in self._rests:
            self.add_at(key, self._rests[key])
        else:
            self._dirty[key] = None

    def hurry(self, key: Key) -> None:
        """Work on a key next, even if it rests."""
        self._dirty[key] = None

    def rest(self, key: Key, now: float, seconds: float) -> None:
        """Let a key that is dear to work on gather what happens for a while, instead of working on each change."""
        if seconds >= _SHORTEST_REST:
            self._rests[key] = now + seconds

    def add_at(self, key: Key, when: float) -> None:
        """Look at the key at a time, unless an earlier one is already set."""
        if self._due.get(key, float("inf")) > when:
            self._due[key] = when
            heapq.heappush(self._heap, (when, key))

    def take(self, now: float) -> Key | None:
        """The next key to work on, or None when nothing is due."""
        while self._heap and self._heap[0][0] <= now:
            when, key = heapq.heappop(self._heap)
            if self._due.get(key) == when:
                del self._due[key]
                self._dirty[key] = None
        if not self._dirty:
            return None
        key = next(iter(self._dirty))
        del self._dirty[key]
        self._rests.pop(key, None)
        return key

    def succeeded(self, key: Key) -> None:
        self._failures.pop(key, None)

    def failed(self, key: Key, now: float) -> None:
        """Try the key again later, each time after a longer wait."""
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        self.add_at(key, now + min(_FIRST_RETRY * 2 ** (failures - 1), _LAST_RETRY))

    def next_due(self, now: float) -> float | None:
        """When there will be something to take; None if nothing waits."""
        if self._dirty:
            return now
        while self._heap and self._due.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None
