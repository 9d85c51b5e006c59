"""A front of the sandbox's API server, for tests: it notes every request, and answers some itself, as RBAC would."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from aiohttp import web
from tests.background_loop import in_background
from tests.sandbox_server import serving

from kubesched_sandbox.api import Api


@dataclass
class Front:
    """What it answers itself, by path, and what it was asked."""

    url: str = ""
    denied: set[str] = field(default_factory=set)
    """Paths that are forbidden to this user."""
    unknown: set[str] = field(default_factory=set)
    """Paths of groups that the server does not have."""
    answers: dict[str, Any] = field(default_factory=dict)
    """JSON by path, for what the sandbox does not serve."""
    silent: set[str] = field(default_factory=set)
    """Paths that are never answered."""
    expired: bool = False
    """Whether no credential is good any more."""
    asked: list[tuple[str, str]] = field(default_factory=list)
    """Method and path with its query, in the order in which they came."""

    def refusal(self, path: str) -> tuple[int, str, str] | None:
        if self.expired:
            return 401, "Unauthorized", "Unauthorized"
        if path in self.denied:
            return 403, "Forbidden", f'User "eve" cannot list {path}'
        if path in self.unknown:
            return 404, "NotFound", "the server could not find the requested resource"
        return None


@contextlib.asynccontextmanager
async def fronted_in_loop(api: Api) -> AsyncIterator[Front]:
    """Serve it in the running loop."""
    front = Front()
    async with serving(api) as server, aiohttp.ClientSession(server.url, auto_decompress=False) as behind:

        async def handle(request: web.BaseRequest) -> web.StreamResponse:
            front.asked.append((request.method, request.path_qs))
            refused = front.refusal(request.path)
            if refused is not None:
                code, reason, message = refused
                status = {"kind": "Status", "apiVersion": "v1", "code": code, "reason": reason, "message": message}
                return web.json_response(status, status=code)
            if request.path in front.silent:
                await asyncio.Event().wait()
            if request.path in front.answers:
                return web.json_response(front.answers[request.path])
            async with behind.request(request.method, request.path_qs, data=await request.read()) as answer:
                if "watch" in request.query:
                    return await _streamed(request, answer)
                body = await answer.read()
                return web.Response(body=body, status=answer.status, content_type=answer.content_type)

        runner = web.ServerRunner(web.Server(handle, access_log=None), shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        front.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        try:
            yield front
        finally:
            await runner.cleanup()


async def _streamed(request: web.BaseRequest, answer: aiohttp.ClientResponse) -> web.StreamResponse:
    """A watch, line by line as it comes."""
    response = web.StreamResponse(status=answer.status, headers={"Content-Type": answer.content_type})
    await response.prepare(request)
    async for data in answer.content.iter_any():
        await response.write(data)
    return response


@contextlib.contextmanager
def fronted(api: Api) -> Iterator[Front]:
    """Serve it in a thread of its own; nothing of the Api may be touched from outside while it runs."""
    with in_background(fronted_in_loop(api)) as (front, _):
        yield front


def pod_of_scheduler(name: str = "kube-scheduler-a") -> str:
    """Where its /configz is, seen from the API server."""
    return f"/api/v1/namespaces/kube-system/pods/https:{name}:10259/proxy/configz"


def as_configz(text: str) -> dict[str, Any]:
    return {"componentconfig": json.loads(text)}
