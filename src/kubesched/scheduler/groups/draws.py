"""The draws among equals that deciding a group takes: many in a row, and all are part of a recording."""

from __future__ import annotations

from collections.abc import Callable


class NotedDraws:
    """Draws as it is told to, and notes what was drawn while a group is being decided."""

    def __init__(self, draw: Callable[[int], int]) -> None:
        self._draw = draw
        self._noted: list[int] | None = None

    def __call__(self, among: int) -> int:
        drawn = self._draw(among)
        if self._noted is not None:
            self._noted.append(drawn)
        return drawn

    def begin(self) -> list[int]:
        """From now on draws are noted, in this list."""
        self._noted = []
        return self._noted

    def end(self) -> None:
        self._noted = None
