"""Requests to a sandbox server, in as few words as a test needs."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import aiohttp
import msgspec
from tests.sandbox_server import client, serving
from yarl import URL

from kubesched_sandbox.api import Api
from kubesched_sandbox.http import Server

PODS = "/api/v1/namespaces/default/pods"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


class Answer(NamedTuple):
    """An answer that was read to its end."""

    status: int
    headers: Any
    raw: bytes

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.raw)

    @property
    def reason(self) -> str:
        reason: str = self.json["reason"]
        return reason

    @property
    def names(self) -> list[str]:
        return [item["metadata"]["name"] for item in self.json["items"]]


class Asking:
    """A client of one server."""

    def __init__(self, server: Server, session: aiohttp.ClientSession) -> None:
        self.server, self.session = server, session

    async def __call__(self, method: str, path: str | URL, body: Any = None, **options: Any) -> Answer:
        headers = dict(options.pop("headers", {}))
        data: Any = body if isinstance(body, bytes | None) else msgspec.json.encode(body)
        if data is not None:
            headers.setdefault("Content-Type", "application/json")
            data = io.BytesIO(data) if len(data) > 2**20 else data
        async with self.session.request(method, path, data=data, headers=headers, **options) as response:
            return Answer(response.status, response.headers.copy(), await response.read())

    async def events(self, path: str, count: int) -> list[Any]:
        """The first events of a watch."""
        async with self.session.get(path) as response:
            assert response.status == 200, await response.text()
            return [msgspec.json.decode(await response.content.readline()) for _ in range(count)]

    async def until_watchers(self, count: int) -> None:
        """Wait until so many watches are open."""
        while self.server.watchers != count:
            await asyncio.sleep(0.002)


def with_server(test: Callable[[Asking], Awaitable[None]], api: Api | None = None, **options: Any) -> None:
    """Run a test against a server of its own."""

    async def main() -> None:
        async with serving(api, **options) as server, client(server, read_bufsize=2**20) as session:
            await test(Asking(server, session))

    asyncio.run(asyncio.wait_for(main(), 120))


def pod(name: str, **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, **metadata}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}}


def config(name: str, **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, **metadata}, "data": {"a": "1"}}
