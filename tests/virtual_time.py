"""An event loop on which time passes only when everybody waits, and then at once: an hour of sleeping takes no time."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Impatient(selectors.DefaultSelector):
    """Instead of waiting for so many seconds, lets them pass."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready:
            return ready
        if timeout is None:  # only a thread or a socket can wake us
            return super().select(None)
        self.now += timeout
        return []


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """Its clock starts at 0 and is moved by waiting."""

    def __init__(self) -> None:
        self._impatient = _Impatient()
        super().__init__(self._impatient)
        self._clock_resolution = 1e-6  # or a rounding error could make time stand still

    def time(self) -> float:
        return self._impatient.now


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """As asyncio.run, in virtual time."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(coroutine)


def now() -> float:
    return asyncio.get_running_loop().time()


def work_for(seconds: float) -> None:
    """Let time pass while nobody else has a turn."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    loop._impatient.now += seconds
