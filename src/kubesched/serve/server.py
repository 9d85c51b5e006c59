"""The HTTP server: paths, limits, and errors as documents."""

from __future__ import annotations

import asyncio
import logging
import ssl
from dataclasses import dataclass
from typing import Any

import msgspec
from aiohttp import web

from kubesched.api.errors import UserError
from kubesched.framework.errors import PluginError
from kubesched.questions.output import API_VERSION
from kubesched.questions.request_objects import QuestionRequest, RequestError
from kubesched.questions.service import TIMEOUT, BusyError, QueryService, QuestionTimeoutError
from kubesched.questions.sources.age import NotReadyError
from kubesched.serve.guard import Guard, Handler, Token
from kubesched.serve.openapi import QUESTIONS, described
from kubesched.serve.questions import answer_to

LARGEST_BODY = 4 << 20
MOST_AT_ONCE = 64

_KEPT = ("Allow", "Retry-After", "WWW-Authenticate")
"""Headers of a refusal that say what to do."""
_REFUSALS: tuple[tuple[type[UserError], int], ...] = (
    (RequestError, 422),
    (BusyError, 429),
    (NotReadyError, 503),
    (QuestionTimeoutError, 504),
    (UserError, 400),
)

log = logging.getLogger(__name__)

_encoder = msgspec.json.Encoder()


@dataclass(frozen=True)
class ServiceSettings:
    """Where to listen, who may ask, and how much."""

    host: str = "127.0.0.1"
    port: int = 0
    token: Token | None = None
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
        self.port = settings.port
        self._service = service
        self._settings = settings
        self._under_way = 0
        self._runner = web.AppRunner(self._application(), access_log=None, shutdown_timeout=1.0)

    @property
    def url(self) -> str:
        settings = self._settings
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        return f"{'http' if settings.tls is None else 'https'}://{host}:{self.port}"

    async def start(self) -> None:
        """Listen. OSError if the port is taken."""
        await self._runner.setup()
        site = web.TCPSite(self._runner, self._settings.host, self.port, ssl_context=self._settings.tls)
        try:
            await site.start()
        except OSError:
            await self._runner.cleanup()
            raise
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        """Finish what is under way, within a second."""
        self._service.close()
        await self._runner.cleanup()

    def _application(self) -> web.Application:
        settings = self._settings
        guard = Guard(settings.host, settings.token, settings.tls)
        app = web.Application(
            middlewares=[_errors_as_documents, guard.middleware()], client_max_size=settings.largest_body
        )
        app.router.add_get("/healthz", self._healthz)
        app.router.add_get("/readyz", self._readyz)
        app.router.add_get("/openapi.json", self._openapi)
        for path, asked in QUESTIONS.items():
            app.router.add_post(path, self._answering(asked.question))
        return app

    async def _healthz(self, request: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def _readyz(self, request: web.Request) -> web.Response:
        self._service.age()
        return web.Response(text="ok")

    async def _openapi(self, request: web.Request) -> web.Response:
        return _json(described())

    def _answering(self, kind: type[QuestionRequest]) -> Handler:
        decoder = msgspec.json.Decoder(kind)

        async def handler(request: web.Request) -> web.Response:
            if self._under_way >= self._settings.most_at_once:
                text = f"{self._under_way} questions are under way, which is all there may be"
                raise web.HTTPTooManyRequests(text=text, headers={"Retry-After": "1"})
            self._under_way += 1
            try:
                async with asyncio.timeout(self._settings.timeout):
                    body = await request.read()
                return _json(await answer_to(decoder.decode(body), self._service))
            finally:
                self._under_way -= 1

        return handler


@web.middleware
async def _errors_as_documents(request: web.Request, handler: Handler) -> web.StreamResponse:
    """What who asks can put right is said; mistakes of this program are logged, and said to be such."""
    try:
        return await handler(request)
    except msgspec.DecodeError as error:
        return _refusal(400, _shape(error))
    except UserError as error:
        code = next(code for kind, code in _REFUSALS if isinstance(error, kind))
        return _refusal(code, *error.lines, headers={"Retry-After": "1"} if code in (429, 503) else {})
    except TimeoutError:
        return _refusal(408, "the question did not arrive in time")
    except PluginError as error:
        log.error("a plugin failed", exc_info=error.cause)
        return _refusal(500, str(error))
    except web.HTTPException as error:
        kept = {name: error.headers[name] for name in _KEPT if name in error.headers}
        return _refusal(error.status, error.text or error.reason, headers=kept)
    except Exception:
        log.exception("a question could not be answered")
        return _refusal(500, "a mistake in kubesched: its log says more")


def _shape(error: msgspec.DecodeError) -> str:
    """What msgspec says of JSON that it cannot read, with the path first, as everywhere else."""
    text, _, place = str(error).rpartition(" - at `$")
    return f"{place[:-1].lstrip('.') or 'body'}: {text}" if text else f"body: {error}"


def _refusal(status: int, *lines: str, headers: dict[str, str] | None = None) -> web.Response:
    document = {"apiVersion": API_VERSION, "kind": "Error", "code": status, "errors": list(lines)}
    return _json(document, status=status, headers=headers)


def _json(document: Any, *, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    body = _encoder.encode(document)
    return web.Response(body=body, status=status, content_type="application/json", headers=headers)
