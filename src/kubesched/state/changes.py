"""Which rows changed, in order, so that whoever caches something per node repairs just those rows."""

from __future__ import annotations

_KEPT = 1 << 16


class ChangeLog:
    """An append-only list of rows with a position that only grows; old entries are forgotten in bulk."""

    def __init__(self) -> None:
        self.position = 0
        self._rows: list[int] = []
        self._forgotten = 0

    def record(self, row: int) -> None:
        self.position += 1
        self._rows.append(row)
        if len(self._rows) > _KEPT:
            half = _KEPT // 2
            del self._rows[:half]
            self._forgotten += half

    def all_changed(self) -> None:
        """Something that all rows depend on changed: nobody can repair what was kept from before."""
        self.position += 1
        self._forgotten = self.position
        self._rows.clear()

    def since(self, position: int) -> list[int] | None:
        """The distinct rows recorded after `position`; None when that is too long ago to tell."""
        start = position - self._forgotten
        if start < 0:
            return None
        recent = self._rows[start:]
        return recent if len(recent) < 2 else sorted(set(recent))
