"""Listening on an address, with or without TLS. An address that cannot be had is one clear line."""

from __future__ import annotations

import errno
import ipaddress
import os
import socket
import ssl

from aiohttp import web

from kubesched.api.errors import UserError

BACKLOG = 128


class ListenError(UserError):
    """The address cannot be listened on; one line says why."""


class HttpServer:
    """One aiohttp application, or plain server, on one address."""

    def __init__(
        self,
        served: web.Application | web.Server,
        host: str,
        port: int,
        *,
        tls: ssl.SSLContext | None = None,
        backlog: int = BACKLOG,
    ) -> None:
        """Port 0 is replaced by a free one."""
        self.host, self.port = host, port
        self._tls, self._backlog = tls, backlog
        self._runner: web.BaseRunner
        if isinstance(served, web.Application):
            self._runner = web.AppRunner(served, access_log=None, shutdown_timeout=1.0)
        else:
            self._runner = web.ServerRunner(served, shutdown_timeout=1.0)

    @property
    def url(self) -> str:
        return f"{'http' if self._tls is None else 'https'}://{host_and_port(self.host, self.port)}"

    async def start(self) -> None:
        """Listen. ListenError if the address cannot be had."""
        await self._runner.setup()
        site = web.TCPSite(self._runner, self.host, self.port, ssl_context=self._tls, backlog=self._backlog)
        try:
            await site.start()
        except OSError as error:
            await self._runner.cleanup()
            where = host_and_port(self.host, self.port)
            raise ListenError(f"cannot listen on {where}: {_reason(error)}") from None
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        """Finish what is under way, within a second, and close all connections."""
        await self._runner.cleanup()


def bind(address: str, port: int, *, shares_port: bool = False) -> socket.socket:
    """A socket that listens there; an unspecified address stands for all addresses of both families.

    ListenError, in the words of Go's `net.Listen`, if the address cannot be had.
    """
    parsed = ipaddress.ip_address(address)
    families = [socket.AF_INET6 if parsed.version == 6 else socket.AF_INET]
    if parsed.is_unspecified and socket.has_dualstack_ipv6():
        families.insert(0, socket.AF_INET6)
    while True:
        try:
            return _bound(address, families.pop(0), port, shares_port=shares_port)
        except OSError as error:
            if families and error.errno == errno.EAFNOSUPPORT:
                continue
            where = host_and_port(address, port)
            raise ListenError(
                f"failed to create listener: failed to listen on {where}: listen tcp {where}: bind: {_reason(error)}"
            ) from None


def host_and_port(host: str, port: int) -> str:
    """`HOST:PORT`, with brackets around an IPv6 address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _bound(address: str, family: socket.AddressFamily, port: int, *, shares_port: bool) -> socket.socket:
    """As Go, it may take an address in TIME_WAIT; the flag about sharing addresses is about other things elsewhere."""
    is_dual = family == socket.AF_INET6 and ipaddress.ip_address(address).is_unspecified and socket.has_dualstack_ipv6()
    listener = socket.create_server(
        ("::" if is_dual else address, port),
        family=family,
        backlog=BACKLOG,
        reuse_port=shares_port,
        dualstack_ipv6=is_dual,
    )
    listener.setblocking(False)
    return listener


def _reason(error: OSError) -> str:
    """asyncio puts the address into its errors; names that cannot be resolved have numbers of their own."""
    if isinstance(error, socket.gaierror) or not error.errno:
        return error.strerror or str(error)
    return os.strerror(error.errno).lower()
