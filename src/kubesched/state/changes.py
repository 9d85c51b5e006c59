"""Logs of changes, so that a cache with an entry per row or object repairs only the entries that changed."""

from __future__ import annotations

from typing import Generic, TypeVar

C = TypeVar("C", int, str, tuple[str, str])

_KEPT = 1 << 16


class ChangeLog(Generic[C]):
    """An append-only list of rows or keys with a position that only grows; it forgets old entries in bulk."""

    def __init__(self) -> None:
        self.position = 0
        self._changed: list[C] = []
        self._forgotten = 0

    def record(self, changed: C) -> None:
        self.position += 1
        self._changed.append(changed)
        if len(self._changed) > _KEPT:
            half = _KEPT // 2
            del self._changed[:half]
            self._forgotten += half

    def all_changed(self) -> None:
        """Everything may have changed: caches from before cannot be repaired."""
        self.position += 1
        self._forgotten = self.position
        self._changed.clear()

    def since(self, position: int) -> list[C] | None:
        """The rows or keys recorded after `position`, each once; None if that is too long ago to tell."""
        start = position - self._forgotten
        if start < 0:
            return None
        recent = self._changed[start:]
        return recent if len(recent) < 2 else sorted(set(recent))


class ChangeReader(Generic[C]):
    """Reads a log, each time from where it stopped the last time."""

    def __init__(self, log: ChangeLog[C]) -> None:
        self._log: ChangeLog[C] = log
        self._position = 0

    def read(self) -> list[C] | None:
        """The rows or keys recorded since, each once; None if it may be any."""
        changes = self._log.since(self._position)
        self._position = self._log.position
        return changes
