"""New connections to the API server: directly or through a proxy, in the clear or with TLS."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import math
import socket
import ssl
from collections.abc import Callable
from urllib.parse import urlsplit

from kubesched.kube.errors import AnswerTimeoutError, ConnectionSettingsError, UnreachableError
from kubesched.kube.hedging import first_of_several
from kubesched.kube.http_connection import HttpConnection
from kubesched.kube.proxy import Proxy, TunnelHandshake, address_of, parse_proxy, proxy_authorization
from kubesched.kube.shared_work import SharedWork
from kubesched.kube.tls import Certificate, ServerTrust, TlsContexts

DIAL_TIMEOUT = 30.0
NEXT_DIAL_AFTER = 0.5
"""Seconds without a connection (TLS included) after which another one is dialed beside it; the first made is used."""
PATIENCE = 2.0
"""The factor by which the pauses grow: the third comes a second after the second, and so on. Where handshakes are slow
because all clients redial at once (a server died), several for each connection would make them slower still. So there
the second waits longer, too."""
LONGEST_START = 8.0
MOST_DIALS = 6
"""The last of them begins after 15 s."""
URGENT_PAUSE = 2.0
"""The longest pause, in seconds, for urgent connections such as the lease's."""
MOST_URGENT_DIALS = 12
LEAVE_WITHIN = 5.0
"""Seconds within which a connection must be made for which nobody waits any more."""
LOOKUP_PATIENCE = 0.5
"""Seconds after which the last addresses of a name are used while the name server is still being asked: a name server
that is ill must not stop the client."""
_READ_AT_ONCE = 256 * 1024
"""Bytes, as many as uvloop reads at once."""


class Address:
    """The address of a server: the parts of its URL."""

    def __init__(self, server: str) -> None:
        try:
            parts = urlsplit(server)
            port = parts.port
        except ValueError as error:
            raise ConnectionSettingsError(f'server "{server}": {error}') from None
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConnectionSettingsError(f'expected a server such as "https://host:6443", got "{server}"')
        self.is_tls = parts.scheme == "https"
        self.host: str = parts.hostname
        self.port = port or (443 if self.is_tls else 80)
        self.host_header = parts.netloc.rpartition("@")[2]
        self.path = parts.path.rstrip("/")


class Dialer:
    """Makes connections to one server, all for one event loop."""

    def __init__(self, server: str, trust: ServerTrust, proxy_url: str = "", *, is_urgent: bool = False) -> None:
        """Raises ConnectionSettingsError if the address cannot be one."""
        self._is_urgent = is_urgent
        self.address = Address(server)
        self._server_name = trust.server_name or self.address.host
        self._contexts = TlsContexts(trust)
        self._proxy: Proxy | None = parse_proxy(proxy_url, "proxy-url") if proxy_url else None
        forwards = self._proxy is not None and self._proxy.scheme in ("http", "https") and not self.address.is_tls
        # Requests in the clear are handed to an HTTP proxy as they are, with the whole URL; others need a tunnel.
        self.request_prefix = f"http://{self.address.host_header}{self.address.path}" if forwards else self.address.path
        self.extra_headers = proxy_authorization(self._proxy) if self._proxy is not None and forwards else ""
        self._tunnels = self._proxy is not None and not forwards
        self._proxy_context = (
            ssl.create_default_context() if self._proxy is not None and self._proxy.scheme == "https" else None
        )
        self._lookup = HostLookup(self._first_host)
        self._took = 0.0
        """Seconds for the last connection that was made: where all are slow, more of them make it worse."""
        self._leaving: set[asyncio.Task[None]] = set()
        self._buffer = bytearray(_READ_AT_ONCE)

    async def dial(
        self,
        certificate: Certificate | None,
        lost: Callable[[HttpConnection], None],
        spare: Callable[[HttpConnection], None] = lambda connection: connection.close(),
    ) -> HttpConnection:
        """A new connection, showing this certificate. Raises UnreachableError in words for people.

        `lost` is called when a connection ends; `spare` gets those that were dialed beside it and are made later.
        """
        where = f"{self.address.host}:{self.address.port}"
        try:
            async with asyncio.timeout(DIAL_TIMEOUT):
                return await self._first_of_several(certificate, lost, spare)
        except TimeoutError:
            raise AnswerTimeoutError(f"dial tcp {where}: no connection within {DIAL_TIMEOUT:g} s") from None
        except ssl.SSLCertVerificationError as error:
            raise UnreachableError(f"dial tcp {where}: the server's certificate: {error.verify_message}") from None
        except ssl.SSLError as error:
            raise UnreachableError(f"dial tcp {where}: tls: {error.reason or error}") from None
        except socket.gaierror as error:
            raise UnreachableError(f"dial tcp: lookup {self._first_host}: {error.strerror}") from None
        except OSError as error:
            raise UnreachableError(f"dial tcp {where}: {_reason(error)}") from None

    @property
    def _first_host(self) -> str:
        return self.address.host if self._proxy is None else self._proxy.host

    async def _first_of_several(
        self,
        certificate: Certificate | None,
        lost: Callable[[HttpConnection], None],
        spare: Callable[[HttpConnection], None],
    ) -> HttpConnection:
        """Dials again beside a dial that takes long: behind one address may be several servers, of which one has died.

        A name may have several addresses: each dial begins with another.
        """
        context = self._contexts.context(certificate) if self.address.is_tls else None
        turns = itertools.count()
        return await first_of_several(
            lambda: self._dial(context, lost, next(turns)),
            next_after=NEXT_DIAL_AFTER if self._is_urgent else min(max(NEXT_DIAL_AFTER, 2 * self._took), LONGEST_START),
            most=MOST_URGENT_DIALS if self._is_urgent else MOST_DIALS,
            patience=PATIENCE,
            longest=URGENT_PAUSE if self._is_urgent else math.inf,
            leave=lambda dial: self._leave(dial, spare),
        )

    def _leave(self, dial: asyncio.Task[HttpConnection], spare: Callable[[HttpConnection], None]) -> None:
        """Another dial was first, or nobody waits any more.

        The connection is made all the same, if that does not take long: uvloop goes on with a handshake that was
        cancelled, and breaks.
        """
        leaving = asyncio.create_task(_finish_dial(dial, spare))
        self._leaving.add(leaving)
        leaving.add_done_callback(self._leaving.discard)

    async def close(self) -> None:
        """End the lookup and the dials for which nobody waits."""
        await self._lookup.end()
        leaving = tuple(self._leaving)
        for task in leaving:
            task.cancel()
        await asyncio.gather(*leaving, return_exceptions=True)

    async def _dial(
        self, context: ssl.SSLContext | None, lost: Callable[[HttpConnection], None], turn: int
    ) -> HttpConnection:
        """Dial the addresses in turn, beginning with that of the turn, until one accepts."""
        addresses = await self._lookup.addresses()
        turn %= len(addresses)
        *firsts, last = addresses[turn:] + addresses[:turn]
        for address in firsts:
            with contextlib.suppress(OSError):
                return await self._dial_at(address, context, lost)
        return await self._dial_at(last, context, lost)

    async def _dial_at(
        self, address: str, context: ssl.SSLContext | None, lost: Callable[[HttpConnection], None]
    ) -> HttpConnection:
        loop = asyncio.get_running_loop()
        began = loop.time()
        connection = HttpConnection(loop, lost, self._buffer)
        if self._proxy is None:
            transport = await _connect(connection, address, self.address.port, context, self._server_name)
        elif self._tunnels:
            transport = await self._tunnel(address, self._proxy, connection, context)
        else:
            proxy = self._proxy
            transport = await _connect(connection, address, proxy.port, self._proxy_context, proxy.host)
        _keep_alive(transport.get_extra_info("socket"))
        self._took = loop.time() - began
        return connection

    async def _tunnel(
        self, address: str, proxy: Proxy, connection: HttpConnection, context: ssl.SSLContext | None
    ) -> asyncio.Transport:
        loop = asyncio.get_running_loop()
        handshake = TunnelHandshake(proxy, self.address.host, self.address.port)
        plain = await _connect(handshake, address, proxy.port, self._proxy_context, proxy.host)
        try:
            await handshake.done
            transport: asyncio.Transport | None = plain
            if context is None:
                plain.set_protocol(connection)
            else:
                transport = await loop.start_tls(plain, connection, context, server_hostname=self._server_name)
            if transport is None:
                raise UnreachableError("the proxy closed the connection")
        except BaseException:
            plain.abort()
            raise
        connection.connection_made(transport)
        return transport


