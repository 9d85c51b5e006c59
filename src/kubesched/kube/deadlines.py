"""Deadlines of many waits on one timer: nearly all waits end long before their deadline."""

from __future__ import annotations

import asyncio
import math
from typing import Any


class Deadlines:
    """The deadlines of one event loop. A timer for each would be a tenth of the cost of a request."""

    def __init__(self) -> None:
        self._kept: dict[asyncio.Future[Any], float] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._rings_at = math.inf

    def keep(self, awaited: asyncio.Future[Any], at: float) -> None:
        """A task that awaits the future gets TimeoutError at the loop's time `at`, unless `drop` comes before."""
        self._kept[awaited] = at
        if at < self._rings_at:
            self._set_timer(at)

    def drop(self, awaited: asyncio.Future[Any]) -> None:
        self._kept.pop(awaited, None)

    def close(self) -> None:
        """Drop all deadlines."""
        self._kept.clear()
        self._set_timer(math.inf)

    def _set_timer(self, at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._rings_at = at
        self._timer = None if at == math.inf else asyncio.get_running_loop().call_at(at, self._ring)

    def _ring(self) -> None:
        now = asyncio.get_running_loop().time()
        for awaited in [awaited for awaited, at in self._kept.items() if at <= now]:
            del self._kept[awaited]
            if not awaited.done():
                awaited.set_exception(TimeoutError())
        self._set_timer(min(self._kept.values(), default=math.inf))
