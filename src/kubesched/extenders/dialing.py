"""Connections to extenders: directly or through a proxy, in the clear or with TLS, each with a deadline."""

from __future__ import annotations

import contextlib
import functools
import http.client
import io
import select
import socket
import ssl
import threading
import time
import weakref
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any, NamedTuple
from urllib.parse import SplitResult, urlsplit

from kubesched.config.configuration import ExtenderTLSConfig
from kubesched.extenders.tls import tls_context
from kubesched.proxies import Proxy, TunnelTalk, parsed_proxy, proxy_of_environment

_PORTS = {"http": 80, "https": 443}


class Route(NamedTuple):
    """The way to a server."""

    scheme: str
    host: str
    port: int
    proxy: Proxy | None

    @property
    def is_tls(self) -> bool:
        return self.scheme == "https"

    @property
    def forwarding(self) -> Proxy | None:
        """The proxy that is handed requests, with the whole address in them. Others just open a tunnel."""
        return self.proxy if self.proxy is not None and self.proxy.scheme in _PORTS and not self.is_tls else None


def route_to(url: SplitResult, environ: Mapping[str, str]) -> Route:
    """ValueError if there is none."""
    if url.scheme not in _PORTS or not url.hostname:
        raise ValueError(
            f'expected an address such as "http://host:port/prefix", got "{without_password(url.geturl())}"'
        )
    proxy_url = proxy_of_environment(url.geturl(), environ)
    proxy = parsed_proxy(proxy_url, f"{url.scheme.upper()}_PROXY") if proxy_url else None
    if proxy is not None and proxy.scheme == "https" and url.scheme == "https":
        raise ValueError(
            f"HTTPS_PROXY: {proxy.host}: a proxy that is reached by TLS cannot lead to an extender that is as well"
        )
    return Route(url.scheme, url.hostname, url.port or _PORTS[url.scheme], proxy)


def without_password(url: str) -> str:
    """The address as it may be shown to anybody: messages end up in conditions and events of pods."""
    parts = urlsplit(url)
    if not parts.password:
        return url
    return parts._replace(netloc=f"{parts.username}:xxxxx@{host_of(parts)}").geturl()


def host_of(url: SplitResult) -> str:
    """Host and port as they are written in the address."""
    return url.netloc.rpartition("@")[2]


class Connection:
    """Carries one exchange after another."""

    def __init__(self, connected: socket.socket) -> None:
        self.idle_since = 0.0
        self._socket = connected
        self.close = weakref.finalize(self, connected.close)
        """Hang up, which happens by itself when nobody holds the connection any more."""

    def exchange(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None, deadline: float
    ) -> http.client.HTTPResponse:
        """The answer, of which the body is still to be read. HushedError if the other side hung up without a word."""
        deadlined = _Deadlined(self._socket, deadline)
        talk = http.client.HTTPConnection("")
        talk.sock = deadlined
        try:
            with contextlib.suppress(ConnectionError):  # whoever will not read all of a question may still answer it
                talk.request(method, target, body, dict(headers))
            return talk.getresponse()
        except (ConnectionError, ssl.SSLEOFError, ssl.SSLZeroReturnError) as problem:
            if deadlined.has_heard:
                raise
            raise HushedError(str(problem)) from None

    @property
    def is_usable(self) -> bool:
        """Not if the other side hung up meanwhile, or talks though nobody asked it."""
        waiting = select.poll()
        waiting.register(self._socket, select.POLLIN)
        pending = self._socket.pending() if isinstance(self._socket, ssl.SSLSocket) else 0
        return not pending and not waiting.poll(0)


class HushedError(ConnectionError):
    """The other side hung up without a word in answer."""


class Dialer:
    """Makes connections for one extender, with its certificates."""

    def __init__(self, tls: ExtenderTLSConfig | None, *, trust_anybody: bool) -> None:
        """`trust_anybody` is about servers whose authority is not given. ValueError if certificates cannot be used."""
        self._tls = tls or ExtenderTLSConfig()
        self._trust_anybody = trust_anybody
        if tls is not None or trust_anybody:
            _ = self._context  # what is wrong with it should be known at once

    @functools.cached_property
    def _context(self) -> ssl.SSLContext:
        return tls_context(self._tls, trust_anybody=self._trust_anybody)

    def dial(self, route: Route, deadline: float) -> Connection:
        """OSError or TunnelRefusedError if there is nobody."""
        proxy = route.proxy
        connected = _connected(*((route.host, route.port) if proxy is None else (proxy.host, proxy.port)), deadline)
        try:
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if proxy is not None and proxy.scheme == "https":
                connected = _secured(connected, ssl.create_default_context(), proxy.host, deadline)
            if proxy is not None and route.forwarding is None:
                _tunnel(connected, TunnelTalk(proxy, route.host, route.port), deadline)
            if route.is_tls:
                connected = _secured(connected, self._context, self._tls.server_name or route.host, deadline)
        except BaseException:
            connected.close()
            raise
        return Connection(connected)


def _connected(host: str, port: int, deadline: float) -> socket.socket:
    """To the first of the host's addresses where somebody listens."""
    found = _addresses(host, port, deadline)
    for number, (family, kind, protocol, _, address) in enumerate(found, start=1):
        candidate = socket.socket(family, kind, protocol)
        try:
            # Of the time that is left, an address gets its share: a dead one must not use up that of the next.
            candidate.settimeout(left_until(deadline) / (len(found) - number + 1))
            candidate.connect(address)
            return candidate
        except BaseException as problem:
            candidate.close()
            if not isinstance(problem, OSError) or number == len(found):
                raise
    raise OSError(f"{host} has no address")


def _addresses(host: str, port: int, deadline: float) -> list[Any]:
    """Looking up a name knows no deadline: should it take too long, a thread is left behind that waits for its end."""
    found: Future[list[Any]] = Future()

    def look_up() -> None:
        try:
            found.set_result(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except Exception as problem:
            found.set_exception(problem)

    threading.Thread(target=look_up, name="extender-lookup", daemon=True).start()
    return found.result(left_until(deadline))


def _secured(plain: socket.socket, context: ssl.SSLContext, name: str, deadline: float) -> ssl.SSLSocket:
    plain.settimeout(left_until(deadline))
    return context.wrap_socket(plain, server_hostname=name)


def _tunnel(connected: socket.socket, talk: TunnelTalk, deadline: float) -> None:
    said = talk.opening()
    while not talk.is_done:
        connected.settimeout(left_until(deadline))
        connected.sendall(said)
        connected.settimeout(left_until(deadline))
        said = talk.heard(connected.recv(4096))


class _Deadlined:
    """A socket whose operations together, rather than each, must end in time: a server may drip bytes for ever."""

    def __init__(self, connected: socket.socket, deadline: float) -> None:
        self.has_heard = False
        """Anything, that is."""
        self._connected = connected
        self._deadline = deadline

    def sendall(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            self._connected.settimeout(left_until(self._deadline))
            rest = rest[self._connected.send(rest) :]

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(_DeadlinedReader(self))

    def recv_into(self, buffer: Any) -> int:
        self._connected.settimeout(left_until(self._deadline))
        count = self._connected.recv_into(buffer)
        self.has_heard = self.has_heard or count > 0
        return count

    def close(self) -> None:
        """Not yet: the answer is still to be read. Whoever connected hangs up."""


class _DeadlinedReader(io.RawIOBase):
    def __init__(self, deadlined: _Deadlined) -> None:
        self._deadlined = deadlined

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self._deadlined.recv_into(buffer)


def left_until(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
