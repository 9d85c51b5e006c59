"""The API over HTTP: paths, content types, lists and watches, limits, tokens, TLS and faults on demand.

One handler takes every request from its first byte to its answer.
"""

from __future__ import annotations

import asyncio
import base64
import datetime
import logging
import os
import ssl
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import yaml
from aiohttp import web

from kubesched.api.api_error import ApiError, bad_request, method_not_allowed, no_such_resource
from kubesched.api.kinds import Object
from kubesched.api.release import NEWEST, V1_36, Release
from kubesched.http.access import check_exposure, is_loopback, why_foreign
from kubesched.http.listen import HttpServer, host_and_port
from kubesched.kube.self_signed import self_signed_pair
from kubesched.kube.tls import Certificate
from kubesched_sandbox import discovery, openapi
from kubesched_sandbox.api import Api
from kubesched_sandbox.api.tokens import ADMIN, ANONYMOUS, ISSUER, InvalidTokenError, Tokens, UserInfo
from kubesched_sandbox.http.answers import error_answer, formatted, json_answer, large_answer
from kubesched_sandbox.http.content import LARGEST_BODY, Accepted, decode_json, negotiate, read
from kubesched_sandbox.http.faults import FaultError, Faults, Rule, parse_fault
from kubesched_sandbox.http.query import Query, target_of
from kubesched_sandbox.http.requests import RequestInfo, Requests, fault_subject
from kubesched_sandbox.http.watches import Watches
from kubesched_sandbox.store import SqliteStore, StorageError

__all__ = ["FaultError", "Faults", "Rule", "Server", "kubeconfig", "parse_fault", "self_signed", "write_kubeconfig"]


NAME = "kubesched-sandbox"


def self_signed(hosts: Iterable[str]) -> Certificate:
    """A new certificate for these names and addresses."""
    return self_signed_pair(hosts, common_name=NAME, now=datetime.datetime.now(datetime.UTC))


def kubeconfig(url: str, *, token: str | None = None, authority: bytes | None = None) -> dict[str, Any]:
    """One cluster, one user, one context. The authority is a PEM certificate and is embedded.

    Without one the address is plain http, which the official JavaScript client takes only from those who skip TLS.
    """
    cluster: dict[str, Any] = {"server": url}
    if authority is not None:
        cluster["certificate-authority-data"] = base64.b64encode(authority).decode()
    else:
        cluster["insecure-skip-tls-verify"] = True
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": NAME, "cluster": cluster}],
        "users": [{"name": NAME, "user": {} if token is None else {"token": token}}],
        "contexts": [{"name": NAME, "context": {"cluster": NAME, "user": NAME, "namespace": "default"}}],
        "current-context": NAME,
    }


