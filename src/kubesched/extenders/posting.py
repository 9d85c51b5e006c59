"""Posting JSON to a server that must answer in time: the whole call, not each of its bytes."""

from __future__ import annotations

import base64
import http.client
import os
import time
from collections import deque
from collections.abc import Mapping
from http import HTTPStatus
from typing import NamedTuple
from urllib.parse import SplitResult, unquote, urljoin, urlsplit

from kubesched.config.configuration import ExtenderTLSConfig
from kubesched.config.duration import Duration
from kubesched.extenders.dialing import (
    Connection,
    Dialer,
    HushedError,
    Route,
    host_of,
    route_to,
    without_password,
)
from kubesched.proxies import TunnelRefusedError, proxy_authorization

LONGEST_ANSWER = 256 * 2**20
MOST_REQUESTS = 10
"""As many are made for one call, of which all but the first go where the answer before led to."""
MOST_IDLE = 8
IDLE_SECONDS = 90.0
"""After that time a connection is not used again, as in Go."""

_TO_BE_FOUND_ELSEWHERE = (HTTPStatus.MOVED_PERMANENTLY, HTTPStatus.FOUND, HTTPStatus.SEE_OTHER)
_TO_BE_POSTED_ELSEWHERE = (HTTPStatus.TEMPORARY_REDIRECT, HTTPStatus.PERMANENT_REDIRECT)


class PostError(Exception):
    """Nothing came back that could be read, and why."""


class _Answer(NamedTuple):
    status: int
    location: str
    body: bytes


class Server:
    """Takes JSON posted below one address, and must answer in time. It may be asked by several threads at once.

    Connections are kept for the next call, and redirects are followed as by net/http.
    """

    def __init__(
        self,
        address: str,
        *,
        timeout: float,
        tls: ExtenderTLSConfig | None = None,
        trust_anybody: bool = False,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        """`trust_anybody` is about servers whose authority is not given; `environ` may name proxies.

        ValueError if the address, a proxy or the certificates cannot be used.
        """
        self._address = address.rstrip("/")
        self._timeout = timeout
        self._environ = dict(environ)
        self._home = route_to(urlsplit(address), environ)
        self._dialer = Dialer(tls, trust_anybody=trust_anybody)
        self._idle: deque[Connection] = deque()

    def post(self, verb: str, body: bytes, *, repeatable: bool = True) -> bytes:
        """The answer to one call, if it is 200 OK.

        `repeatable` calls are made again if the server gives up a kept connection just while it is used: it may have
        read them. Others are then in doubt, and fail.
        """
        url = f"{self._address}/{verb}"
        shown = without_password(url)
        deadline = time.monotonic() + self._timeout
        try:
            answer = self._followed(url, body, deadline, repeatable=repeatable)
        except TimeoutError:
            raise PostError(f"POST {shown}: no answer within {Duration(self._timeout)}") from None
        except http.client.HTTPException as problem:
            raise PostError(f"POST {shown}: the answer is not HTTP: {problem!r}") from None
        except (TunnelRefusedError, OSError, ValueError) as problem:
            raise PostError(f"POST {shown}: {getattr(problem, 'strerror', None) or problem}") from None
        if answer.status != HTTPStatus.OK:
            raise PostError(f"failed {verb} with extender at URL {shown}, code {answer.status}")
        return answer.body

    def _followed(self, url: str, body: bytes, deadline: float, *, repeatable: bool) -> _Answer:
        """The answer at the end of all redirects."""
        content: bytes | None = body
        for _ in range(MOST_REQUESTS):
            answer = self._answer(urlsplit(url), content, deadline, repeatable=repeatable)
            if not answer.location:
                return answer
            if answer.status in _TO_BE_FOUND_ELSEWHERE:
                content = None
            url = urljoin(url, answer.location)
        raise ValueError(f"stopped after {MOST_REQUESTS} redirects")

    def _answer(self, url: SplitResult, body: bytes | None, deadline: float, *, repeatable: bool) -> _Answer:
        route = route_to(url, self._environ)
        connection = self._kept(route)
        if connection is not None:
            try:
                return self._exchanged(connection, route, url, body, deadline)
            except HushedError:
                if not repeatable:
                    raise
        return self._exchanged(self._dialer.dial(route, deadline), route, url, body, deadline)

    def _exchanged(
        self, connection: Connection, route: Route, url: SplitResult, body: bytes | None, deadline: float
    ) -> _Answer:
        """The answer on this connection, which is kept if it may be used again."""
        may_be_kept = False
        try:
            method = "GET" if body is None else "POST"
            response = connection.exchange(method, _target(route, url), _headers(route, url, body), body, deadline)
            answer = _read(response)
            may_be_kept = not response.will_close and route == self._home
            return answer
        finally:
            if may_be_kept and len(self._idle) < MOST_IDLE:
                connection.idle_since = time.monotonic()
                self._idle.append(connection)
            else:
                connection.close()

    def _kept(self, route: Route) -> Connection | None:
        """The connection that was used last, if it still leads to the server."""
        while route == self._home and self._idle:
            try:
                connection = self._idle.pop()
            except IndexError:  # another thread was quicker
                break
            if time.monotonic() - connection.idle_since < IDLE_SECONDS and connection.is_usable:
                return connection
            connection.close()
        return None


def _target(route: Route, url: SplitResult) -> str:
    path = (url.path or "/") + (f"?{url.query}" if url.query else "")
    return path if route.forwarding is None else f"{url.scheme}://{host_of(url)}{path}"


def _headers(route: Route, url: SplitResult, body: bytes | None) -> dict[str, str]:
    headers = {"Host": host_of(url)}
    if body is not None:
        headers["Content-Type"] = "application/json"
    if url.username is not None:
        secret = f"{unquote(url.username)}:{unquote(url.password or '')}".encode()
        headers["Authorization"] = f"Basic {base64.b64encode(secret).decode()}"
    if route.forwarding is not None:
        name, _, value = proxy_authorization(route.forwarding).strip().partition(": ")
        headers.update({name: value} if name else {})
    return headers


def _read(response: http.client.HTTPResponse) -> _Answer:
    """All of the answer. Where it leads is only told of redirects."""
    body = response.read(LONGEST_ANSWER + 1)
    if len(body) > LONGEST_ANSWER:
        raise ValueError(f"the answer is longer than {LONGEST_ANSWER} bytes")
    if response.length:
        raise http.client.IncompleteRead(b"", response.length)
    leads_on = response.status in (*_TO_BE_FOUND_ELSEWHERE, *_TO_BE_POSTED_ELSEWHERE)
    return _Answer(response.status, (response.getheader("Location") or "") if leads_on else "", body)
