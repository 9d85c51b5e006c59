"""How what follows the API server tells the time, waits, and spreads its load: another one for tests."""

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
    """Nanoseconds since 1970, for what objects say about times."""
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    chance: Callable[[], float] = random.random


REAL_TIME = Timing()
