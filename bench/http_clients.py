"""What a POST costs in CPU with our HTTP client and with aiohttp's, against the same server in another process.

    python -m bench.http_clients [requests]

Not a test: it prints two tables, without and with TLS. docs/decisions.md quotes it.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import ssl
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from multiprocessing.connection import Connection
from pathlib import Path

import aiohttp
import uvloop
from tests.unit.kube.certificates import authority, server_context

from kubesched.daemon.allocator import map_large_buffers
from kubesched.kube.client import Client, Throttle
from kubesched.kube.credentials import FixedAuthorization, bearer
from kubesched.kube.dialing import Dialer
from kubesched.kube.tls import ServerTrust
from kubesched.kube.transport import Transport

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


async def _measure(post: Post, requests: int) -> str:
    async def worker(count: int) -> None:
        for _ in range(count):
            await post()

    await asyncio.gather(*(worker(20) for _ in range(_AT_ONCE)))
    cpu, wall = time.process_time(), time.perf_counter()
    await asyncio.gather(*(worker(requests // _AT_ONCE) for _ in range(_AT_ONCE)))
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    return f"{cpu / requests * 1e3:.3f} ms CPU per request, {requests / wall:,.0f} requests/s"


async def _ours(url: str, authorities: bytes, requests: int) -> str:
    dialer = Dialer(url, ServerTrust(ca_data=authorities))
    transport = Transport(dialer, FixedAuthorization(bearer(_TOKEN)), clock=time.monotonic)
    client = Client(transport, Throttle(-1, 0, clock=time.monotonic), clock=time.monotonic)
    try:
        return await _measure(lambda: client.post(_PATH, _BINDING), requests)
    finally:
        await transport.close()


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
    for scheme in ("http", "https"):
        ours, theirs = multiprocessing.Pipe()
        server = multiprocessing.Process(target=_serve, args=(theirs, scheme == "https"), daemon=True)
        server.start()
        authorities, port = ours.recv()
        url = f"{scheme}://127.0.0.1:{port}"
        sys.stdout.write(f"{scheme}, {_AT_ONCE} at once\n")
        for name, run in (("kubesched.kube", _ours), ("aiohttp", _aiohttp)):
            sys.stdout.write(f"  {name:15} {uvloop.run(run(url, authorities, requests))}\n")
        server.terminate()
        server.join()


if __name__ == "__main__":
    main()
