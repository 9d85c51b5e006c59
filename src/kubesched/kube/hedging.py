"""Hedged requests: asks again beside a question without an answer, because the server may have died silently."""

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
    """The first that succeeds: one more is asked after `next_after` seconds, up to so many at once.

    The time between two grows by the factor `patience`, up to the `longest`: a server that is slow under its load must
    not get more and more requests. If all have failed, the last error is raised. The others go to `leave`, without
    which they are cancelled.
    """
    asked: list[asyncio.Task[T]] = []
    try:
        while True:
            asked.append(asyncio.create_task(ask()))
            if (first := await _first_of(asked, next_after if len(asked) < most else None)) is not None:
                asked.remove(first)
                try:
                    return first.result()
                finally:
                    del first  # an error has this frame in its traceback, and would hold itself by it
            next_after = min(next_after * patience, longest)
    finally:
        for task in asked:
            if leave is None:
                task.cancel()
            else:
                leave(task)
        if leave is None:
            await asyncio.gather(*asked, return_exceptions=True)


async def _first_of(asked: list[asyncio.Task[T]], within: float | None) -> asyncio.Task[T] | None:
    """The first that succeeds, None if there is none in time. If all have failed, the last of them."""
    try:
        async with asyncio.timeout(within):
            while True:
                waiting = [task for task in asked if not task.done()]
                for task in asked:
                    if task.done() and (task.exception() is None or not waiting):
                        return task
                await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    except TimeoutError:
        return None
