"""Deadlines of many requests, watched over by one timer: nearly all of them end long before theirs."""

from __future__ import annotations

import asyncio
import math


class Deadlines:
    """Those of one event loop. A timer of its own for each would be a tenth of what a request costs."""

    def __init__(self) -> None:
        self._kept: dict[asyncio.Timeout, float] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._rings_at = math.inf

    def keep(self, limit: asyncio.Timeout, seconds: float) -> None:
        """`limit`, which was entered without a time, ends after so many seconds unless it is dropped before."""
        at = asyncio.get_running_loop().time() + seconds
        self._kept[limit] = at
        if at < self._rings_at:
            self._set_timer(at)

    def drop(self, limit: asyncio.Timeout) -> None:
        self._kept.pop(limit, None)

    def close(self) -> None:
        """None is kept any longer."""
        self._kept.clear()
        self._set_timer(math.inf)

    def _set_timer(self, at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._rings_at = at
        self._timer = None if at == math.inf else asyncio.get_running_loop().call_at(at, self._ring)

    def _ring(self) -> None:
        now = asyncio.get_running_loop().time()
        for limit in [limit for limit, at in self._kept.items() if at <= now]:
            del self._kept[limit]
            limit.reschedule(now)
        self._set_timer(min(self._kept.values(), default=math.inf))
