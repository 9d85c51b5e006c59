"""Proxies on the way to a server: which one the environment names, and the CONNECT request to it."""

from __future__ import annotations

import asyncio
import base64
import ipaddress
import re
import struct
from collections.abc import Mapping
from typing import NamedTuple, cast
from urllib.parse import unquote, urlsplit

from kubesched.kube.errors import ConnectionSettingsError, UnreachableError

_LONGEST_REPLY = 64 * 1024
_SOCKS_REFUSALS = {
    1: "general failure",
    2: "not allowed",
    3: "network unreachable",
    4: "host unreachable",
    5: "connection refused",
    6: "timed out",
    7: "command not supported",
    8: "address type not supported",
}


class Proxy(NamedTuple):
    """A proxy: http, https or socks5."""

    scheme: str
    host: str
    port: int
    user: str
    password: str


def parse_proxy(url: str, field: str) -> Proxy:
    """The proxy in a URL; `field` names where the URL is from. ConnectionSettingsError if it is no proxy's."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ConnectionSettingsError(f"{field}: invalid 'proxy-url' \"{url}\": {error}") from None
    ports = {"http": 80, "https": 443, "socks5": 1080, "socks5h": 1080}
    if parts.scheme not in ports or not parts.hostname:
        raise ConnectionSettingsError(
            f'{field}: expected a proxy such as "http://host:3128" (http, https or socks5), got "{url}"'
        )
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    return Proxy(parts.scheme, parts.hostname, port or ports[parts.scheme], user, password)


def proxy_of_environment(server: str, environ: Mapping[str, str]) -> str:
    """The URL of the proxy that HTTPS_PROXY, HTTP_PROXY and NO_PROXY name for this server, or nothing."""
    parts = urlsplit(server)
    host = parts.hostname or ""
    names = ("HTTPS_PROXY", "https_proxy") if parts.scheme == "https" else ("HTTP_PROXY", "http_proxy")
    url = next((environ[name] for name in names if environ.get(name)), "")
    port = parts.port or (443 if parts.scheme == "https" else 80)
    if not url or _needs_no_proxy(host, port, environ.get("NO_PROXY") or environ.get("no_proxy") or ""):
        return ""
    return url if "://" in url else f"http://{url}"


def _needs_no_proxy(host: str, port: int, no_proxy: str) -> bool:
    """As in Go: this machine needs none, nor do the names, with their subdomains, and networks of NO_PROXY."""
    address = address_of(host)
    if host == "localhost" or (address is not None and address.is_loopback):
        return True
    for entry in no_proxy.lower().replace(",", " ").split():
        if entry == "*":
            return True
        name, _, entry_port = entry.rpartition(":") if re.search(r"[^:]:[0-9]+$", entry) else (entry, "", "")
        if entry_port and int(entry_port) != port:
            continue
        if address is not None:
            try:
                if address in ipaddress.ip_network(name.strip("[]"), strict=False):
                    return True
            except ValueError:
                continue
        elif host == name or host.endswith("." + name.removeprefix("*").removeprefix(".")):
            return True
    return False


def address_of(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The address, if the host is one; None if it is a name."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


class TunnelHandshake(asyncio.Protocol):
    """The handshake with a proxy before a connection leads through it: HTTP CONNECT, or SOCKS5.

    `done` gets its end: the tunnel is open, and all further bytes are the server's; or UnreachableError.
    """

    def __init__(self, proxy: Proxy, host: str, port: int) -> None:
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._proxy = proxy
        self._host = host
        self._port = port
        self._received = b""
        self._speaks_socks = proxy.scheme.startswith("socks5")
        self._next = self._socks_greeting if self._speaks_socks else self._connect_reply
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's are none by inheritance
        if not self._speaks_socks:
            self._send(self._connect_request())
        else:
            self._send(b"\x05\x02\x00\x02" if self._proxy.user else b"\x05\x01\x00")

    def data_received(self, data: bytes) -> None:
        if self.done.done():
            return
        self._received += data
        try:
            if len(self._received) > _LONGEST_REPLY:
                raise self._refusal("its answer does not end")
            while not self.done.done() and self._next():
                pass
        except UnreachableError as refusal:
            self.done.set_exception(refusal)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(self._refusal("it closed the connection"))

    def _send(self, data: bytes) -> None:
        assert self._transport is not None
        self._transport.write(data)

    def _connect_request(self) -> bytes:
        host = f"[{self._host}]" if ":" in self._host else self._host
        target = f"{host}:{self._port}"
        authorization = proxy_authorization(self._proxy)
        return f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n{authorization}\r\n".encode("latin-1")

    def _connect_reply(self) -> bool:
        end = self._received.find(b"\r\n\r\n")
        if end < 0:
            return False
        line = self._received.split(b"\r\n", 1)[0].decode("latin-1")
        if not re.match(r"HTTP/1\.[01] 2[0-9][0-9]", line):
            raise self._refusal(f'it answered "{line}"')
        if len(self._received) > end + 4:
            raise self._refusal("it sent more than its answer")
        self.done.set_result(None)
        return False

    def _socks_greeting(self) -> bool:
        reply = self._take(2)
        if reply == b"\x05\x02" and self._proxy.user:
            user, password = self._proxy.user.encode(), self._proxy.password.encode()
            self._send(b"\x01" + bytes([len(user)]) + user + bytes([len(password)]) + password)
            self._next = self._socks_authentication_reply
        elif reply == b"\x05\x00":
            self._socks_connect()
        elif reply:
            raise self._refusal("it accepts none of the ways to authenticate that are offered")
        return bool(reply)

    def _socks_authentication_reply(self) -> bool:
        reply = self._take(2)
        if reply and reply[1] != 0:
            raise self._refusal("it refused user and password")
        if reply:
            self._socks_connect()
        return bool(reply)

    def _socks_connect(self) -> None:
        address = address_of(self._host)
        if address is None:
            name = self._host.encode("idna")
            target = b"\x03" + bytes([len(name)]) + name
        else:
            target = (b"\x01" if address.version == 4 else b"\x04") + address.packed
        self._send(b"\x05\x01\x00" + target + struct.pack("!H", self._port))
        self._next = self._socks_reply

    def _socks_reply(self) -> bool:
        if len(self._received) < 5:
            return False
        _, refusal, _, kind, first = self._received[:5]
        length = {1: 4, 3: 1 + first, 4: 16}.get(kind, 0)
        if refusal:
            raise self._refusal(f"it refused: {_SOCKS_REFUSALS.get(refusal, refusal)}")
        if self._take(4 + length + 2):
            self.done.set_result(None)
        return False

    def _take(self, count: int) -> bytes:
        if len(self._received) < count:
            return b""
        reply, self._received = self._received[:count], self._received[count:]
        return reply

    def _refusal(self, why: str) -> UnreachableError:
        return UnreachableError(f"proxy {self._proxy.host}:{self._proxy.port}: {why}")


def proxy_authorization(proxy: Proxy) -> str:
    """The header line with the user and password for an HTTP proxy; empty without a user."""
    if not proxy.user:
        return ""
    secret = base64.b64encode(f"{proxy.user}:{proxy.password}".encode()).decode()
    return f"Proxy-Authorization: Basic {secret}\r\n"