async def _connect(
    protocol: asyncio.BaseProtocol, address: str, port: int, context: ssl.SSLContext | None, name: str
) -> asyncio.Transport:
    """Connect, in the clear without a context; with one, the server's certificate must have the name."""
    transport, _ = await asyncio.get_running_loop().create_connection(
        lambda: protocol, address, port, ssl=context, server_hostname=name if context is not None else None
    )
    return transport


async def _finish_dial(dial: asyncio.Task[HttpConnection], spare: Callable[[HttpConnection], None]) -> None:
    is_spared = False
    try:
        await asyncio.wait((dial,), timeout=LEAVE_WITHIN)
        is_spared = True
    finally:
        dial.cancel()  # which does nothing to one that is done
        for connection in await asyncio.gather(dial, return_exceptions=True):
            if isinstance(connection, HttpConnection):
                spare(connection) if is_spared else connection.close()


def _keep_alive(sock: socket.socket) -> None:
    """Notice within a minute or so that the other side is gone, even if neither side has anything to say."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, seconds in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, option):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), seconds)
    if hasattr(socket, "TCP_USER_TIMEOUT"):  # for data that is never acknowledged
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 60_000)


def _reason(error: OSError) -> str:
    """The reason without the address, which asyncio repeats."""
    if isinstance(error, ConnectionRefusedError):
        return "connect: connection refused"
    if error.errno is not None and error.strerror and not error.strerror.startswith("Connect call failed"):
        return error.strerror
    return str(error)


class HostLookup:
    """Looks up one name, once at a time: lookups block threads, of which a process has few."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._is_address = address_of(name) is not None
        self._addresses: list[str] = [name] if self._is_address else []
        self._asking = SharedWork(self._ask)

    async def addresses(self) -> list[str]:
        """At least one. Raises socket.gaierror if the name has never had any."""
        if not self._is_address:
            try:
                async with asyncio.timeout(LOOKUP_PATIENCE if self._addresses else None):
                    await self._asking.wait()
            except OSError:  # a TimeoutError is one, too
                if not self._addresses:
                    raise
        return self._addresses

    async def end(self) -> None:
        """End the lookup."""
        await self._asking.end()

    async def _ask(self) -> None:
        addresses = await asyncio.get_running_loop().getaddrinfo(self._name, None, type=socket.SOCK_STREAM)
        self._addresses = list(dict.fromkeys(str(address[0]) for *_, address in addresses))
