"""Attempts that cannot be decided at once: some wait for extenders, some take long and go on turn by turn.

Extenders answer about several pods at a time, and the pods are decided in the order of the queue.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from kubesched.framework.errors import describe
from kubesched.framework.extender import ExtenderError, ExtenderQuestion
from kubesched.scheduler.attempt.attempt import Paused
from kubesched.scheduler.groups.group_attempt import EntityAttempt

AT_MOST = 16
"""The number of pods that may wait for extenders at a time; a pod of higher priority that comes later is after them."""

log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class _Turn:
    attempt: EntityAttempt
    asking: asyncio.Task[None] | None = None
    asked_all: bool = False
    """Whether no question is left before the pod's turn."""


class ExtenderTurns:
    """Attempts in the order in which their pods were popped.

    The first is decided as soon as its answers are there. Those behind it may look ahead: extenders are asked about
    them, but nothing is decided.
    """

    def __init__(self, wake: Callable[[], None]) -> None:
        """`wake` is called when there may be something to decide."""
        self._wake = wake
        self._turns: list[_Turn] = []

    def __len__(self) -> int:
        return len(self._turns)

    @property
    def is_full(self) -> bool:
        return len(self._turns) >= AT_MOST

    def join(self, attempt: EntityAttempt) -> None:
        self._turns.append(_Turn(attempt))

    def leave(self, attempt: EntityAttempt) -> None:
        """The attempt is decided: the next one may be."""
        self._turns.remove(self._turn_of(attempt))

    def ready(self) -> EntityAttempt | None:
        """An attempt to be decided now, or to look ahead."""
        for place, turn in enumerate(self._turns):
            for answers in turn.attempt.extender_answers:
                answers.looks_ahead = place > 0
            if isinstance(turn.attempt.state, Paused):
                continue  # PausedAttempts has it
            may_look_ahead = all(answers.may_look_ahead for answers in turn.attempt.extender_answers)
            if turn.asking is None and (place == 0 or (may_look_ahead and not turn.asked_all)):
                return turn.attempt
        return None

    def ask(self, attempt: EntityAttempt, questions: Sequence[ExtenderQuestion[Any, Any]]) -> None:
        """Ask these questions. Without any the attempt waits for its turn."""
        turn = self._turn_of(attempt)
        turn.asked_all = not questions
        if questions:
            turn.asking = asyncio.create_task(answer(questions), name=f"ask about {attempt.queued.key}")
            turn.asking.add_done_callback(lambda task: self._on_answer(turn))

    async def stop(self) -> None:
        """Ask extenders no more. Attempts that wait for answers stay undecided."""
        tasks = [turn.asking for turn in self._turns if turn.asking is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _on_answer(self, turn: _Turn) -> None:
        turn.asking = None
        self._wake()

    def _turn_of(self, attempt: EntityAttempt) -> _Turn:
        return next(turn for turn in self._turns if turn.attempt is attempt)


async def answer(questions: Sequence[ExtenderQuestion[Any, Any]]) -> None:
    """Have all questions answered, side by side if they are several."""
    if len(questions) == 1:
        await _ask(questions[0])
    else:
        await asyncio.gather(*map(_ask, questions))


async def _ask(question: ExtenderQuestion[Any, Any]) -> None:
    try:
        await question.ask()
    except Exception as error:  # a broken extender must not stop the scheduler
        log.exception("an extender broke")
        question.fail(ExtenderError(describe(error)))


class PausedAttempts:
    """Paused attempts, in order. After each of their turns other pods get as long, if any wait: paused attempts take
    half of the time at most."""

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
