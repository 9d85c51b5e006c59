"""The server on the secure port, and on that of the page: both behind the guard, and both stop gracefully."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import os
import socket
from collections.abc import Callable
from typing import Any

from aiohttp import web

from kubesched.api.errors import UserError
from kubesched.daemon.log import Log
from kubesched.daemon.options import Options
from kubesched.daemon.serving.authentication import Authenticator
from kubesched.daemon.serving.authorities import Authorities, AuthoritySource
from kubesched.daemon.serving.connections import Connections
from kubesched.daemon.serving.endpoints import Endpoints, Served
from kubesched.daemon.serving.guard import Authorizer, Strangers, guard, headers_of
from kubesched.daemon.serving.page import Page
from kubesched.daemon.serving.reviews import AccessReviewer, ReviewApi, TokenReviewer
from kubesched.daemon.serving.tls import ServingTls

SHUTDOWN_SECONDS = 5.0
_BACKLOG = 128

log = Log(__name__)


class ServingError(UserError):
    """The port cannot be had; one line says why."""


class _Port:
    """A port, and what is served there."""

    def __init__(self, number: int, application: web.Application) -> None:
        """0 is replaced by the port that was found."""
        self.number = number
        self.runner = web.AppRunner(application, access_log=None, shutdown_timeout=SHUTDOWN_SECONDS)


class SecureServer:
    """Everything between the ports and what is served there."""

    def __init__(
        self,
        served: Served,
        *,
        authentication: ReviewApi | None = None,
        authorization: ReviewApi | None = None,
        clock: Callable[[], float],
        page: Page | None = None,
    ) -> None:
        """The clients of --authentication-kubeconfig and --authorization-kubeconfig, as far as there are any.

        `page` is served on --ui-port. OptionsError if certificates cannot be used.
        """
        options = self._options = served.options
        self._tls = ServingTls(options, served.now)
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
        strangers = Strangers(clock)

        def guarded(open_paths: tuple[str, ...], credentials: Any = headers_of) -> tuple[Any, Any]:
            authorizer = Authorizer((*options.authorization_always_allow_paths, *open_paths), access)
            return self._connections.middleware(), guard(self._authenticator, authorizer, strangers, credentials)

        self._ports: list[_Port] = []
        if options.secure_port or page is None:
            self._ports.append(_Port(options.secure_port, Endpoints(served).application(*guarded(()))))
        if page is not None:
            behind = guarded(page.open_paths, page.credentials)
            self._ports.append(_Port(options.ui_port, page.application(behind, self._tls.has_certificate_for)))
        self._tasks: tuple[asyncio.Task[None], ...] = ()

    @property
    def port(self) -> int:
        """The secure port, once there is one."""
        return self._ports[0].number

    @property
    def ui_port(self) -> int:
        """That of the page."""
        return self._ports[-1].number

    async def start(self) -> None:
        """Listen. ServingError if a port is taken; OptionsError if client authorities were needed and not found."""
        listeners: list[socket.socket] = []
        try:
            listeners.extend(listening(self._options, port.number) for port in self._ports)
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
            log.text(f"Serving securely on {_shown(self._options.bind_address, port.number)}")
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


def listening(options: Options, port: int) -> socket.socket:
    """A socket on the port; an unspecified address stands for all addresses of both families."""
    address = ipaddress.ip_address(options.bind_address)
    families = [socket.AF_INET6 if address.version == 6 else socket.AF_INET]
    if address.is_unspecified and socket.has_dualstack_ipv6():
        families.insert(0, socket.AF_INET6)
    shown = _shown(options.bind_address, port)
    while True:
        try:
            return _bound(options, families.pop(0), port)
        except OSError as error:
            if families and error.errno == errno.EAFNOSUPPORT:
                continue
            why = os.strerror(error.errno).lower() if error.errno else str(error)
            message = f"failed to create listener: failed to listen on {shown}: listen tcp {shown}: bind: {why}"
            raise ServingError(message) from None


def _bound(options: Options, family: socket.AddressFamily, port: int) -> socket.socket:
    """As Go, it may take an address in TIME_WAIT; the flag about sharing addresses is about other things elsewhere."""
    is_unspecified = ipaddress.ip_address(options.bind_address).is_unspecified
    is_dual = family == socket.AF_INET6 and is_unspecified and socket.has_dualstack_ipv6()
    listener = socket.create_server(
        ("::" if is_dual else options.bind_address, port),
        family=family,
        backlog=_BACKLOG,
        reuse_port=options.permit_port_sharing,
        dualstack_ipv6=is_dual,
    )
    listener.setblocking(False)
    return listener


def _shown(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
