"""Deadlines of many waits with one timer."""

from __future__ import annotations

import asyncio

import pytest
from tests.virtual_time import run

from kubesched.kube.deadlines import Deadlines


async def waits(deadlines: Deadlines, seconds: float, answer: asyncio.Future[None] | None = None) -> str:
    loop = asyncio.get_running_loop()
    awaited = answer or loop.create_future()
    deadlines.keep(awaited, loop.time() + seconds)
    try:
        await awaited
    except TimeoutError:
        return f"too late at {loop.time():g}"
    finally:
        deadlines.drop(awaited)
    return "in time"


def test_only_those_whose_time_is_over_end() -> None:
    async def main() -> None:
        deadlines, answer = Deadlines(), asyncio.get_running_loop().create_future()
        late = asyncio.create_task(waits(deadlines, 3600, answer))
        soon = [asyncio.create_task(waits(deadlines, seconds)) for seconds in (2, 1, 3)]
        assert await asyncio.gather(*soon) == ["too late at 2", "too late at 1", "too late at 3"]
        assert not late.done()
        answer.set_result(None)
        assert await late == "in time"

    run(main())


def test_what_came_in_time_is_left_alone() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        mistakes: list[object] = []
        loop.set_exception_handler(lambda _, context: mistakes.append(context))
        deadlines, dropped, answered = Deadlines(), loop.create_future(), loop.create_future()
        deadlines.keep(dropped, 1)
        deadlines.keep(answered, 1)
        deadlines.drop(dropped)
        answered.set_result(None)  # and who waits for it has not been woken yet when its time is over
        await asyncio.sleep(2)
        assert not dropped.done()
        assert mistakes == []

    run(main())


def test_who_is_cancelled_from_outside_is_not_too_late() -> None:
    async def main() -> None:
        waiting = asyncio.create_task(waits(Deadlines(), 3600))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    run(main())


def test_many_deadlines_need_one_timer() -> None:
    async def main() -> None:
        loop, set_timers = asyncio.get_running_loop(), 0
        original = loop.call_at

        def counted(*arguments: object, **more: object) -> asyncio.TimerHandle:
            nonlocal set_timers
            set_timers += 1
            return original(*arguments, **more)  # type: ignore[arg-type]

        deadlines, answer = Deadlines(), loop.create_future()
        loop.call_at = counted  # type: ignore[method-assign]
        waiting = [asyncio.create_task(waits(deadlines, 60, answer)) for _ in range(50)]
        await asyncio.sleep(0)
        answer.set_result(None)
        await asyncio.gather(*waiting)
        assert set_timers == 1
        deadlines.close()

    run(main())
