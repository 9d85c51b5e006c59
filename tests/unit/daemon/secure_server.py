"""The server over HTTPS on loopback, and an API server that answers reviews from memory, for tests."""

from __future__ import annotations

import asyncio
import datetime
import json
import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from tests.unit.daemon.authority import trusting

from kubesched import config
from kubesched.daemon.feature_gates import FeatureGates
from kubesched.daemon.metrics.registry import MetricsRegistry
from kubesched.daemon.options import Options
from kubesched.daemon.serving.endpoints import Served
from kubesched.daemon.serving.server import SecureServer, ServedPage

STARTED = datetime.datetime(2026, 11, 15, 23, 0, tzinfo=datetime.UTC)
OPEN = ("/*",)


@dataclass
class Api:
    """An API server that knows some tokens, lets some users in, and has a config map."""

    users: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    allowed: frozenset[str] = frozenset()
    config_map: Mapping[str, str] = field(default_factory=dict)
    broken: bool = False
    asked: list[dict[str, Any]] = field(default_factory=list)

    async def get(self, path: str) -> bytes:
        if self.broken:
            raise OSError("connection refused")
        assert path == "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
        return json.dumps({"kind": "ConfigMap", "data": self.config_map}).encode()

    async def post(self, path: str, body: bytes) -> bytes:
        review = json.loads(body)
        self.asked.append(review)
        if self.broken:
            raise OSError("connection refused")
        if path == "/apis/authentication.k8s.io/v1/tokenreviews":
            user = self.users.get(review["spec"]["token"])
            return json.dumps({"status": {"authenticated": user is not None, "user": user}}).encode()
        assert path == "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        is_allowed = review["spec"]["user"] in self.allowed
        return json.dumps({"status": {"allowed": is_allowed, "reason": "" if is_allowed else "no rule"}}).encode()


@dataclass(frozen=True)
class Answer:
    status: int
    text: str
    headers: Mapping[str, str]

    def json(self) -> Any:
        return json.loads(self.text)


Ask = Callable[..., Awaitable[Answer]]


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def serve(
    talk: Callable[[Ask], Awaitable[None]],
    *,
    api: Api | None = None,
    client: ssl.SSLContext | None = None,
    clock: Callable[[], float] | None = None,
    before: Callable[[SecureServer], None] = lambda server: None,
    configuration: config.SchedulerConfiguration | None = None,
    served: Mapping[str, Any] | None = None,
    page: ServedPage | None = None,
    **options: Any,
) -> None:
    """Start a server on a free port, talk to it, and stop it. With a page, it is the page that is talked to."""

    async def run() -> None:
        flags = Options(secure_port=0, bind_address="127.0.0.1", **options)
        what = Served(
            flags,
            configuration or config.default(),
            FeatureGates(),
            MetricsRegistry(),
            now=lambda: STARTED,
            **served or {},
        )
        server = SecureServer(what, authentication=api, authorization=api, clock=clock or Clock(), page=page)
        await server.start()
        before(server)
        connector = aiohttp.TCPConnector(ssl=client or trusting(), force_close=True)
        async with aiohttp.ClientSession(connector=connector) as session:

            async def ask(path: str, *, method: str = "GET", data: str | None = None, **headers: str) -> Answer:
                named = {name.replace("_", "-"): value for name, value in headers.items()}
                url = f"https://127.0.0.1:{server.ui_port}{path}"
                async with session.request(method, url, headers=named, data=data) as response:
                    return Answer(response.status, await response.text(), dict(response.headers))

            try:
                await talk(ask)
            finally:
                await server.stop()

    asyncio.run(run())
