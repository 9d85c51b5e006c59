"""An event loop in a thread of its own, for tests that block."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager
from typing import TypeVar

import uvloop

T = TypeVar("T")


@contextlib.contextmanager
def in_background(served: AbstractAsyncContextManager[T]) -> Iterator[tuple[T, asyncio.AbstractEventLoop]]:
    """What is entered and left in another thread, and the loop there. It must not be touched from outside that loop."""
    started: Future[tuple[T, asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def run() -> None:
        ended = asyncio.Event()
        async with served as value:
            started.set_result((value, asyncio.get_running_loop(), ended))
            await ended.wait()

    def main() -> None:
        try:
            # As the product does. A server on asyncio's own loop leaves sockets open that it accepts while it ends.
            uvloop.run(run())
        except BaseException as error:
            if started.done():
                raise
            started.set_exception(error)

    thread = threading.Thread(target=main, name="background-loop")
    thread.start()
    value, loop, ended = started.result(120)
    try:
        yield value, loop
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join(120)
