"""A stream that is read while it comes: how long it may be silent."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.virtual_time import now, run

from kubesched.kube.errors import AnswerTimeoutError
from kubesched.kube.http_connection import AnswerStream
from kubesched.kube.http_parser import ResponseParser

HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


class Hung:
    def close(self) -> None: ...


def test_each_piece_starts_the_silence_anew_with_one_timer_at_a_time() -> None:
    async def main() -> None:
        loop: Any = asyncio.get_running_loop()
        stream, parser = AnswerStream(Hung(), loop), ResponseParser()  # type: ignore[arg-type]

        def send(data: bytes) -> None:
            parser.feed(data)
            assert parser.head is not None
            stream.feed(parser.head, parser)

        send(HEAD)
        for moment in (4.0, 8.0, 9.0):
            reading = asyncio.create_task(stream.read(5.0))
            await asyncio.sleep(moment - now())
            send(b"1\r\nx\r\n")
            assert await reading == b"x"
            assert sum(not timer.cancelled() for timer in loop._scheduled) == 1
        with pytest.raises(AnswerTimeoutError, match="nothing was sent for 5 s"):
            await stream.read(5.0)
        assert now() == 14.0

    run(main())
