"""Requests as bytes on pooled connections, with credentials: what all clients of one API server share."""

from __future__ import annotations

import asyncio
import platform
import sys
from collections.abc import Callable

from kubesched import __version__
from kubesched.kube.connection_pool import MOST_CONNECTIONS, MOST_DIALED_AT_ONCE, ConnectionPool, Told
from kubesched.kube.credentials import Credentials
from kubesched.kube.deadlines import Deadlines
from kubesched.kube.dialing import Dialer
from kubesched.kube.errors import AnswerTimeoutError, UnreachableError
from kubesched.kube.http_connection import Answer, AnswerStream, HttpConnection
from kubesched.kube.tls import Certificate

JSON = "application/json"

_MOST_HEADS = 16
_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}


def user_agent(suffix: str = "") -> str:
    """How we introduce ourselves: name, version and platform in client-go's form."""
    machine = platform.machine()
    return f"kubesched/{__version__} ({sys.platform}/{_MACHINES.get(machine, machine)}){suffix and '/' + suffix}"


class _Sending:
    """How far a request is."""

    __slots__ = ("began", "may_send", "was_outdated")

    def __init__(self, may_send: Callable[[], bool]) -> None:
        self.may_send = may_send
        self.began = False
        self.was_outdated = False
        """It was refused on a connection with a certificate that was replaced since."""


class Transport:
    """Sends requests and brings answers, whatever their status. Use it within one event loop, then close it."""

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
        self._shown: Certificate | None = None
        self._pool = ConnectionPool(self._dial, size=connections, clock=clock)
        self._streams: set[HttpConnection] = set()
        self._opening = asyncio.Semaphore(MOST_DIALED_AT_ONCE)
        self._heads: dict[tuple[str, str], str] = {}
        self._deadlines = Deadlines()

    async def send(
        self,
        method: str,
        path: str,
        body: bytes,
        content_type: str,
        *,
        agent: str,
        timeout: float | None,
        may_send: Callable[[], bool] = lambda: True,
    ) -> Answer:
        """The answer to one request. Raises UnreachableError, CredentialsError.

        The timeout is for all of it: credentials, a connection, sending, the answer. `may_send` is asked at the last
        moment: nothing is waited for between it and the first byte.
        """
        sending = _Sending(may_send)
        try:
            async with asyncio.timeout(None) as limit:
                if timeout is not None:
                    self._deadlines.keep(limit, timeout)
                try:
                    return await self._send_with_credentials(method, path, body, content_type, agent, sending)
                finally:
                    self._deadlines.drop(limit)
        except TimeoutError:
            if sending.began:
                self._pool.close_idle()  # whoever has died behind this address may have been at their other end, too
            raise AnswerTimeoutError(f"no answer within {timeout:g} s", maybe_done=sending.began) from None

    async def open(self, path: str, *, agent: str, timeout: float | None) -> AnswerStream:
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
        """Send what comes next on new connections: who should answer on the present ones may be gone."""
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

    async def _send_with_credentials(
        self, method: str, path: str, body: bytes, content_type: str, agent: str, sending: _Sending
    ) -> Answer:
        authorization = await self._authorization()
        answer = await self._send(self._request(method, path, body, content_type, agent, authorization), sending)
        if answer.status == 401 and (sending.was_outdated or await self._credentials.renew(authorization)):
            # 401 is decided before anything is done, so even a write may be sent again.
            authorization = await self._authorization()
            answer = await self._send(self._request(method, path, body, content_type, agent, authorization), sending)
        return answer

    async def _send(self, data: bytes, sending: _Sending) -> Answer:
        connection = await self._pool.take()
        try:
            if not sending.may_send():
                raise UnreachableError("not sent, because the lease is lost")
            sending.began = True
            answer = await connection.request(data)
            if answer.status == 401:
                sending.was_outdated = self._pool.refused(connection)
            return answer
        finally:
            self._pool.give_back(connection)

    async def _open(self, path: str, agent: str, authorization: str) -> AnswerStream:
        async with self._opening:
            connection = await self._dialer.dial(self._shown, self._streams.discard)
        self._streams.add(connection)
        return await connection.open_stream(self._request("GET", path, b"", "", agent, authorization))

    async def _dial(self, lost: Told, spare: Told) -> HttpConnection:
        return await self._dialer.dial(self._shown, lost, spare)

    async def _authorization(self) -> str:
        authorization = await self._credentials.authorization()
        certificate = self._credentials.certificate()
        if certificate is not self._shown and certificate != self._shown:
            self._shown = certificate
            self._pool.retire()
        return authorization

    def _request(self, method: str, path: str, body: bytes, content_type: str, agent: str, authorization: str) -> bytes:
        head = self._heads.get((agent, authorization))
        if head is None:
            if len(self._heads) >= _MOST_HEADS:  # tokens come and go
                self._heads.clear()
            head = self._heads[agent, authorization] = self._common_head(agent, authorization)
        first_line = f"{method} {self._dialer.request_prefix}{path} HTTP/1.1\r\n"
        if not body and method == "GET":
            return f"{first_line}{head}\r\n".encode("latin-1")
        length = f"Content-Type: {content_type}\r\nContent-Length: {len(body)}\r\n\r\n"
        return f"{first_line}{head}{length}".encode("latin-1") + body

    def _common_head(self, agent: str, authorization: str) -> str:
        lines = [
            f"Host: {self.host}\r\n",
            f"User-Agent: {agent}\r\n",
            f"Accept: {JSON}\r\n",
            # As kube-scheduler: its API server is near, and compressing costs the server more than the network saves.
            "Accept-Encoding: identity\r\n",
        ]
        if authorization:
            lines.append(f"Authorization: {authorization}\r\n")
        return "".join((*lines, self._dialer.extra_headers, self._headers))
