"""Work that goes on beside other work, for as long as that takes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine
from typing import Any


@contextlib.asynccontextmanager
async def beside(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Runs along with the body, and ends with it. If it breaks, so does the body."""
    try:
        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(work)
            yield
            task.cancel()
    except BaseExceptionGroup as several:
        raise _first(several) from None


def _first(several: BaseExceptionGroup[BaseException]) -> BaseException:
    """What broke first: the others only followed."""
    problem = several.exceptions[0]
    return _first(problem) if isinstance(problem, BaseExceptionGroup) else problem
