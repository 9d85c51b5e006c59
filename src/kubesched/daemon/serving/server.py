"""The server on the secure port: listens, serves the endpoints behind the guard, and stops gracefully."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import os
import socket
from collections.abc import Callable

from aiohttp import web

from kubesched.api.errors import UserError
from kubesched.daemon.log import Log
from kubesched.daemon.options import Options
from kubesched.daemon.serving.authentication import Authenticator
from kubesched.daemon.serving.authorities import Authorities, AuthoritySource
from kubesched.daemon.serving.connections import Connections
from kubesched.daemon.serving.endpoints import Endpoints, Served
from kubesched.daemon.serving.guard import Authorizer, Strangers, guard
from kubesched.daemon.serving.reviews import AccessReviewer, ReviewApi, TokenReviewer
from kubesched.daemon.serving.tls import ServingTls

SHUTDOWN_SECONDS = 5.0
_BACKLOG = 128

log = Log(__name__)


class ServingError(UserError):
    """The port cannot be had; one line says why."""


class SecureServer:
    """Everything between the secure port and the endpoints."""

    def __init__(
        self,
        served: Served,
        *,
        authentication: ReviewApi | None = None,
        authorization: ReviewApi | None = None,
        clock: Callable[[], float],
    ) -> None:
        """The clients of --authentication-kubeconfig and --authorization-kubeconfig, as far as there are any.

        OptionsError if certificates cannot be used.
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
        authorizer = Authorizer(options.authorization_always_allow_paths, access)
        self._endpoints = Endpoints(served)
        self._connections = Connections()
        middlewares = self._connections.middleware(), guard(self._authenticator, authorizer, Strangers(clock))
        self._runner = web.AppRunner(
            self._endpoints.application(*middlewares), access_log=None, shutdown_timeout=SHUTDOWN_SECONDS
        )
        self._tasks: tuple[asyncio.Task[None], ...] = ()
        self.port = 0
        """The port, once there is one."""

    async def start(self) -> None:
        """Listen. ServingError if the port is taken; OptionsError if client authorities were needed and not found."""
        listener = listening(self._options)
        try:
            await self._authorities.start()
            await self._runner.setup()
        except BaseException:
            listener.close()
            raise
        self.port = listener.getsockname()[1]
        self._tasks = (
            asyncio.create_task(self._accept(listener), name="connections"),
            asyncio.create_task(self._authorities.keep_fresh(), name="client authorities"),
        )
        log.text(f"Serving securely on {_shown(self._options.bind_address, self.port)}")

    async def stop(self) -> None:
        """Finish the requests under way, within seconds."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._connections.close()
        await self._runner.cleanup()
        log.info("[graceful-termination] secure server is exiting")

    async def _accept(self, listener: socket.socket) -> None:
        server = self._runner.server
        assert server is not None
        with listener:
            await self._connections.accept(listener, self._tls.context, server)

    def _trust(self, authorities: Authorities) -> None:
        self._tls.trust(authorities.both)
        self._authenticator.trust(authorities)


def listening(options: Options) -> socket.socket:
    """A socket on the secure port; an unspecified address stands for all addresses of both families."""
    address = ipaddress.ip_address(options.bind_address)
    families = [socket.AF_INET6 if address.version == 6 else socket.AF_INET]
    if address.is_unspecified and socket.has_dualstack_ipv6():
        families.insert(0, socket.AF_INET6)
    shown = _shown(options.bind_address, options.secure_port)
    while True:
        try:
            return _bound(options, families.pop(0))
        except OSError as error:
            if families and error.errno == errno.EAFNOSUPPORT:
                continue
            why = os.strerror(error.errno).lower() if error.errno else str(error)
            message = f"failed to create listener: failed to listen on {shown}: listen tcp {shown}: bind: {why}"
            raise ServingError(message) from None


def _bound(options: Options, family: socket.AddressFamily) -> socket.socket:
    """As Go, it may take an address in TIME_WAIT; the flag about sharing addresses is about other things elsewhere."""
    is_unspecified = ipaddress.ip_address(options.bind_address).is_unspecified
    is_dual = family == socket.AF_INET6 and is_unspecified and socket.has_dualstack_ipv6()
    listener = socket.create_server(
        ("::" if is_dual else options.bind_address, options.secure_port),
        family=family,
        backlog=_BACKLOG,
        reuse_port=options.permit_port_sharing,
        dualstack_ipv6=is_dual,
    )
    listener.setblocking(False)
    return listener


def _shown(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
