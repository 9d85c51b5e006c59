"""Events let what decides go first: while writes queue up for the API server, they wait a little."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from kubesched.kube.client import Answered
from kubesched.kube.connection_pool import MOST_CONNECTIONS
from kubesched.kube.events import EventSink

LONGEST_WAIT = 1.0
"""Seconds that one event waits at most: with more than the API server can ever do, some are written all the same."""
_LOOK_EVERY = 0.05


class YieldingSink(EventSink):
    """Writes events to another sink, after the bindings and evictions of a burst where there are very many of those."""

    def __init__(
        self,
        sink: EventSink,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Until `attach`, there are no other writes."""
        self._sink = sink
        self._under_way: Callable[[], int] = lambda: 0
        self._sleep = sleep

    def attach(self, under_way: Callable[[], int]) -> None:
        """`under_way` has the number of other writes; of those beyond the number of connections, each waits for one."""
        self._under_way = under_way

    def post(self, path: str, body: bytes) -> Answered:
        if self._is_crowded():
            return self._later(lambda: self._sink.post(path, body))
        return self._sink.post(path, body)

    def patch(self, path: str, body: bytes, *, content_type: str) -> Answered:
        if self._is_crowded():
            return self._later(lambda: self._sink.patch(path, body, content_type=content_type))
        return self._sink.patch(path, body, content_type=content_type)

    def _is_crowded(self) -> bool:
        return self._under_way() > MOST_CONNECTIONS

    async def _later(self, write: Callable[[], Answered]) -> bytes:
        waited = 0.0
        while waited < LONGEST_WAIT and self._is_crowded():
            await self._sleep(_LOOK_EVERY)
            waited += _LOOK_EVERY
        return await write()
