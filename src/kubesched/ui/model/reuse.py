"""Answers that take long are given again for a while: in a large cluster the page asks for them all the time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Generic, TypeVar

CHEAP = 0.002
"""Seconds of CPU that are spent again for every question."""
TIMES = 200
"""What takes more than that is given again for so many times as long."""
LONGEST = 5.0

T = TypeVar("T")


class Reused(Generic[T]):
    """The answer to one question, which is worked out anew when it is asked for after a while."""

    def __init__(
        self,
        work: Callable[[], T],
        *,
        clock: Callable[[], float] = time.monotonic,
        cpu: Callable[[], float] = time.thread_time,
    ) -> None:
        self._work = work
        self._clock = clock
        self._cpu = cpu
        self._until = 0.0
        self._answers: list[T] = []

    def __call__(self) -> T:
        if not self._answers or self._clock() >= self._until:
            began = self._cpu()
            self._answers = [self._work()]
            took = self._cpu() - began
            self._until = self._clock() + (min(took * TIMES, LONGEST) if took > CHEAP else 0.0)
        return self._answers[0]
