"""The draws among equals that deciding a group takes: many in a row, and all are part of a recording."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable


class NotedDraws:
    """Draws as it is told to, and notes what was drawn while a group is being decided."""

    def __init__(self, draw: Callable[[int], int]) -> None:
        self._draw = draw
        self._noted: list[int] | None = None
        self._again: deque[int] = deque()

    def __call__(self, among: int) -> int:
        drawn = self._again.popleft() if self._again else among
        if drawn >= among:
            drawn = self._draw(among)
        if self._noted is not None:
            self._noted.append(drawn)
        return drawn

    def begin(self, again: Iterable[int] = ()) -> list[int]:
        """From now on draws are noted, in this list. Those of an earlier turn are made `again`, as far as they fit."""
        self._noted, self._again = [], deque(again)
        return self._noted

    def end(self) -> None:
        self._again.clear()
        self._noted = None
