"""What changed, in order, so that a cache of something per row or per object repairs just that."""

from __future__ import annotations

from typing import Generic, TypeVar

C = TypeVar("C", int, str, tuple[str, str])

_KEPT = 1 << 16


class ChangeLog(Generic[C]):
    """An append-only list of rows or names with a position that only grows; old entries are forgotten in bulk."""

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
        """Something that all depend on changed: what was kept from before cannot be repaired."""
        self.position += 1
        self._forgotten = self.position
        self._changed.clear()

    def since(self, position: int) -> list[C] | None:
        """What was recorded after `position`, each once; None when that is too long ago to tell."""
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
        """What was recorded meanwhile, each once; None if it may be anything."""
        changes = self._log.since(self._position)
        self._position = self._log.position
        return changes