def write_kubeconfig(path: Path, config: dict[str, Any]) -> None:
    """Write it whole or not at all, readable by its owner only: it may hold a token."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        yaml.safe_dump(config, file, sort_keys=False)
    draft.replace(path)


# -- documents: what the server serves, how it is, which version it is ------------------------------------------------


def version_document(release: Release) -> Object:
    """What an API server of the release says at /version."""
    version, emulated, oldest = (text.split(".") for text in release.compatible_versions)
    return {
        "major": version[0],
        "minor": version[1],
        "emulationMajor": emulated[0],
        "emulationMinor": emulated[1],
        "minCompatibilityMajor": oldest[0],
        "minCompatibilityMinor": oldest[1],
        "gitVersion": f"v{release.version}",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "none",
        "compiler": "none",
        "platform": "kubesched/sandbox",
    }


def openid_configuration(key_set: str) -> Object:
    """How others verify tokens of service accounts: by the keys at this address."""
    return {
        "issuer": ISSUER,
        "jwks_uri": key_set,
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["ES256"],
    }


_OPENID, _KEY_SET = "/.well-known/openid-configuration", "/openid/v1/jwks"
_HEALTH = ("/healthz", "/livez", "/readyz")
_CHECKS = ("ping", "log", "storage")
_OPENAPI_PROTOBUF = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
_NEWEST = f"v{NEWEST.version}".encode()
_TITLE = b"\x0a\x0aKubernetes\x12" + bytes([len(_NEWEST)]) + _NEWEST
_EMPTY_OPENAPI = b"\x0a\x032.0\x12" + bytes([len(_TITLE)]) + _TITLE
"""A document of version 2.0 without definitions, in protobuf. kubectl asks for it only about kinds that it did not find
in OpenAPI v3, and learns so that there is nothing to validate against."""
PUBLIC = frozenset((*_HEALTH, "/version"))
"""What needs no token."""


class Documents:
    """Answers everything that is not about objects."""

    def __init__(self, api: Api, tokens: Tokens, url: str, configuration: Object | None, release: Release) -> None:
        self._api, self._tokens, self._url = api, tokens, url
        self._version = version_document(release)
        self._configuration = configuration
        self._made: dict[tuple[int, str, Accepted], tuple[bytes, str]] = {}

    async def answer(self, request: web.BaseRequest, path: str, query: Query) -> web.Response:
        if request.method not in ("GET", "HEAD"):
            raise method_not_allowed()
        path = path.rstrip("/") or "/"
        health = next((root for root in _HEALTH if path == root or path.startswith(f"{root}/")), None)
        if health is not None:
            return _health(path[len(health) + 1 :], query)
        if path == "/openapi/v2" and _OPENAPI_PROTOBUF in request.headers.get("Accept", ""):
            return web.Response(
                body=_EMPTY_OPENAPI,
                headers={"Content-Type": "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"},
            )
        if path == _KEY_SET:
            return json_answer(msgspec.json.encode(self._tokens.key_set), content_type="application/jwk-set+json")
        accepted = negotiate(request.headers.get("Accept", "")) if path != "/openapi/v2" else Accepted()
        if query.text("pretty"):
            body, content_type = formatted(self._document(path, accepted)[0], accepted.media, pretty=True)
            return web.Response(body=body, headers={"Content-Type": content_type})
        body, content_type = self._made_once(path, accepted)
        return await large_answer(body, content_type, request.headers.get("Accept-Encoding", ""))

    def _made_once(self, path: str, accepted: Accepted) -> tuple[bytes, str]:
        """Documents change only with what is served, so each is made once per edition."""
        key = (self._api.catalog.edition, path, accepted)
        made = self._made.get(key)
        if made is None:
            document, parameters = self._document(path, accepted)
            body, content_type = formatted(document, accepted.media, pretty=False)
            if len(self._made) > 256:
                self._made.clear()
            made = self._made[key] = (body, content_type + parameters)
        return made

    def _document(self, path: str, accepted: Accepted) -> tuple[Object, str]:
        resources = self._api.catalog.all()
        parts = path.split("/")[1:]
        aggregated = accepted.shape == "APIGroupDiscoveryList"
        match parts:
            case ["version"]:
                return self._version, ""
            case ["configz"] if self._configuration is not None:
                return {"componentconfig": self._configuration}, ""
            case ["api" | "apis"] if aggregated:
                v2 = accepted.version == "v2"
                document = discovery.aggregated(parts[0] == "api", resources, v2=v2)
                return document, f";g=apidiscovery.k8s.io;v={accepted.version};as=APIGroupDiscoveryList"
            case ["api"]:
                return discovery.api_versions(), ""
            case ["apis"]:
                return discovery.api_group_list(resources), ""
            case ["apis", group]:
                return discovery.api_group(group, resources), ""
            case ["api", version]:
                return discovery.api_resource_list("", version, resources), ""
            case ["apis", group, version]:
                return discovery.api_resource_list(group, version, resources), ""
            case ["openapi", "v2"]:
                return openapi.openapi_v2(resources), ""
            case ["openapi", "v3"]:
                return openapi.openapi_v3_index(resources), ""
            case ["openapi", "v3", "api", version]:
                return openapi.openapi_v3("", version, resources), ""
            case ["openapi", "v3", "apis", group, version]:
                return openapi.openapi_v3(group, version, resources), ""
            case [".well-known", "openid-configuration"]:
                return openid_configuration(f"{self._url}{_KEY_SET}"), ""
            case [""]:
                documents = ("/api", "/apis", "/openapi/v2", "/openapi/v3", _OPENID, _KEY_SET, "/version")
                return {"paths": sorted((*documents, *_HEALTH))}, ""
            case _:
                raise no_such_resource()


def _health(check: str, query: Query) -> web.Response:
    if check:
        if check not in _CHECKS:
            raise no_such_resource()
        return web.Response(text="ok")
    if query.flag("verbose"):
        lines = [f"[+]{name} ok" for name in _CHECKS]
        return web.Response(text="\n".join([*lines, "check passed", ""]))
    return web.Response(text="ok")


# -- the server -------------------------------------------------------------------------------------------------------


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
        scheduler_configuration: Object | None = None,
        release: Release = V1_36,
    ) -> None:
        """`scheduler_configuration` is that of the sandbox's scheduler, for /configz; `release` is for /version."""
        check_exposure(host, has_token=token is not None, has_tls=tls is not None)
        self.api, self.host, self.port = api, host, port
        self.faults = faults or Faults()
        self.tokens = Tokens(api, token)
        self._tls = tls
        self._configuration = scheduler_configuration
        self._release = release

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
        self._documents = Documents(self.api, self.tokens, self.url, self._configuration, self._release)
        self._requests = Requests(self.api, self.tokens, self._watches, schedules=self._configuration is not None)
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
        accept = request.headers.get("Accept", "")
        try:
            return await self._answer(request)
        except ApiError as error:
            return error_answer(error, accept)
        except StorageError as error:
            return error_answer(ApiError(500, "InternalError", f"Internal error occurred: {error}"), accept)
        except (ConnectionError, asyncio.CancelledError):
            raise
        except Exception as error:
            log.exception("%s %s failed", request.method, request.raw_path)
            message = f"Internal error occurred: {type(error).__name__}"
            return error_answer(ApiError(500, "InternalError", message), accept)

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
        try:
            user = self.tokens.user(token.strip()) if scheme.lower() == "bearer" else None
        except InvalidTokenError:
            raise ApiError(401, "Unauthorized", "Unauthorized") from None
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
