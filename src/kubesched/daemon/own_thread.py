"""An event loop in a thread of its own, and work done there as if it were done here.

A scheduler may be busy for seconds without a pause, with a plugin that computes.
It has this thread. The lease, the health checks and the signals have the main thread, and never wait for it.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, TypeVar

import uvloop

from kubesched.daemon.log import Log

PATIENCE = 5.0
"""Seconds that a thread is waited for once its work was asked to end; then it is left behind."""

_LAST_SECONDS = 1.0
"""For what is left when the thread is to end."""

log = Log(__name__)

T = TypeVar("T")


class OwnThread:
    """Enter it to start the thread, leave it to end the thread. All methods are for other threads to call."""

    def __init__(self, name: str, *, patience: float = PATIENCE, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._loop = uvloop.new_event_loop()
        # A thread that is stuck in a plugin must not keep the process from ending.
        self._thread = threading.Thread(target=self._live, name=name, daemon=True)
        self._asked_at: float | None = None
        self._patience = patience

    def __enter__(self) -> OwnThread:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.post(self._loop.stop)
        self._thread.join(self._patience)
        if self._thread.is_alive():
            log.error("A thread did not end in time and is left behind", thread=self._thread.name)

    def post(self, function: Callable[..., object], *args: object) -> None:
        """Have it called there, soon."""
        self._loop.call_soon_threadsafe(function, *args)

    async def call(self, function: Callable[[], T]) -> T:
        """What it returns when called there, between two things that happen there."""

        async def called() -> T:
            return function()

        return await self.run(called())

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for work that is done there. If this is cancelled, so is the work, and its end is waited for."""
        here = asyncio.get_running_loop()
        over: asyncio.Future[T] = here.create_future()
        doing: list[asyncio.Task[T]] = []

        def begin() -> None:
            task = self._loop.create_task(work)
            task.add_done_callback(lambda task: here.call_soon_threadsafe(_settle, over, task))
            doing.append(task)

        self.post(begin)
        try:
            return await asyncio.shield(over)
        except asyncio.CancelledError:
            if not over.done():
                self.post(lambda: doing[0].cancel())
                await asyncio.wait((over,), timeout=self._patience)
                if not over.done():
                    self._patience = 0.0  # it is stuck: there is no second wait
            if over.done() and not over.cancelled():
                over.exception()  # retrieved, or asyncio logs it
            raise

    def silence(self) -> float:
        """Seconds since the thread was first asked for a sign of life that it has not given; ask from time to time."""
        if self._asked_at is None:
            self._asked_at = self._clock()
            self.post(self._answer)
            return 0.0
        return self._clock() - self._asked_at

    def _answer(self) -> None:
        self._asked_at = None

    def _live(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
            self._loop.run_until_complete(_end_what_is_left())
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        finally:
            self._loop.close()


async def _end_what_is_left() -> None:
    """What nobody waits for, such as a connection that is being hung up, ends while there is a loop to end in."""
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    if left:
        await asyncio.wait(left, timeout=_LAST_SECONDS)


def _settle(over: asyncio.Future[T], task: asyncio.Task[T]) -> None:
    if over.done():
        return
    if task.cancelled():
        over.cancel()
    elif (error := task.exception()) is not None:
        over.set_exception(error)
    else:
        over.set_result(task.result())
