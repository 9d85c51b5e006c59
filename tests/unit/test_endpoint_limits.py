"""Strangers and greedy clients at the page and at `kubesched serve`: slow, many, asking for much, with odd words."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager

import pytest
from aiohttp import ClientSession, TCPConnector
from aiohttp.web import RouteDef
from tests.shown_page import TOKEN, page_of
from tests.unit.daemon.test_daemon_connections import Streams, is_closed
from tests.unit.serve.asking import POD, Json, served
from yarl import URL

from kubesched.http import connections, listen
from kubesched.http.connections import Connections
from kubesched.testing import make_node, make_pod
from kubesched.ui import stream, views
from kubesched.ui.endpoints import routes

BEARER = {"Authorization": f"Bearer {TOKEN}"}
HOSTILE = (
    "<img src=x onerror=alert(1)>",
    "'; DROP TABLE pods; --",
    "../../../etc/passwd",
    "a\r\nSet-Cookie: evil=1",
    "\x00\x1b[2J",
    "{{7*7}}${7*7}",
    "\u202egpj.exe",
    "x" * 1000,
    "(a+)+$" * 50,
    "9" * 1000,
)


@contextlib.asynccontextmanager
async def page() -> AsyncIterator[int]:
    async with page_of((make_node("a").build(), make_pod("p").requests(cpu="9").build())) as server:
        yield server.port


@contextlib.asynccontextmanager
async def service() -> AsyncIterator[int]:
    async with served() as running:
        yield URL(running.server.url).port or 0


Server = Callable[[], AbstractAsyncContextManager[int]]
EACH = pytest.mark.parametrize("server", [page, service], ids=["page", "serve"])


async def half_request(port: int) -> Streams:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET / HTTP/1.1\r\n")
    await writer.drain()
    return reader, writer


@EACH
def test_request_whose_head_does_not_come_is_given_up(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.05)

    async def run() -> None:
        async with server() as port:
            assert await is_closed(await half_request(port))

    asyncio.run(run())


@EACH
@pytest.mark.parametrize(("most", "per_address"), [(3, 64), (64, 3)], ids=["in all", "of one address"])
def test_oldest_of_too_many_connections_makes_room(
    server: Server, most: int, per_address: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listen, "Connections", lambda: Connections(most=most, most_per_address=per_address))

    async def run() -> None:
        async with server() as port:
            held = [await half_request(port) for _ in range(3)]
            async with ClientSession() as client, client.get(f"http://127.0.0.1:{port}/healthz") as answer:
                assert answer.status in (200, 403)
            assert await is_closed(held[0])
            for _, writer in held:
                writer.close()

    asyncio.run(run())


@pytest.mark.parametrize(("path", "asked", "half"), [("fit", {"pods": [POD]}, 2), ("what-if", {"drain": ["a1"]}, 4)])
def test_one_client_cannot_have_all_the_questions_of_the_service(path: str, asked: Json, half: int) -> None:
    """Half of 4 quick ones, or of 8 that take long."""

    async def run() -> None:
        go_on = asyncio.Event()

        async def slow() -> AsyncIterator[bytes]:
            yield b" "
            await go_on.wait()
            yield json.dumps(asked).encode()

        async with (
            served(most_at_once=4 if path == "fit" else 64, timeout=None) as greedy,
            ClientSession(connector=TCPConnector(local_addr=("127.0.0.2", 0))) as other,
            asyncio.TaskGroup() as group,
        ):
            path_of = f"/v1alpha1/{path}"
            held = [group.create_task(greedy.session.post(path_of, data=slow())) for _ in range(half)]
            while greedy.server._under_way.total() < half:
                await asyncio.sleep(0.001)
            assert (await greedy.session.post(path_of, json=asked)).status == 429
            async with other.post(greedy.server.url + path_of, json=asked, headers=greedy.session.headers) as answer:
                assert answer.status == 200
            go_on.set()
        assert [(await each).status for each in held] == [200] * half

    asyncio.run(run())


def test_one_client_cannot_keep_all_the_pages_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "_MOST_PER_ADDRESS", 1)

    async def run() -> None:
        async with (
            page() as port,
            ClientSession(headers=BEARER) as greedy,
            ClientSession(headers=BEARER, connector=TCPConnector(local_addr=("127.0.0.2", 0))) as other,
        ):
            url = f"http://127.0.0.1:{port}/api/stream"
            async with greedy.get(url) as first, greedy.get(url) as second, other.get(url) as third:
                assert (first.status, second.status, third.status) == (200, 429, 200)

    asyncio.run(run())


def test_page_that_is_loaded_anew_takes_one_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "_MOST_PER_ADDRESS", 1)
    monkeypatch.setattr(stream, "_STILL_THERE", float("inf"))

    async def run() -> None:
        async with page() as port, ClientSession(headers=BEARER) as client:
            url = f"http://127.0.0.1:{port}/api/stream"

            async def status() -> int:
                async with client.get(url) as answer:
                    return answer.status

            assert await status() == 200
            async with asyncio.timeout(60):
                while await status() == 429:
                    await asyncio.sleep(0.001)

    asyncio.run(run())


@pytest.mark.parametrize("path", ["what-if", "what-if/page"])
def test_page_gives_up_what_takes_too_long(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "SLOW_TIMEOUT", -1.0)

    async def run() -> int:
        async with page() as port, ClientSession(f"http://127.0.0.1:{port}", headers=BEARER) as client:
            return (await client.post(f"/api/{path}", json={"drain": ["a"]})).status

    assert asyncio.run(run()) == 504


@pytest.mark.parametrize("word", HOSTILE, ids=range(len(HOSTILE)))
def test_odd_words_in_questions_of_the_page_are_words(word: str) -> None:
    """Wherever a word may be: the answer is an answer, or says that there is no such thing."""
    gets = [route for route in routes() if isinstance(route, RouteDef) and route.method == "GET"]
    paths = [route.path for route in gets if not route.path.endswith("/stream")]
    queries = ("q", "group", "rows", "text", "namespace", "state", "sort", "offset", "cause")

    async def run() -> None:
        async with page() as port, ClientSession(headers=BEARER) as client:
            root = URL(f"http://127.0.0.1:{port}")
            for path in paths:
                url = root
                for part in path.strip("/").split("/"):
                    url = url / (word.replace("/", "\u2044") if part.startswith("{") else part)
                for query in ({}, *({name: word} for name in queries)):
                    async with client.get(url.with_query(query)) as answer:
                        assert answer.status in (200, 400, 404), (path, query)
                        assert "evil" not in str(answer.headers)
                        assert answer.content_type == "application/json"

    asyncio.run(run())
