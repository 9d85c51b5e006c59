"""Deadlines of many requests with one timer."""

from __future__ import annotations

import asyncio

import pytest

from kubesched.kube.deadlines import Deadlines


async def waits(deadlines: Deadlines, seconds: float, ended: asyncio.Event) -> str:
    try:
        async with asyncio.timeout(None) as limit:
            deadlines.keep(limit, seconds)
            try:
                await ended.wait()
            finally:
                deadlines.drop(limit)
    except TimeoutError:
        return "too late"
    return "in time"


def test_only_those_whose_time_is_over_end() -> None:
    async def run() -> None:
        deadlines, never = Deadlines(), asyncio.Event()
        late = asyncio.create_task(waits(deadlines, 3600, never))
        soon = [asyncio.create_task(waits(deadlines, seconds, never)) for seconds in (0.02, 0.01, 0.03)]
        async with asyncio.timeout(10):
            assert await asyncio.gather(*soon) == ["too late"] * 3
        assert not late.done()
        never.set()
        assert await late == "in time"

    asyncio.run(run())


def test_one_that_ended_in_time_is_left_alone() -> None:
    async def run() -> None:
        deadlines, ended = Deadlines(), asyncio.Event()
        waiting = asyncio.create_task(waits(deadlines, 0.01, ended))
        await asyncio.sleep(0)
        ended.set()
        assert await waiting == "in time"
        await asyncio.sleep(0.02)  # a mistake of ours would cancel this very task, or raise in the timer
        deadlines.close()

    asyncio.run(run())


def test_who_is_cancelled_from_outside_is_not_too_late() -> None:
    async def run() -> None:
        deadlines = Deadlines()
        waiting = asyncio.create_task(waits(deadlines, 3600, asyncio.Event()))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(run())


def test_many_limits_need_one_timer() -> None:
    async def run() -> None:
        loop, set_timers = asyncio.get_running_loop(), 0
        original = loop.call_at

        def counted(*arguments: object, **more: object) -> asyncio.TimerHandle:
            nonlocal set_timers
            set_timers += 1
            return original(*arguments, **more)  # type: ignore[arg-type]

        deadlines, ended = Deadlines(), asyncio.Event()
        loop.call_at = counted  # type: ignore[method-assign]
        waiting = [asyncio.create_task(waits(deadlines, 60, ended)) for _ in range(50)]
        await asyncio.sleep(0)
        ended.set()
        await asyncio.gather(*waiting)
        assert set_timers == 1
        deadlines.close()

    asyncio.run(run())
