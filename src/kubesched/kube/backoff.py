"""How long to wait before trying again: longer each time, never in step with others, short again after peace."""

from __future__ import annotations

from collections.abc import Callable


class Backoff:
    """client-go's for reflectors: 0.8 s, doubling to 30 s, up to twice that by chance, forgotten after 2 minutes."""

    def __init__(
        self,
        *,
        clock: Callable[[], float],
        random: Callable[[], float],
        first: float = 0.8,
        longest: float = 30.0,
        forgotten_after: float = 120.0,
    ) -> None:
        self._clock = clock
        self._random = random
        self._first = first
        self._longest = longest
        self._forgotten_after = forgotten_after
        self._next = first
        self._last_at = float("-inf")

    def pause(self) -> float:
        """The seconds to wait now."""
        now = self._clock()
        if now - self._last_at > self._forgotten_after:
            self._next = self._first
        self._last_at = now
        pause, self._next = self._next, min(2 * self._next, self._longest)
        return pause * (1 + self._random())
