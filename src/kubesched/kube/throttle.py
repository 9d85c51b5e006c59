"""A token bucket with client-go's meaning of QPS and burst: a request goes at once or knows how long to wait."""

from __future__ import annotations

from collections.abc import Callable

DEFAULT_QPS = 5.0
DEFAULT_BURST = 10


class Throttle:
    """Holds `burst` tokens, refilled at `qps` a second. Negative QPS is no limit; zero means client-go's default."""

    def __init__(self, qps: float, burst: int, *, clock: Callable[[], float]) -> None:
        self._qps = qps or DEFAULT_QPS
        self._burst = burst or DEFAULT_BURST
        self._clock = clock
        self._tokens = float(self._burst)
        self._filled_at = clock()

    def reserve(self) -> float:
        """Take a token and say in how many seconds it may be used: 0 is now. Who comes later waits longer."""
        if self._qps < 0:
            return 0.0
        now = self._clock()
        self._tokens = min(self._burst, self._tokens + (now - self._filled_at) * self._qps) - 1
        self._filled_at = now
        return 0.0 if self._tokens >= 0 else -self._tokens / self._qps

    def give_back(self) -> None:
        """The token was not used: whoever reserved it gave up waiting."""
        self._tokens += 1
