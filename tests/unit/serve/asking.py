"""A service on a small cluster, and a client for it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import aiohttp

from kubesched import config
from kubesched.api.meta import KubeObject
from kubesched.ask.service import QueryService
from kubesched.ask.sources.following import ClusterFeed, Files
from kubesched.config.features import DEFAULT_FEATURES, Features
from kubesched.http.access import BearerToken
from kubesched.serve.server import QuestionServer, ServiceSettings
from kubesched.simulate.cluster import ClusterModel
from kubesched.testing import make_node, make_pod

Json = dict[str, Any]

POD: Json = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}}
BIG: Json = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "3"}}}]}}
OBJECTS: tuple[KubeObject, ...] = (
    make_node("a1").capacity(cpu=4, memory="8Gi", pods=10).zone("a").label({"pool": "web"}).build(),
    make_node("b1").capacity(cpu=2, memory="8Gi", pods=10).zone("b").label({"pool": "web"}).build(),
    make_pod("web-1", namespace="shop").requests(cpu="2").on("a1").build(),
    make_pod("tall", namespace="shop").requests(cpu="9").build(),
)


def cluster_of(*objects: KubeObject, features: Features = DEFAULT_FEATURES) -> ClusterModel:
    return ClusterModel(objects, config.default(features), draw=lambda among: 0)


class Service:
    """A server and who asks it."""

    def __init__(self, server: QuestionServer, session: aiohttp.ClientSession) -> None:
        self.server = server
        self.session = session

    async def post(self, question: str, body: Any, code: int = 200) -> Json:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        async with self.session.post(f"/v1alpha1/{question}", data=data) as answer:
            document: Json = await answer.json()
            assert answer.status == code, document
            return document

    async def errors(self, question: str, body: Any, code: int) -> list[str]:
        found: list[str] = (await self.post(question, body, code))["errors"]
        return found


@contextlib.asynccontextmanager
async def served(
    cluster: ClusterModel | None = None,
    followed: ClusterFeed | None = None,
    *,
    clock: Callable[[], float] = time.monotonic,
    **settings: Any,
) -> AsyncIterator[Service]:
    """The service on a free port; settings are those of the server."""
    token = BearerToken()
    cluster, followed = cluster or cluster_of(*OBJECTS), followed or Files("test.yaml")
    service = QueryService(cluster, followed, stands_still=isinstance(followed, Files), slow_timeout=60.0, clock=clock)
    server = QuestionServer(service, ServiceSettings(**{"token": token, **settings}))
    await server.start()
    try:
        headers = {"Authorization": f"Bearer {token.value}"}
        async with aiohttp.ClientSession(server.url, headers=headers) as session:
            yield Service(server, session)
    finally:
        await server.stop()


def run(test: Callable[[Service], Coroutine[Any, Any, None]], **settings: Any) -> None:
    """Run a test against the service on a small cluster."""

    async def main() -> None:
        async with served(**settings) as service:
            await test(service)

    asyncio.run(main())
