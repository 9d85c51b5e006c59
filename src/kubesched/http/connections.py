"""Connections to a port: how many there may be, and how long a client may take over a request.

Hostile clients hold connections open, send a byte a minute, or never finish a handshake. None of that may keep a probe
away, nor take the descriptors that the program needs for connections of its own. So there are at most so many, in all
and per address. Where there is no room, the one that has kept us waiting the longest makes room: a probe gets in.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import resource
import socket
import ssl
from collections.abc import Callable
from typing import Any

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

log = logging.getLogger(__name__)

HANDSHAKE_SECONDS = 10.0
HEAD_SECONDS = 32.0
"""From the first byte of a request to the end of its head, or of the answer before it; as in kube-scheduler."""
IDLE_SECONDS = 90.0
"""Seconds that an open connection may be quiet."""

MOST = 512
MOST_PER_ADDRESS = 64
_SHARE_OF_DESCRIPTORS = 4
"""Connections to the port take at most one descriptor in four."""
_OUT_OF_DESCRIPTORS_PAUSE = 0.1


class Connection(asyncio.Protocol):
    """A connection: passes everything to aiohttp's protocol, and notes what the client is waited for.

    That protocol is made when the handshake is over: most hostile clients never get there, and it is not freed by its
    count.
    """

    def __init__(
        self, accepted: socket.socket, address: str, make: Callable[[], Any], ended: Callable[[Connection], None]
    ) -> None:
        self.address = address
        self._make = make
        self._ended = ended
        self._inner: Any = None
        self._socket = accepted
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self.is_busy = False
        """Whether a request is being answered, rather than waited for."""

    def abort(self) -> None:
        """Close it without another word, also while its handshake is under way."""
        if self._transport is not None:
            self._transport.abort()
        else:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def answering(self) -> None:
        """The head of a request is complete."""
        self.is_busy = True
        self._wait_no_longer()

    def answered(self) -> None:
        """The answer is made; it is still to be read by the client, within the time of an idle connection."""
        self.is_busy = False
        self._wait_for(IDLE_SECONDS)

    def end(self) -> None:
        self._wait_no_longer()
        self._ended(self)

    # -- what asyncio calls -------------------------------------------------------------------------------------------

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._wait_for(HEAD_SECONDS)
        self._inner = self._make()
        self._inner.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        if not self.is_busy and self._timer is not None and self._timer.when() - _now() > HEAD_SECONDS:
            self._wait_for(HEAD_SECONDS)  # the next request begins
        self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        answer: bool | None = self._inner.eof_received()
        return answer

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()

    def connection_lost(self, error: Exception | None) -> None:
        self._inner.connection_lost(error)
        self.end()

    def _wait_for(self, seconds: float) -> None:
        self._wait_no_longer()
        self._timer = asyncio.get_running_loop().call_later(seconds, self.abort)

    def _wait_no_longer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class Connections:
    """Accepts connections on one socket, for one aiohttp server."""

    def __init__(self, *, most: int | None = None, most_per_address: int = MOST_PER_ADDRESS) -> None:
        self._most = most_by_descriptors() if most is None else most
        self._most_per_address = min(most_per_address, self._most)
        self._open: dict[Connection, None] = {}
        """In order of arrival."""
        self._starting: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._open)

    def middleware(self) -> Middleware:
        """Notes when a request begins to be answered, and when it has been."""

        @web.middleware
        async def noting(request: web.Request, handler: Handler) -> web.StreamResponse:
            connection = _connection_of(request)
            if connection is None:
                return await handler(request)
            connection.answering()
            try:
                return await handler(request)
            finally:
                connection.answered()

        return noting

    async def accept(self, listener: socket.socket, context: ssl.SSLContext | None, make: Callable[[], Any]) -> None:
        """Until cancelled; `make` gives the protocol of a new connection. Without a context there is no TLS."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, peer = await loop.sock_accept(listener)
            except OSError as error:  # no descriptors are left, for now
                log.error("A connection could not be accepted: %s", error)
                await asyncio.sleep(_OUT_OF_DESCRIPTORS_PAUSE)
                continue
            task = loop.create_task(self._start(accepted, str(peer[0]), context, make))
            self._starting.add(task)
            task.add_done_callback(self._starting.discard)

    def close(self) -> None:
        """Close what waits for a client; what is being answered goes on."""
        for connection in [*self._open]:
            if not connection.is_busy:
                connection.abort()

    async def _start(
        self, accepted: socket.socket, address: str, context: ssl.SSLContext | None, make: Callable[[], Any]
    ) -> None:
        within = None if context is None else HANDSHAKE_SECONDS
        connection = Connection(accepted, address, make, self._ended)
        self._make_room(address)
        self._open[connection] = None
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: connection, accepted, ssl=context, ssl_handshake_timeout=within
            )
        except (OSError, TimeoutError):  # of the handshake; ssl.SSLError is an OSError
            accepted.close()
            connection.end()

    def _make_room(self, address: str) -> None:
        """Before one more is let in: the connection that has kept us waiting the longest goes, of the same address if
        that has too many. If all are being answered, the oldest goes all the same."""
        of_address = [connection for connection in self._open if connection.address == address]
        if len(of_address) >= self._most_per_address:
            self._drop_one_of(of_address)
        elif len(self._open) >= self._most:
            self._drop_one_of([*self._open])

    def _drop_one_of(self, connections: list[Connection]) -> None:
        dropped = next((connection for connection in connections if not connection.is_busy), connections[0])
        self._ended(dropped)
        dropped.abort()

    def _ended(self, connection: Connection) -> None:
        self._open.pop(connection, None)


def most_by_descriptors() -> int:
    """As many connections as leave enough descriptors for everything else."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST if soft == resource.RLIM_INFINITY else max(8, min(MOST, soft // _SHARE_OF_DESCRIPTORS))


def _connection_of(request: web.Request) -> Connection | None:
    protocol = request.transport.get_protocol() if request.transport is not None else None
    return protocol if isinstance(protocol, Connection) else None


def _now() -> float:
    return asyncio.get_running_loop().time()
