"""The server on the secure port, and on that of the page: TLS, authorization of every request, and a graceful stop."""

from __future__ import annotations

import asyncio
import datetime
import html
import socket
import ssl
from collections.abc import Callable, Iterable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, Protocol

from aiohttp import web

from kubesched.api.api_error import ApiError
from kubesched.daemon.checks import TLS_VERSIONS, OptionsError
from kubesched.daemon.log import Log
from kubesched.daemon.options import Options
from kubesched.daemon.serving.authentication import Authenticator, Authorities, AuthoritySource, UnauthorizedError
from kubesched.daemon.serving.endpoints import Endpoints, Served
from kubesched.daemon.serving.reviews import (
    AccessDecision,
    AccessReviewer,
    ReviewApi,
    ReviewedUser,
    ReviewError,
    TokenReviewer,
)
from kubesched.http.access import PERIOD, Check, RefusalLimiter, guard
from kubesched.http.connections import Connections
from kubesched.http.errors import status_response
from kubesched.http.listen import ServedCertificate, ServingTls, bind, host_and_port, read_certificate
from kubesched.kube.self_signed import certificate_of_localhost, load_or_create

ADMINISTRATORS = "system:masters"

_UNAUTHORIZED = ApiError(401, "Unauthorized", "Unauthorized")
_TOO_MANY = ApiError(429, "TooManyRequests", f"too many requests that were refused; wait {PERIOD:g} seconds")


class Authorizer:
    """Decides about paths."""

    def __init__(self, always_allow_paths: Iterable[str], access: AccessReviewer | None) -> None:
        """Without `access`, all other paths are forbidden."""
        paths = [path.removeprefix("/") for path in always_allow_paths]
        self._paths = frozenset(path for path in paths if not path.endswith("*"))
        self._prefixes = tuple(path[:-1] for path in paths if path.endswith("*"))
        self._access = access

    def is_open(self, path: str) -> bool:
        """Whether reading it needs no authorization."""
        relative = path.removeprefix("/")
        return relative in self._paths or relative.startswith(self._prefixes)

    async def may(self, user: ReviewedUser, verb: str, path: str) -> AccessDecision:
        """ReviewError if the API server cannot be asked."""
        if ADMINISTRATORS in user.groups or self.is_open(path):
            return AccessDecision(allowed=True)
        if self._access is None:
            return AccessDecision(allowed=False)
        return await self._access.may(user, verb, path)


def headers_of(request: web.Request) -> Mapping[str, str]:
    return request.headers


def require_authorization(
    authenticator: Authenticator,
    authorizer: Authorizer,
    limiter: RefusalLimiter,
    credentials: Callable[[web.Request], Mapping[str, str]] = headers_of,
) -> Check:
    """Check that the user of a request may make it. `credentials` are the headers that name the user."""

    async def check(request: web.Request) -> web.Response | None:
        address = request.remote or ""
        needs_review = "Authorization" in credentials(request) or not authorizer.is_open(request.path)
        if needs_review and limiter.is_limited(address):
            return status_response(_TOO_MANY)
        refusal = await refusal_of(request)
        if refusal is not None:
            limiter.count(address)
        return refusal

    async def refusal_of(request: web.Request) -> web.Response | None:
        connection = request.transport.get_extra_info("ssl_object") if request.transport is not None else None
        verb = request.method.lower()
        try:
            user = await authenticator.user_of(credentials(request), connection)
        except UnauthorizedError:
            return status_response(_UNAUTHORIZED)
        except ReviewError as error:  # a user who cannot be verified is refused
            log.error("Unable to authenticate the request", err=error)
            return status_response(_UNAUTHORIZED)
        try:
            decision = await authorizer.may(user, verb, request.path)
        except ReviewError as error:
            log.error("A request could not be authorized", err=error, path=request.path)
            text = f'Internal Server Error: "{request.path_qs}": {error}\n'
            return web.Response(status=500, text=_harmless(text), headers={"X-Content-Type-Options": "nosniff"})
        if decision.allowed:
            return None
        log.info("Forbidden", v=4, URI=request.path_qs, reason=decision.reason)
        message = _harmless(f'forbidden: User "{user.name}" cannot {verb} path "{request.path}"')
        message += f": {decision.reason}" if decision.reason else ""
        return status_response(ApiError(403, "Forbidden", message), details={})

    return check


def _harmless(text: str) -> str:
    """Text in which a browser finds no HTML."""
    return html.escape(text, quote=False)


SHUTDOWN_SECONDS = 5.0
NAME = "kube-scheduler"
"""The name of the files in --cert-dir."""

log = Log(__name__)


class ServedPage(Protocol):
    """A web page on a port of its own: behind the same TLS and the same guard, made by a package above this one."""

    open_paths: tuple[str, ...]
    """Files that are the same for everybody, and say nothing about the cluster."""

    def credentials(self, request: web.Request) -> Mapping[str, str]:
        """The headers that name the user: browsers send a token in a cookie."""

    def application(self, middlewares: Iterable[Any], is_this_server: Callable[[str], bool]) -> web.Application:
        """The page behind these middlewares. `is_this_server` knows the names that requests may be addressed to."""

    async def stop(self) -> None:
        """Stop observing the scheduler."""


class _Port:
    """A port, and what is served there."""

    def __init__(self, number: int, application: web.Application) -> None:
        """`number` 0 is replaced by a free port once it listens."""
        self.number = number
        self.runner = web.AppRunner(application, access_log=None, shutdown_timeout=SHUTDOWN_SECONDS)


