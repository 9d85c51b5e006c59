"""Clocks, sleep and randomness of everything that follows the API server, which tests replace."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Timing:
    """The clocks of the machine, the event loop's sleep, and numbers between 0 and 1."""

    clock: Callable[[], float] = time.monotonic
    """Seconds, for durations."""
    wall_clock: Callable[[], int] = time.time_ns
    """Nanoseconds since 1970, for times in objects."""
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    chance: Callable[[], float] = random.random


REAL_TIME = Timing()
