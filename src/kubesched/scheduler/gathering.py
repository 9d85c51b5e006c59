"""What comes close upon each other is handled in one go, as network cards gather packets."""

from __future__ import annotations

import math
from collections.abc import Callable

_CLOSE = 0.012
"""Seconds between two things that come close upon each other, as more than 80 a second do."""
_ONE_GO = 0.002
"""Seconds after a rest in which all that came meanwhile is handled: there is no second rest before that is done."""


class Gathering:
    """Call it before what a watch has brought is handled: it may hold up everything for a moment, so that more comes.

    Whoever else is at work on the machine has the processor's caches between two events, and what one event costs is
    mostly to fill them again: with the code that reads a watch, decides, writes. So nothing else should be done in
    between, neither: `rest` is one of the whole event loop. What comes alone does not wait.
    """

    def __init__(self, rest: Callable[[], None], clock: Callable[[], float], *, may_rest: Callable[[], bool]) -> None:
        """`may_rest` says whether nothing is at hand that would have to wait."""
        self._rest = rest
        self._clock = clock
        self._may_rest = may_rest
        self._came_at = self._rested_at = -math.inf

    def __call__(self) -> None:
        now = self._clock()
        if now - self._came_at < _CLOSE and now - self._rested_at > _ONE_GO and self._may_rest():
            self._rest()
            now = self._rested_at = self._clock()
        self._came_at = now
