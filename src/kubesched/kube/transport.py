"""Requests as bytes on pooled connections, with credentials: what all clients of one API server share."""

from __future__ import annotations

import asyncio
import platform
import sys
from collections.abc import Awaitable, Callable
from typing import TypeVar

from kubesched import __version__
from kubesched.kube.connection_pool import MOST_CONNECTIONS, MOST_DIALED_AT_ONCE, ConnectionPool, OnConnection
from kubesched.kube.credentials import Credentials
from kubesched.kube.deadlines import Deadlines
from kubesched.kube.dialing import Dialer
from kubesched.kube.errors import AnswerTimeoutError, UnreachableError
from kubesched.kube.http_connection import AnswerStream, HttpConnection, HttpResponse
from kubesched.kube.tls import Certificate

T = TypeVar("T")

JSON = "application/json"

_MOST_HEADS = 16
_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}


def user_agent(suffix: str = "") -> str:
    """The User-Agent: name, version and platform in client-go's form."""
    machine = platform.machine()
    return f"kubesched/{__version__} ({sys.platform}/{_MACHINES.get(machine, machine)}){suffix and '/' + suffix}"


class Transport:
    """Sends requests and returns answers of any status. Use it within one event loop, then close it."""

    def __init__(
        self,
        dialer: Dialer,
        credentials: Credentials,
        *,
        headers: str = "",
        connections: int = MOST_CONNECTIONS,
        clock: Callable[[], float],
    ) -> None:
        """`headers` are whole lines that go with every request: impersonation, for instance."""
        self.host = dialer.address.host_header
        self._dialer = dialer
        self._credentials = credentials
        self._headers = headers
        self._certificate: Certificate | None = None
        self._pool = ConnectionPool(self._dial, size=connections, clock=clock)
        self._streams: set[HttpConnection] = set()
        self._opening = asyncio.Semaphore(MOST_DIALED_AT_ONCE)
        self._heads: dict[tuple[str, str, str], str] = {}
        self._deadlines = Deadlines()

    async def send(
        self,
        method: str,
        path: str,
        body: bytes,
        content_type: str,
        *,
        agent: str,
        timeout: float,
        may_send: Callable[[], bool] = lambda: True,
    ) -> HttpResponse:
        """The answer to one request. Raises UnreachableError, CredentialsError.

        The timeout is for all of it: credentials, a connection, sending, the answer. `may_send` is asked at the last
        moment: nothing is waited for between it and the first byte.
        """
        until, began, is_last = asyncio.get_running_loop().time() + timeout, False, False
        try:
            while True:
                if (authorization := self._credentials.at_hand()) is None:
                    authorization = await _in_time(self._authorization(), until)
                elif (certificate := self._credentials.certificate()) is not self._certificate:
                    self._show(certificate)
                data = self._request(method, path, body, content_type, agent, authorization)
                if (connection := self._pool.take_idle()) is None:
                    connection = await self._pool.take(until)
                try:
                    if not may_send():
                        raise UnreachableError("not sent, because the lease is lost")
                    began = True
                    awaited = connection.request(data)
                    self._deadlines.keep(awaited, until)
                    try:
                        answer = await awaited
                    finally:
                        self._deadlines.drop(awaited)
                        del awaited  # an error has this frame in its traceback, and would hold itself by it
                    was_outdated = answer.status == 401 and self._pool.refused(connection)
                finally:
                    self._pool.give_back(connection)  # which hangs up unless the answer has come
                if answer.status != 401 or is_last:
                    return answer
                if not was_outdated and not await _in_time(self._credentials.renew(authorization), until):
                    return answer
                is_last = True  # 401 is decided before anything is done, so even a write may be sent again
        except TimeoutError:
            if began:
                self._pool.close_idle()  # whoever has died behind this address may have been at their other end, too
            raise AnswerTimeoutError(f"no answer within {timeout:g} s", maybe_done=began) from None

    async def open(self, path: str, *, agent: str, timeout: float) -> AnswerStream:
        """The answer to a GET as a stream, on a connection of its own. Close the stream when done with it.

        The timeout is for all that comes before the answer's body.
        """
        try:
            async with asyncio.timeout(timeout):
                authorization = await self._authorization()
                stream = await self._open(path, agent, authorization)
                if stream.head.status == 401 and await self._credentials.renew(authorization):
                    stream.close()
                    stream = await self._open(path, agent, await self._authorization())
                return stream
        except TimeoutError:
            raise AnswerTimeoutError(f"no answer within {timeout:g} s", maybe_done=True) from None

    def distrust(self) -> None:
        """Send the next requests on new connections: the server at the other end of the present ones may be gone."""
        self._pool.distrust()

    async def close(self) -> None:
        """Hang up everywhere."""
        self._deadlines.close()
        await self._credentials.close()
        await self._pool.close()
        await self._dialer.close()
        for connection in tuple(self._streams):
            connection.close()
        await asyncio.sleep(0)  # closed transports say so in the loop's next turn

    async def _open(self, path: str, agent: str, authorization: str) -> AnswerStream:
        async with self._opening:
            connection = await self._dialer.dial(self._certificate, self._streams.discard)
        self._streams.add(connection)
        return await connection.open_stream(self._request("GET", path, b"", "", agent, authorization))

    async def _dial(self, lost: OnConnection, spare: OnConnection) -> HttpConnection:
        return await self._dialer.dial(self._certificate, lost, spare)

    async def _authorization(self) -> str:
        authorization = await self._credentials.authorization()
        self._show(self._credentials.certificate())
        return authorization

    def _show(self, certificate: Certificate | None) -> None:
        """Show this certificate, which goes with the last authorization, on all new connections."""
        if certificate != self._certificate:
            self._certificate = certificate
            self._pool.retire()

    def _request(self, method: str, path: str, body: bytes, content_type: str, agent: str, authorization: str) -> bytes:
        if not body and method == "GET":
            content_type = ""
        head = self._heads.get((agent, authorization, content_type))
        if head is None:
            if len(self._heads) >= _MOST_HEADS:  # there is one for each token
                self._heads.clear()
            head = self._heads[agent, authorization, content_type] = self._head(agent, authorization, content_type)
        length = len(body) if content_type else ""
        head = f"{method} {self._dialer.request_prefix}{path} HTTP/1.1\r\n{head}{length}\r\n\r\n"
        return head.encode("latin-1") + body

    def _head(self, agent: str, authorization: str, content_type: str) -> str:
        """The lines after the first. With a body, its length is to be appended."""
        lines = [
            f"Host: {self.host}\r\n",
            f"User-Agent: {agent}\r\n",
            f"Accept: {JSON}\r\n",
            # As kube-scheduler: its API server is near, and compressing costs the server more than the network saves.
            "Accept-Encoding: identity\r\n",
        ]
        if authorization:
            lines.append(f"Authorization: {authorization}\r\n")
        head = "".join((*lines, self._dialer.extra_headers, self._headers))
        return f"{head}Content-Type: {content_type}\r\nContent-Length: " if content_type else head.removesuffix("\r\n")


async def _in_time(waiting: Awaitable[T], until: float) -> T:
    """Raises TimeoutError at that time of the loop."""
    async with asyncio.timeout_at(until):
        return await waiting
