"""The server: one handler for every request, from its first byte to its answer."""

from __future__ import annotations

import asyncio
import logging
import ssl
from typing import Any

import msgspec
from aiohttp import web

from kubesched.api.api_error import ApiError, bad_request, method_not_allowed
from kubesched.http.access import check_exposure, is_loopback, why_foreign
from kubesched.http.listen import HttpServer, host_and_port
from kubesched.sandbox.api import Api
from kubesched.sandbox.api.identities import ADMIN, ANONYMOUS, Tokens, UserInfo
from kubesched.sandbox.http.answers import error_answer, json_answer
from kubesched.sandbox.http.content import LARGEST_BODY, decode_json, read
from kubesched.sandbox.http.documents import PUBLIC, Documents
from kubesched.sandbox.http.faults import FaultError, Faults, Rule
from kubesched.sandbox.http.lists import Lists
from kubesched.sandbox.http.query import Query, target_of
from kubesched.sandbox.http.requests import RequestInfo, Requests, fault_subject
from kubesched.sandbox.http.watches import Watches, WatchRequests
from kubesched.sandbox.store import SqliteStore, StorageError

log = logging.getLogger(__name__)
_HOUSEKEEPING_SECONDS = 60.0
_FAULTS_PATH = "/sandbox/faults"


class _FaultDocument(msgspec.Struct, forbid_unknown_fields=True):
    rules: list[Rule] = []
    seed: int | None = None


class Server:
    """Serves one Api over HTTP, in the running loop."""

    def __init__(
        self,
        api: Api,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        token: str | None = None,
        tls: ssl.SSLContext | None = None,
        faults: Faults | None = None,
    ) -> None:
        check_exposure(host, has_token=token is not None, has_tls=tls is not None)
        self.api, self.host, self.port = api, host, port
        self.faults = faults or Faults()
        self.tokens = Tokens(api.stamps, token)
        self._tls = tls

    @property
    def url(self) -> str:
        return f"{'http' if self._tls is None else 'https'}://{host_and_port(self.host, self.port)}"

    @property
    def watchers(self) -> int:
        """How many watches are open."""
        return len(self._watches)

    async def start(self) -> None:
        """Listen; the port is known afterwards. ListenError if it cannot be had."""
        if isinstance(self.api.store, SqliteStore):
            self.api.store.attach(asyncio.get_running_loop())
        self._watches = Watches(self.api, self.faults)
        self._documents = Documents(self.api)
        watch_requests = WatchRequests(self.api, self._watches)
        self._requests = Requests(self.api, self.tokens, Lists(self.api), watch_requests)
        server = web.Server(self._handle, request_factory=_request, handler_cancellation=True, access_log=None)
        self._listening = HttpServer(server, self.host, self.port, tls=self._tls, backlog=1024)
        await self._listening.start()
        self.port = self._listening.port
        self._housekeeping = asyncio.get_running_loop().create_task(self._keep_house())

    async def stop(self) -> None:
        """Answer no more. The store stays open: its creator closes it."""
        self._housekeeping.cancel()
        self._watches.close()
        await self._listening.stop()

    async def _keep_house(self) -> None:
        while True:
            await asyncio.sleep(_HOUSEKEEPING_SECONDS)
            self._watches.send_bookmarks()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            return await self._answer(request)
        except ApiError as error:
            return error_answer(error)
        except StorageError as error:
            return error_answer(ApiError(500, "InternalError", f"Internal error occurred: {error}"))
        except (ConnectionError, asyncio.CancelledError):
            raise
        except Exception as error:
            log.exception("%s %s failed", request.method, request.raw_path)
            message = f"Internal error occurred: {type(error).__name__}"
            return error_answer(ApiError(500, "InternalError", message))

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        if reason := why_foreign(request.headers, self._is_this_server):
            raise ApiError(403, "Forbidden", reason)
        path, _, text = request.raw_path.partition("?")
        user = self._authenticate(request, path)
        query = Query(text)
        target = target_of(path) if path.startswith("/api") else None
        if target is None:
            if path.rstrip("/") == _FAULTS_PATH:
                return await self._administer_faults(request)
            return await self._documents.answer(request, path, query)
        asked = self._requests.understand(request, target, query, user)
        if not self.faults.active:
            answer = await self._requests.answer(asked)
        else:
            answer = await self._answer_faulty(asked)
        if asked.verb != "watch":
            await self.api.store.durable(self.api.store.revision)
        return answer

    async def _answer_faulty(self, asked: RequestInfo) -> web.StreamResponse:
        verb, subject = asked.verb, fault_subject(asked)
        if delay := self.faults.delay(verb, subject):
            await asyncio.sleep(delay)
        if verb != "watch" and self.faults.freezes(verb, subject):
            await asyncio.Event().wait()
        if error := self.faults.before(verb, subject):
            raise error
        answer = await self._requests.answer(asked)
        if error := self.faults.after(verb, subject):
            raise error
        return answer

    def _is_this_server(self, name: str) -> bool:
        """Where no token is required, a request may do everything, so its Host must be a name of this machine."""
        return self.tokens.required or is_loopback(name) or name == self.host.lower()

    def _authenticate(self, request: web.BaseRequest, path: str) -> UserInfo:
        if not self.tokens.required and "Authorization" not in request.headers:
            return ADMIN
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        user = self.tokens.user(token.strip()) if scheme.lower() == "bearer" else None
        if user is not None:
            return user
        if not self.tokens.required:
            return ADMIN
        if path.rstrip("/") in PUBLIC:
            return ANONYMOUS
        raise ApiError(401, "Unauthorized", "Unauthorized")

    async def _administer_faults(self, request: web.BaseRequest) -> web.Response:
        match request.method:
            case "GET":
                pass
            case "PUT":
                try:
                    document = msgspec.convert(decode_json(await read(request), "faults"), _FaultDocument)
                    self.faults.replace(document.rules, document.seed)
                except (msgspec.ValidationError, FaultError) as error:
                    raise bad_request(f"the faults provided are unrecognized: {error}") from None
            case "DELETE":
                self.faults.replace(())
            case _:
                raise method_not_allowed()
        return json_answer(msgspec.json.encode(self.faults.status()))


def _request(message: Any, payload: Any, protocol: Any, writer: Any, task: Any) -> web.BaseRequest:
    loop = asyncio.get_running_loop()
    return web.BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=LARGEST_BODY)
