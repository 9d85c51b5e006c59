"""Attempts whose decisions take long: they go on turn by turn, and together take half of the time at most."""

from __future__ import annotations

from collections import deque

from kubesched.scheduler.groups.group_attempt import EntityAttempt


class PausedAttempts:
    """In the order in which they paused. After each of their turns other pods get as long, if there are any."""

    def __init__(self) -> None:
        self._attempts: deque[EntityAttempt] = deque()
        self._not_before = 0.0

    def __len__(self) -> int:
        return len(self._attempts)

    def add(self, attempt: EntityAttempt, now: float, took: float) -> None:
        """Its turn is over, after so many seconds."""
        self._attempts.append(attempt)
        self._not_before = now + took

    def is_due(self, now: float) -> bool:
        """Whether the next may go on though other pods wait."""
        return now >= self._not_before

    def take(self) -> EntityAttempt | None:
        """The next that goes on."""
        return self._attempts.popleft() if self._attempts else None
