"""Work that runs once for all tasks that wait for it: an exec plugin, a token refresh, a name lookup."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable


class SharedWork:
    """Work that many requests wait for at once. One that gives up leaves it to the others, and to those who follow.

    So a plugin that takes longer than a request may last ends all the same, and the next request has what it said.
    """

    def __init__(self, work: Callable[[], Awaitable[None]]) -> None:
        self._work = work
        self._task: asyncio.Future[None] | None = None

    async def done(self) -> None:
        """Wait until it is done, by whoever began it. Raises what it raises."""
        if self._task is None or self._task.done():
            self._task = asyncio.ensure_future(self._work())
            self._task.add_done_callback(_retrieve)
        await asyncio.shield(self._task)

    async def end(self) -> None:
        """Break it off, and wait until it is over."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))


def _retrieve(task: asyncio.Future[None]) -> None:
    """Nobody may wait for it any more: asyncio need not complain."""
    if not task.cancelled():
        task.exception()
