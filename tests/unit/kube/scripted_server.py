"""A real HTTP server that answers as a test says: in odd pieces, late, half, or not at all."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from kubesched.kube.client import Client, Throttle
from kubesched.kube.credentials import Credentials, FixedAuthorization
from kubesched.kube.dialing import Dialer
from kubesched.kube.observer import Observer
from kubesched.kube.tls import ServerTrust
from kubesched.kube.transport import Transport

Script = Callable[["Exchange"], Awaitable[None]]


@dataclass
class Request:
    """What the server was asked."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    connection: int


@dataclass
class Exchange:
    """One request and the means to answer it."""

    request: Request
    writer: asyncio.StreamWriter

    async def send(self, *pieces: bytes) -> None:
        """Each piece in a packet of its own, as far as that can be had."""
        for piece in pieces:
            self.writer.write(piece)
            await self.writer.drain()
            await asyncio.sleep(0)

    def hang_up(self) -> None:
        self.writer.close()


@dataclass
class ScriptedServer:
    """Follows its scripts in turn, one per request, and the last one for ever."""

    scripts: list[Script]
    requests: list[Request] = field(default_factory=list)
    port: int = 0
    connections: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        connection = self.connections
        try:
            while request := await _read(reader, connection):
                self.requests.append(request)
                script = self.scripts.pop(0) if len(self.scripts) > 1 else self.scripts[0]
                await script(Exchange(request, writer))
        except ConnectionError:
            pass
        finally:
            writer.close()

    @property
    def paths(self) -> list[str]:
        return [request.path for request in self.requests]


def answering(status: int, body: bytes = b"{}", **headers: str) -> Script:
    """A whole answer at once. Header names have underscores for dashes."""
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())

    async def script(exchange: Exchange) -> None:
        await exchange.send(f"HTTP/1.1 {status} X\r\n{lines}Content-Length: {len(body)}\r\n\r\n".encode() + body)

    return script


def sending(*pieces: bytes, then_hang_up: bool = False) -> Script:
    """These bytes, whatever they are."""

    async def script(exchange: Exchange) -> None:
        await exchange.send(*pieces)
        if then_hang_up:
            exchange.hang_up()

    return script


def chunked(*chunks: bytes, end: bool = True, then_hang_up: bool = False) -> Script:
    """An answer in chunks."""
    pieces = [b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks]
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    return sending(head, *pieces, *([b"0\r\n\r\n"] if end else []), then_hang_up=then_hang_up)


async def hanging_up(exchange: Exchange) -> None:
    """No answer at all."""
    exchange.hang_up()


async def silent(exchange: Exchange) -> None:
    """An answer that does not come."""
    await asyncio.sleep(3600)


@asynccontextmanager
async def serving(*scripts: Script, tls: ssl.SSLContext | None = None) -> AsyncIterator[ScriptedServer]:
    """A server on a free port."""
    server = ScriptedServer(list(scripts))
    tasks: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks[asyncio.create_task(server.serve(reader, writer))] = writer

    listening = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=tls)
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listening.close()
        for task, writer in tasks.items():
            task.cancel()
            writer.close()  # one that was only just accepted has not begun to be served
        await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def talking_to(
    server: ScriptedServer,
    *,
    credentials: Credentials | None = None,
    observer: Observer | None = None,
    trust: ServerTrust | None = None,
    proxy: str = "",
    host: str = "127.0.0.1",
    connections: int = 8,
    qps: float = -1,
    burst: int = 0,
    throttle_clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> AsyncIterator[Client]:
    """A client of that server."""
    scheme = "https" if trust is not None else "http"
    dialer = Dialer(f"{scheme}://{host}:{server.port}", trust or ServerTrust(), proxy)
    transport = Transport(dialer, credentials or FixedAuthorization(), connections=connections, clock=time.monotonic)
    throttle = Throttle(qps, burst, clock=throttle_clock)
    try:
        yield Client(transport, throttle, observer=observer, clock=time.monotonic, sleep=sleep)
    finally:
        await transport.close()


async def _read(reader: asyncio.StreamReader, connection: int) -> Request | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.rstrip().split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    method, path, _ = first.split(" ")
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Request(method, path, headers, body, connection)
