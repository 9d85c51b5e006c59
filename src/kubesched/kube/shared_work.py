"""Work that runs once for all tasks that wait for it: an exec plugin, a token refresh, a name lookup."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable


class SharedWork:
    """Work that many requests wait for at once. It goes on when one of them gives up.

    So a plugin that takes longer than the timeout of a request ends all the same, and the next request has its answer.
    """

    def __init__(self, work: Callable[[], Awaitable[None]]) -> None:
        self._work = work
        self._task: asyncio.Future[None] | None = None

    async def wait(self) -> None:
        """Wait for the work that is under way, or begin it. Raises what the work raises."""
        if self._task is None or self._task.done():
            self._task = asyncio.ensure_future(self._work())
            self._task.add_done_callback(_retrieve)
        await asyncio.shield(self._task)

    async def end(self) -> None:
        """Cancel the work, and wait for its end."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))


def _retrieve(task: asyncio.Future[None]) -> None:
    """Retrieve the exception, for which nobody may wait any more: asyncio would log it."""
    if not task.cancelled():
        task.exception()
