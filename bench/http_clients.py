"""What a POST costs in CPU with our HTTP client and with aiohttp's, against the same server in another process.

    python -m bench.http_clients [requests]

Not a test: it prints two tables, without and with TLS, which docs/decisions/012-own-http-client.md quotes.
`python -m bench requests` measures
ours alone, by what it costs and by what it calls.
"""

from __future__ import annotations

import asyncio
import cProfile
import multiprocessing
import pstats
import ssl
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

import aiohttp
import uvloop
from tests.unit.kube.certificates import authority, server_context

from kubesched.kube.client import Client, Throttle
from kubesched.kube.credentials import FixedAuthorization, bearer
from kubesched.kube.dialing import Dialer
from kubesched.kube.tls import ServerTrust
from kubesched.kube.transport import Transport
from kubesched.scheduler.garbage import map_large_buffers

_BINDING = (
    b'{"apiVersion":"v1","kind":"Binding","metadata":{"name":"pod-1","namespace":"default","uid":"'
    + b"0" * 36
    + b'"},"target":{"kind":"Node","name":"node-1"}}'
)
_CREATED = b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","code":201}\n'
_ANSWER = (
    b"HTTP/1.1 201 Created\r\nAudit-Id: 4ad0ba06-f4a6-4a15-8ff3-4bd3c9f7a1f0\r\nCache-Control: no-cache, private\r\n"
    b"Content-Type: application/json\r\nX-Kubernetes-Pf-Flowschema-Uid: 11111111-1111-1111-1111-111111111111\r\n"
    b"X-Kubernetes-Pf-Prioritylevel-Uid: 22222222-2222-2222-2222-222222222222\r\n"
    b"Date: Sun, 15 Nov 2026 12:00:00 GMT\r\nContent-Length: %d\r\n\r\n%s" % (len(_CREATED), _CREATED)
)
_PATH = "/api/v1/namespaces/default/pods/pod-1/binding"
_TOKEN = "t" * 900
_AT_ONCE = 32
_BURST, _PAUSE = 3, 0.002

Post = Callable[[], Awaitable[object]]


class _Server(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._received = b""

    def data_received(self, data: bytes) -> None:
        self._received += data
        if self._received.endswith(_BINDING):
            self._received = b""
            self._transport.write(_ANSWER)  # type: ignore[attr-defined]


def _serve(pipe: Connection, with_tls: bool) -> None:
    """Tells the authorities to trust and the port, then serves."""

    async def serve() -> None:
        context = None
        if with_tls:
            pair = authority().issue("server", hosts=("127.0.0.1",))
            with tempfile.TemporaryDirectory() as directory:
                context = server_context(Path(directory), pair)
        server = await asyncio.get_running_loop().create_server(_Server, "127.0.0.1", 0, ssl=context)
        pipe.send((authority().certificate if with_tls else b"", server.sockets[0].getsockname()[1]))
        await server.serve_forever()

    uvloop.run(serve())


@contextmanager
def _serving(with_tls: bool) -> Iterator[tuple[str, bytes]]:
    """The address of a server in a process of its own, and the authorities to trust."""
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.Process(target=_serve, args=(theirs, with_tls), daemon=True)
    server.start()
    authorities, port = ours.recv()
    try:
        yield f"{'https' if with_tls else 'http'}://127.0.0.1:{port}", authorities
    finally:
        server.terminate()
        server.join()


async def _in_a_row(post: Post, requests: int) -> None:
    async def worker() -> None:
        for _ in range(requests // _AT_ONCE):
            await post()

    await asyncio.gather(*(worker() for _ in range(_AT_ONCE)))


async def _in_bursts(post: Post, requests: int) -> None:
    """As pods come that are not all created at once: in between, the processor's caches are for others."""
    for _ in range(requests // _BURST):
        await asyncio.gather(*(post() for _ in range(_BURST)))
        await asyncio.sleep(_PAUSE)


async def _measure(post: Post, requests: int) -> str:
    await _in_a_row(post, 20 * _AT_ONCE)
    cpu, wall = time.process_time(), time.perf_counter()
    await _in_a_row(post, requests)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    return f"{cpu / requests * 1e3:.3f} ms CPU per request, {requests / wall:,.0f} requests/s"


@asynccontextmanager
async def _posting(url: str, authorities: bytes) -> AsyncIterator[Post]:
    dialer = Dialer(url, ServerTrust(ca_data=authorities))
    transport = Transport(dialer, FixedAuthorization(bearer(_TOKEN)), clock=time.monotonic)
    client = Client(transport, Throttle(-1, 0, clock=time.monotonic), clock=time.monotonic)
    try:
        yield lambda: client.post(_PATH, _BINDING)
    finally:
        await transport.close()


async def _ours(url: str, authorities: bytes, requests: int) -> str:
    async with _posting(url, authorities) as post:
        return await _measure(post, requests)


class Cost(NamedTuple):
    """Of one request over TLS with our client."""

    in_a_row_us: float
    in_bursts_us: float
    calls: float
    """Of functions, ours and others': where caches are cold, each costs more than what it does."""


def cost(requests: int = 6400) -> Cost:
    async def measured(url: str, authorities: bytes) -> Cost:
        async with _posting(url, authorities) as post:
            await _in_a_row(post, 20 * _AT_ONCE)
            started = time.process_time()
            await _in_a_row(post, requests)
            row = time.process_time()
            await _in_bursts(post, requests // 4)
            bursts = time.process_time()
            with cProfile.Profile() as profile:
                await _in_a_row(post, requests // 4)
            calls = pstats.Stats(profile).total_calls  # type: ignore[attr-defined]
            return Cost((row - started) * 1e6 / requests, (bursts - row) * 4e6 / requests, calls * 4 / requests)

    with _serving(with_tls=True) as (url, authorities):
        return uvloop.run(measured(url, authorities))


async def _aiohttp(url: str, authorities: bytes, requests: int) -> str:
    context = ssl.create_default_context(cadata=authorities.decode()) if authorities else False
    connector = aiohttp.TCPConnector(ssl=context, limit=64)
    headers = {"Authorization": bearer(_TOKEN), "Content-Type": "application/json"}
    async with aiohttp.ClientSession(connector=connector, headers=headers) as session:

        async def post() -> bytes:
            async with session.post(url + _PATH, data=_BINDING) as answer:
                return await answer.read()

        return await _measure(post, requests)


def main() -> None:
    map_large_buffers()  # as the daemon does
    requests = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    for with_tls in (False, True):
        with _serving(with_tls) as (url, authorities):
            sys.stdout.write(f"{url.partition(':')[0]}, {_AT_ONCE} at once\n")
            for name, run in (("kubesched.kube", _ours), ("aiohttp", _aiohttp)):
                sys.stdout.write(f"  {name:15} {uvloop.run(run(url, authorities, requests))}\n")


if __name__ == "__main__":
    main()
