"""The HTTP server: paths, limits, and errors as documents."""

from __future__ import annotations

import asyncio
import ssl
from collections import Counter
from dataclasses import dataclass

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler

from kubesched.ask.output import API_VERSION
from kubesched.ask.releases.question import ReleaseQuestion
from kubesched.ask.service import TIMEOUT, BusyError, QueryService, QuestionTimeoutError
from kubesched.ask.sources.following import NotReadyError
from kubesched.ask.targets import QuestionRequest, RequestError
from kubesched.ask.what_if.what_if import WhatIfQuestion
from kubesched.framework.errors import PluginError
from kubesched.http.access import BearerToken, any_name, check_exposure, guard, refuse_foreign, require_credentials
from kubesched.http.errors import errors_as_documents, json_response
from kubesched.http.listen import HttpServer
from kubesched.serve.questions import QUESTIONS, answer_to, described

LARGEST_BODY = 4 << 20
MOST_AT_ONCE = 64
PROBES = ("/healthz", "/readyz")
"""Paths that everybody may ask for."""

_CODES: dict[type[Exception], int] = {
    RequestError: 422,
    BusyError: 429,
    NotReadyError: 503,
    QuestionTimeoutError: 504,
    PluginError: 500,
}


@dataclass(frozen=True)
class ServiceSettings:
    """Where to listen, who may ask, and how much."""

    host: str = "127.0.0.1"
    port: int = 0
    token: BearerToken | None = None
    """None if only client certificates count."""
    tls: ssl.SSLContext | None = None
    largest_body: int = LARGEST_BODY
    most_at_once: int = MOST_AT_ONCE
    timeout: float | None = TIMEOUT
    """Seconds for a question to arrive."""


class QuestionServer:
    """Serves the questions about one cluster. It lives on the event loop where the watches do."""

    def __init__(self, service: QueryService, settings: ServiceSettings) -> None:
        """ExposedError if the address would be open to others."""
        check_exposure(settings.host, has_token=True, has_tls=settings.tls is not None)
        self._service = service
        self._settings = settings
        self._under_way: Counter[tuple[str | None, bool]] = Counter()
        """By address, quick and slow ones. One address may have half of those that there may be."""
        self._listening = HttpServer(self._application(), settings.host, settings.port, tls=settings.tls)

    @property
    def url(self) -> str:
        return self._listening.url

    async def start(self) -> None:
        """Listen. ListenError if the port is taken."""
        await self._listening.start()

    async def stop(self) -> None:
        """Finish what is under way, within a second."""
        self._service.close()
        await self._listening.stop()

    def _application(self) -> web.Application:
        settings = self._settings
        may_ask = guard(refuse_foreign(any_name), require_credentials(settings.token, open_paths=PROBES))
        app = web.Application(
            middlewares=[errors_as_documents(API_VERSION, _CODES), may_ask], client_max_size=settings.largest_body
        )
        app.router.add_get("/healthz", self._healthz)
        app.router.add_get("/readyz", self._readyz)
        app.router.add_get("/openapi.json", self._openapi)
        for path, question_path in QUESTIONS.items():
            app.router.add_post(path, self._answering(question_path.question))
        return app

    async def _healthz(self, request: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def _readyz(self, request: web.Request) -> web.Response:
        self._service.age()
        return web.Response(text="ok")

    async def _openapi(self, request: web.Request) -> web.Response:
        return json_response(described())

    def _answering(self, kind: type[QuestionRequest]) -> Handler:
        decoder, is_slow = msgspec.json.Decoder(kind), issubclass(kind, WhatIfQuestion | ReleaseQuestion)
        most = self._service.most_waiting if is_slow else self._settings.most_at_once

        async def handler(request: web.Request) -> web.Response:
            client, under_way = (request.remote, is_slow), self._under_way.total()
            if under_way >= self._settings.most_at_once or self._under_way[client] >= max(1, most // 2):
                text = f"{under_way} questions are under way, {self._under_way[client]} of them yours: no more may be"
                raise web.HTTPTooManyRequests(text=text, headers={"Retry-After": "1"})
            self._under_way[client] += 1
            try:
                async with asyncio.timeout(self._settings.timeout):
                    body = await request.read()
                return json_response(await answer_to(decoder.decode(body), self._service))
            finally:
                self._under_way -= Counter([client])

        return handler
