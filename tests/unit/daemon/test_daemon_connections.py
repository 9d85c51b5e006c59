"""Strangers at the secure port: slow, many, and never let in. A probe gets its answer all the same."""

from __future__ import annotations

import asyncio
import resource
import socket
import ssl

import pytest
from tests.unit.daemon.authority import trusting
from tests.unit.daemon.secure_server import OPEN, Api, Ask, Clock, serve

from kubesched.daemon.serving import endpoints, server
from kubesched.daemon.serving.reviews import ReviewCache
from kubesched.daemon.serving.server import SecureServer
from kubesched.http import access, connections
from kubesched.http.connections import Connections

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Port:
    """The port of the server, to be connected to in ways that no decent client would."""

    number = 0

    def note(self, running: SecureServer) -> None:
        self.number = running.port

    async def connect(self, *, tls: bool = True) -> Streams:
        return await asyncio.open_connection("127.0.0.1", self.number, ssl=trusting() if tls else None)

    async def half_request(self) -> Streams:
        reader, writer = await self.connect()
        writer.write(b"GET /livez HTTP/1.1\r\n")
        await writer.drain()
        return reader, writer


async def is_closed(streams: Streams) -> bool:
    """Waits until the server has closed the connection."""
    reader, writer = streams
    try:
        await reader.read()
    except ConnectionError:
        pass
    finally:
        writer.close()
    return True


def limited(monkeypatch: pytest.MonkeyPatch, most: int, per_address: int = 64) -> None:
    monkeypatch.setattr(server, "Connections", lambda: Connections(most=most, most_per_address=per_address))


def test_request_whose_head_does_not_come_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.05)
    port = Port()

    async def talk(ask: Ask) -> None:
        assert await is_closed(await port.half_request())
        assert (await ask("/livez")).status == 200

    serve(talk, before=port.note)


def test_connection_that_is_quiet_after_an_answer_is_closed_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "IDLE_SECONDS", 0.05)
    port = Port()

    async def talk(ask: Ask) -> None:
        reader, writer = await port.half_request()
        writer.write(b"Host: x\r\n\r\n")
        assert await reader.readline() == b"HTTP/1.1 200 OK\r\n"
        assert await is_closed((reader, writer))

    serve(talk, before=port.note)


def test_body_that_does_not_come_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoints, "HEAD_SECONDS", 0.05)
    port = Port()

    async def talk(ask: Ask) -> None:
        reader, writer = await port.connect()
        writer.write(b"PUT /debug/flags/v HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n")
        assert await reader.readline() == b"HTTP/1.1 408 Request Timeout\r\n"
        writer.close()

    serve(talk, before=port.note, authorization_always_allow_paths=OPEN)


@pytest.mark.parametrize("per_address", [3, 64])
@pytest.mark.parametrize("tls", [True, False], ids=["half requests", "no handshake"])
def test_oldest_of_too_many_connections_makes_room_for_a_probe(
    monkeypatch: pytest.MonkeyPatch, per_address: int, tls: bool
) -> None:
    limited(monkeypatch, most=3 if per_address == 64 else 64, per_address=per_address)
    port = Port()

    async def talk(ask: Ask) -> None:
        held = [await port.connect(tls=tls) for _ in range(3)]
        assert (await ask("/livez")).status == 200
        assert await is_closed(held[0])
        if tls:
            reader, writer = held[2]
            writer.write(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
            assert await reader.readline() == b"HTTP/1.1 200 OK\r\n", "the others are still served"
        for _, writer in held:
            writer.close()

    serve(talk, before=port.note)


def test_stranger_who_finishes_no_handshake_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """aiohttp's protocol points to itself: hundreds a second would lie around until garbage is collected."""
    monkeypatch.setattr(connections, "HANDSHAKE_SECONDS", 0.05)
    made: list[str] = []

    async def run() -> None:
        accepted = Connections()
        with socket.create_server(("127.0.0.1", 0)) as listener:
            listener.setblocking(False)
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            accepting = asyncio.create_task(accepted.accept(listener, context, lambda: made.append("a protocol")))
            reader, writer = await asyncio.open_connection(*listener.getsockname())
            writer.write(b"\x16")
            assert await is_closed((reader, writer))
            assert not made
            assert not len(accepted)
            accepting.cancel()

    asyncio.run(run())


def test_connections_leave_descriptors_for_everything_else(monkeypatch: pytest.MonkeyPatch) -> None:
    for soft, expected in ((256, 64), (1 << 20, connections.MOST), (resource.RLIM_INFINITY, connections.MOST)):
        monkeypatch.setattr(resource, "getrlimit", lambda which, soft=soft: (soft, soft))
        assert connections.most_by_descriptors() == expected


def test_client_that_is_refused_again_and_again_causes_no_more_reviews_for_a_while() -> None:
    api, clock = Api({"good": {"username": "prometheus"}}, frozenset({"prometheus"})), Clock()

    async def talk(ask: Ask) -> None:
        for i in range(access.REFUSALS):
            assert (await ask("/metrics", Authorization=f"Bearer bad-{i}")).status == 401
        asked = len(api.asked)
        answer = await ask("/metrics", Authorization="Bearer another")
        assert (answer.status, answer.json()["reason"]) == (429, "TooManyRequests")
        assert (await ask("/livez")).status == 200, "health needs no review"
        assert len(api.asked) == asked
        clock.now += access.PERIOD
        assert (await ask("/metrics", Authorization="Bearer good")).status == 200

    serve(talk, api=api, clock=clock)


def test_client_that_is_let_in_may_come_as_often_as_it_likes() -> None:
    api = Api({"good": {"username": "prometheus"}}, frozenset({"prometheus"}))

    async def talk(ask: Ask) -> None:
        for _ in range(2 * access.REFUSALS):
            assert (await ask("/metrics", Authorization="Bearer good")).status == 200
        assert len(api.asked) == 2

    serve(talk, api=api)


def test_few_reviews_are_under_way_at_once() -> None:
    async def run() -> None:
        under_way = most = 0
        go_on = asyncio.Event()

        async def ask() -> bool:
            nonlocal under_way, most
            under_way += 1
            most = max(most, under_way)
            await go_on.wait()
            under_way -= 1
            return True

        cache: ReviewCache[bool] = ReviewCache(lambda _: 10.0, Clock())
        asking = [asyncio.create_task(cache.get(i, ask)) for i in range(50)]
        while under_way < 4:
            await asyncio.sleep(0)
        go_on.set()
        assert all(await asyncio.gather(*asking))
        assert most == 4

    asyncio.run(run())
