"""A stream that is read while it comes: how long it may be silent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from kubesched.kube.errors import AnswerTimeoutError
from kubesched.kube.http_connection import AnswerStream
from kubesched.kube.http_parser import ResponseParser

HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


class Timer:
    def __init__(self, at: float, ring: Callable[[], None]) -> None:
        self.at, self.ring, self.is_set = at, ring, True

    def when(self) -> float:
        return self.at

    def cancel(self) -> None:
        self.is_set = False


class VirtualTime:
    """As much of an event loop as a stream needs."""

    def __init__(self) -> None:
        self.now = 0.0
        self.timers: list[Timer] = []
        self.create_future = asyncio.get_running_loop().create_future

    def time(self) -> float:
        return self.now

    def call_at(self, at: float, ring: Callable[..., None], *arguments: object) -> Timer:
        self.timers.append(Timer(at, lambda: ring(*arguments)))
        return self.timers[-1]

    async def pass_until(self, moment: float) -> None:
        await asyncio.sleep(0)
        for timer in self.timers:
            if timer.is_set and timer.at <= moment:
                self.now, timer.is_set = timer.at, False
                timer.ring()
        self.now = moment
        await asyncio.sleep(0)


class Hung:
    def close(self) -> None: ...


def test_each_piece_starts_the_silence_anew_with_one_timer_at_a_time() -> None:
    async def main() -> None:
        loop: Any = VirtualTime()
        stream, parser = AnswerStream(Hung(), loop), ResponseParser()  # type: ignore[arg-type]

        def send(data: bytes) -> None:
            parser.feed(data)
            assert parser.head is not None
            stream.fed(parser.head, parser)

        send(HEAD)
        for moment in (4.0, 8.0, 9.0):
            reading = asyncio.create_task(stream.read(5.0))
            await loop.pass_until(moment)
            send(b"1\r\nx\r\n")
            assert await reading == b"x"
            assert sum(timer.is_set for timer in loop.timers) == 1
        last = asyncio.create_task(stream.read(5.0))
        await loop.pass_until(13.9)
        assert not last.done()
        await loop.pass_until(14.0)
        with pytest.raises(AnswerTimeoutError, match="nothing was sent for 5 s"):
            await last

    asyncio.run(main())
