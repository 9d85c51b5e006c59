"""Events are written after the bindings of a burst, but not never."""

from __future__ import annotations

import asyncio

from kubesched.daemon.live_client import LONGEST_WAIT, YieldingSink
from kubesched.kube.connection_pool import MOST_CONNECTIONS


class Server:
    """Notes what it was sent, and when."""

    def __init__(self, under_way: list[int]) -> None:
        """How many other writes there are, look by look; the last figure stays."""
        self.now = 0.0
        self.written: list[tuple[str, float]] = []
        self._under_way = under_way
        self.sink = YieldingSink(self, sleep=self._sleep)
        self.sink.attach(self._others)

    def _others(self) -> int:
        return self._under_way.pop(0) if len(self._under_way) > 1 else self._under_way[0]

    async def _sleep(self, seconds: float) -> None:
        self.now += seconds

    async def post(self, path: str, body: bytes) -> bytes:
        self.written.append((path, self.now))
        return b""

    async def patch(self, path: str, body: bytes, *, content_type: str) -> bytes:
        self.written.append((path, self.now))
        return b""


def test_event_is_written_at_once_while_every_other_write_has_a_connection() -> None:
    server = Server([MOST_CONNECTIONS])
    asyncio.run(server.sink.post("/events", b""))
    assert server.written == [("/events", 0.0)]


def test_event_waits_while_other_writes_queue_up() -> None:
    server = Server([MOST_CONNECTIONS + 1] * 3 + [MOST_CONNECTIONS])
    asyncio.run(server.sink.patch("/events/a", b"", content_type="json"))
    assert 0 < server.written[0][1] < LONGEST_WAIT


def test_event_is_written_in_the_end_though_there_is_always_something_more_urgent() -> None:
    server = Server([1000])
    asyncio.run(server.sink.post("/events", b""))
    assert LONGEST_WAIT <= server.written[0][1] < 2 * LONGEST_WAIT
