"""Hedged requests: sent again beside one that has no answer yet, because the server may have died silently."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def first_of_several(
    ask: Callable[[], Coroutine[Any, Any, T]],
    *,
    next_after: float,
    most: int,
    patience: float = 1.0,
    longest: float = math.inf,
    leave: Callable[[asyncio.Task[T]], None] | None = None,
) -> T:
    """The first answer: `ask` is called again after `next_after` seconds, up to `most` times.

    The time between two calls grows by the factor `patience`, up to the `longest`: a server that is slow under its load
    must not get more and more requests. If all have failed, the last error is raised. The other tasks go to `leave`,
    without which they are cancelled.
    """
    tasks: list[asyncio.Task[T]] = []
    try:
        while True:
            tasks.append(asyncio.create_task(ask()))
            if (first := await _first_of(tasks, next_after if len(tasks) < most else None)) is not None:
                tasks.remove(first)
                try:
                    return first.result()
                finally:
                    del first  # an error has this frame in its traceback, and would hold itself by it
            next_after = min(next_after * patience, longest)
    finally:
        for task in tasks:
            if leave is None:
                task.cancel()
            else:
                leave(task)
        if leave is None:
            await asyncio.gather(*tasks, return_exceptions=True)


async def _first_of(tasks: list[asyncio.Task[T]], within: float | None) -> asyncio.Task[T] | None:
    """The first task that succeeds, None if none does in time. If all have failed, the last of them."""
    try:
        async with asyncio.timeout(within):
            while True:
                waiting = [task for task in tasks if not task.done()]
                for task in tasks:
                    if task.done() and (task.exception() is None or not waiting):
                        return task
                await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    except TimeoutError:
        return None
