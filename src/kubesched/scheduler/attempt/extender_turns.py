"""Attempts that wait for extenders: they are asked side by side, and their outcomes come in the order of the queue."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any

from kubesched.framework.blame import told
from kubesched.framework.extender import ExtenderError, Question
from kubesched.scheduler.attempt.attempt import Attempt

AT_MOST = 16
"""So many pods wait for extenders at a time: a pod of higher priority that comes meanwhile gets its turn after them."""

_log = logging.getLogger(__name__)


class ExtenderTurns:
    """Attempts in the order in which their pods were popped.

    The first is decided as soon as its answers are there. Those behind it may look ahead: extenders are asked about
    them, but nothing is decided.
    """

    def __init__(self, wake: Callable[[], None]) -> None:
        """`wake` is called when there may be something to decide."""
        self._wake = wake
        self._attempts: list[Attempt] = []
        self._asking: dict[str, asyncio.Task[None]] = {}
        self._asked_all: set[str] = set()
        """Attempts that have no question left, and wait for their turn."""

    def __len__(self) -> int:
        return len(self._attempts)

    @property
    def is_full(self) -> bool:
        return len(self._attempts) >= AT_MOST

    def join(self, attempt: Attempt) -> None:
        self._attempts.append(attempt)

    def leave(self, attempt: Attempt) -> None:
        """It is decided."""
        self._attempts.remove(attempt)
        self._asked_all.discard(attempt.queued.identity)

    def ready(self) -> Attempt | None:
        """An attempt to be decided now, or looked ahead for."""
        for place, attempt in enumerate(self._attempts):
            assert attempt.answers is not None
            attempt.answers.looks_ahead = place > 0
            if attempt.queued.identity in self._asking:
                continue
            if place == 0:
                return attempt
            if attempt.queued.identity not in self._asked_all and attempt.answers.may_look_ahead:
                return attempt
        return None

    def ask(self, attempt: Attempt) -> None:
        """Ask what is open. Without a question it waits for its turn."""
        identity = attempt.queued.identity
        if not attempt.questions:
            self._asked_all.add(identity)
            return
        task = asyncio.create_task(answer(attempt.questions), name=f"ask about {attempt.queued.key}")
        self._asking[identity] = task
        task.add_done_callback(lambda task: self._answered(identity, task))

    def _answered(self, identity: str, task: asyncio.Task[None]) -> None:
        del self._asking[identity]
        self._wake()

    async def stop(self) -> None:
        """Ask no more. What is not decided is left to the next leader."""
        tasks = list(self._asking.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def answer(questions: Sequence[Question[Any, Any]]) -> None:
    """Have all questions answered, side by side if they are several."""
    if len(questions) == 1:
        await _ask(questions[0])
    else:
        await asyncio.gather(*map(_ask, questions))


async def _ask(question: Question[Any, Any]) -> None:
    try:
        await question.ask()
    except Exception as error:  # an extender that breaks must not take the pod with it, let alone the scheduler
        _log.exception("an extender broke")
        question.fail(ExtenderError(told(error)))