class SecureServer:
    """Serves the endpoints on the secure port, and the page on --ui-port."""

    def __init__(
        self,
        served: Served,
        *,
        authentication: ReviewApi | None = None,
        authorization: ReviewApi | None = None,
        clock: Callable[[], float],
        page: ServedPage | None = None,
    ) -> None:
        """`authentication` and `authorization` are the clients of the flags of these names, if there are any.

        `page` is served on --ui-port. UserError if certificates cannot be used.
        """
        options = self._options = served.options
        self._tls = serving_tls(options, served.now())
        ttl = options.authentication_token_webhook_cache_ttl
        tokens = None if authentication is None else TokenReviewer(authentication, ttl=ttl, clock=clock)
        self._authenticator = Authenticator(tokens)
        self._authorities = AuthoritySource(options, authentication, self._trust)
        access = None
        if authorization is not None:
            access = AccessReviewer(
                authorization,
                allowed_ttl=options.authorization_webhook_cache_authorized_ttl,
                denied_ttl=options.authorization_webhook_cache_unauthorized_ttl,
                clock=clock,
            )
        self._connections = Connections()
        self._page = page
        limiter = RefusalLimiter(clock)

        def guarded(open_paths: tuple[str, ...], credentials: Any = headers_of) -> tuple[Any, Any]:
            authorizer = Authorizer((*options.authorization_always_allow_paths, *open_paths), access)
            check = require_authorization(self._authenticator, authorizer, limiter, credentials)
            return self._connections.middleware(), guard(check)

        self._ports: list[_Port] = []
        if options.secure_port or page is None:
            self._ports.append(_Port(options.secure_port, Endpoints(served).application(*guarded(()))))
        if page is not None:
            behind = guarded(page.open_paths, page.credentials)
            self._ports.append(_Port(options.ui_port, page.application(behind, self._tls.has_certificate_for)))
        self._tasks: tuple[asyncio.Task[None], ...] = ()

    async def __aenter__(self) -> None:
        await self.start()

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    @property
    def port(self) -> int:
        """The secure port, once there is one."""
        return self._ports[0].number

    @property
    def ui_port(self) -> int:
        """The port of the page."""
        return self._ports[-1].number

    async def start(self) -> None:
        """Listen. ListenError if a port is taken; OptionsError if client authorities were needed and not found."""
        options = self._options
        listeners: list[socket.socket] = []
        try:
            listeners.extend(
                bind(options.bind_address, port.number, shares_port=options.permit_port_sharing) for port in self._ports
            )
            await self._authorities.start()
            for port in self._ports:
                await port.runner.setup()
        except BaseException:
            for listener in listeners:
                listener.close()
            raise
        accepting = []
        for port, listener in zip(self._ports, listeners, strict=True):
            port.number = listener.getsockname()[1]
            accepting.append(asyncio.create_task(self._accept(listener, port), name="connections"))
            log.text(f"Serving securely on {host_and_port(options.bind_address, port.number)}")
        refreshing = asyncio.create_task(self._authorities.keep_fresh(), name="client authorities")
        self._tasks = (*accepting, refreshing)

    async def stop(self) -> None:
        """Finish the requests under way, within seconds."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._connections.close()
        if self._page is not None:
            await self._page.stop()
        for port in self._ports:
            await port.runner.cleanup()
        log.info("[graceful-termination] secure server is exiting")

    async def _accept(self, listener: socket.socket, port: _Port) -> None:
        server = port.runner.server
        assert server is not None
        with listener:
            await self._connections.accept(listener, self._tls.context, server)

    def _trust(self, authorities: Authorities) -> None:
        self._tls.trust(authorities.both)
        self._authenticator.trust(authorities)


# -- TLS as the flags ask for it --------------------------------------------------------------------------------------


def serving_tls(options: Options, now: datetime.datetime) -> ServingTls:
    """UserError if certificates or cipher suites cannot be used."""
    by_name = [
        read_certificate(pair.cert_file, pair.key_file, pair.names, flag="--tls-sni-cert-key")
        for pair in options.tls_sni_cert_key
    ]
    return ServingTls(
        _default_certificate(options, now),
        by_name,
        ciphers=openssl_ciphers(options.tls_cipher_suites),
        minimum_version=TLS_VERSIONS.get(options.tls_min_version, ssl.TLSVersion.TLSv1_2),
    )


def _default_certificate(options: Options, now: datetime.datetime) -> ServedCertificate:
    if options.tls_cert_file or options.tls_private_key_file:
        return read_certificate(options.tls_cert_file, options.tls_private_key_file, flag="--tls-cert-file")
    if not options.cert_dir:
        return ServedCertificate(certificate_of_localhost(now))
    try:
        return ServedCertificate(load_or_create(Path(options.cert_dir), NAME, now))
    except OSError as error:
        raise OptionsError(f"--cert-dir: {error.strerror}: {error.filename}") from None


_CIPHERS = files(__package__).joinpath("ciphers.tsv").read_text(encoding="utf-8")
OPENSSL_NAMES: dict[str, str] = dict(line.split("\t") for line in _CIPHERS.splitlines()[1:])
"""The OpenSSL name of every cipher suite, by its IANA name."""
ALWAYS_ON = frozenset({"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"})
"""The suites of TLS 1.3, which cannot be turned off."""


def openssl_ciphers(names: Iterable[str]) -> str:
    """The OpenSSL names of these suites; OptionsError for a name that is not known."""
    chosen = [name for name in names if name not in ALWAYS_ON]
    if unknown := [name for name in chosen if name not in OPENSSL_NAMES]:
        raise OptionsError(f"Cipher suite {unknown[0]} not supported or doesn't exist")
    return ":".join(dict.fromkeys(OPENSSL_NAMES[name] for name in chosen))
