"""Work in a thread of its own: it comes back, it can be told to end, and it keeps nobody waiting."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator

import pytest

from kubesched.daemon.supervision import OwnThread


@pytest.fixture
def thread() -> Iterator[OwnThread]:
    with OwnThread("there") as thread:
        yield thread


async def where() -> str:
    await asyncio.sleep(0)
    return threading.current_thread().name


def test_work_is_done_there_and_its_result_is_had_here(thread: OwnThread) -> None:
    assert asyncio.run(thread.run(where())) == "there"
    assert asyncio.run(thread.call(lambda: threading.current_thread().name)) == "there"


def test_what_breaks_there_is_raised_here(thread: OwnThread) -> None:
    async def broken() -> None:
        raise LookupError("nothing there")

    with pytest.raises(LookupError, match="nothing there"):
        asyncio.run(thread.run(broken()))


def test_work_that_is_given_up_has_ended_when_that_is_known_here(thread: OwnThread) -> None:
    log: list[str] = []

    async def main() -> None:
        begun = asyncio.Event()
        here = asyncio.get_running_loop()

        async def work() -> None:
            here.call_soon_threadsafe(begun.set)
            try:
                await asyncio.sleep(3600)
            finally:
                await asyncio.sleep(0.01)  # what is under way is finished
                log.append("ended")

        task = asyncio.create_task(thread.run(work()))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert log == ["ended"]

    asyncio.run(main())


def blocked(thread: OwnThread, meanwhile: Callable[[], Awaitable[None]]) -> None:
    """Have the thread wait for something that happens only after `meanwhile`."""
    over = threading.Event()

    async def main() -> None:
        begun = threading.Event()

        def block() -> None:
            begun.set()
            over.wait()

        thread.post(block)
        begun.wait()
        try:
            await meanwhile()
        finally:
            over.set()

    asyncio.run(main())


def test_thread_that_is_blocked_keeps_nobody_waiting() -> None:
    with OwnThread("there", patience=0.05) as thread:

        async def meanwhile() -> None:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01):
                    await thread.run(where())

        blocked(thread, meanwhile)


def test_thread_that_is_blocked_is_noticed() -> None:
    time = [0.0]
    with OwnThread("there", clock=lambda: time[0]) as thread:

        async def meanwhile() -> None:
            assert thread.silence() == 0
            time[0] = 100.0
            assert thread.silence() == 100

        blocked(thread, meanwhile)
        asyncio.run(thread.call(lambda: None))
        assert thread.silence() == 0
        asyncio.run(thread.call(lambda: None))
        time[0] = 200.0
        assert thread.silence() == 0


def test_thread_that_does_not_end_is_left_behind(caplog: pytest.LogCaptureFixture) -> None:
    over = threading.Event()
    with OwnThread("there", patience=0.05) as thread:
        thread.post(over.wait)
    over.set()
    assert "left behind" in caplog.text


def test_what_nobody_waits_for_ends_with_the_thread() -> None:
    log: list[str] = []
    kept: list[asyncio.Task[None]] = []

    async def hang_up() -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            await asyncio.sleep(0)  # needs a loop that is not closed
            log.append("hung up")

    async def begin() -> None:
        kept.append(asyncio.create_task(hang_up()))
        await asyncio.sleep(0)

    with OwnThread("there") as thread:
        asyncio.run(thread.run(begin()))
    assert log == ["hung up"]
