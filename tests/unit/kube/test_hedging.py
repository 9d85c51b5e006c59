"""Asking again beside a question that is not answered, in virtual time."""

from __future__ import annotations

import asyncio
import gc
import weakref

import pytest
from tests.virtual_time import now, run

from kubesched.kube.hedging import first_of_several


class Asked:
    """Answers that come after so many seconds; an error where there is no answer. Notes when it is asked."""

    def __init__(self, *takes: float, fails: bool = False) -> None:
        self._takes, self._fails = list(takes), fails
        self.at: list[float] = []
        self.cancelled = 0

    async def __call__(self) -> int:
        number = len(self.at)
        self.at.append(now())
        try:
            await asyncio.sleep(self._takes[number])
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if self._fails:
            raise OSError(f"number {number}")
        return number


def test_one_that_answers_in_time_is_asked_alone() -> None:
    async def main() -> None:
        asked = Asked(0.4)
        assert await first_of_several(asked, next_after=0.5, most=3) == 0
        assert asked.at == [0.0]

    run(main())


def test_the_first_answer_wins_and_the_others_are_given_up() -> None:
    async def main() -> None:
        asked = Asked(1000, 1000, 0.2)
        assert await first_of_several(asked, next_after=0.5, most=3) == 2
        assert asked.at == [0.0, 0.5, 1.0]
        assert asked.cancelled == 2

    run(main())


def test_time_between_two_grows_with_patience_and_there_are_only_so_many() -> None:
    async def main() -> None:
        asked = Asked(100, 1000, 1000, 1000)
        assert await first_of_several(asked, next_after=0.5, most=4, patience=2.0) == 0
        assert asked.at == [0.0, 0.5, 1.5, 3.5]

    run(main())


def test_time_between_two_has_a_limit() -> None:
    async def main() -> None:
        asked = Asked(100, *[1000] * 4)
        assert await first_of_several(asked, next_after=0.5, most=5, patience=2.0, longest=2.0) == 0
        assert asked.at == [0.0, 0.5, 1.5, 3.5, 5.5]

    run(main())


def test_error_is_raised_when_nobody_is_left_who_could_answer() -> None:
    async def main() -> None:
        asked = Asked(0.7, 0.1, fails=True)
        with pytest.raises(OSError, match="number 0"):
            await first_of_several(asked, next_after=0.5, most=4)
        assert asked.at == [0.0, 0.5]
        assert now() == pytest.approx(0.7)

    run(main())


def test_error_is_freed_with_its_last_use() -> None:
    """It holds whatever its traceback holds, connections among it, and garbage is collected seldom."""

    class RefusalError(Exception):
        pass

    async def refuse() -> None:
        raise RefusalError

    async def main() -> None:
        gc.disable()
        try:
            await first_of_several(refuse, next_after=0.5, most=2)
        except RefusalError as error:
            refusal = weakref.ref(error)
        finally:
            gc.enable()
        assert refusal() is None

    run(main())


def test_questions_that_are_not_needed_any_more_are_left_as_the_caller_likes() -> None:
    async def main() -> None:
        left: list[asyncio.Task[int]] = []
        asked = Asked(10.0, 0.0)

        assert await first_of_several(asked, next_after=0.5, most=2, leave=left.append) == 1
        assert (len(left), asked.cancelled) == (1, 0)
        assert await left[0] == 0

    run(main())
