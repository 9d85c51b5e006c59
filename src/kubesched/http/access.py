"""Access: checks of requests, tokens, and protection from web pages of other sites."""

from __future__ import annotations

import contextlib
import hmac
import ipaddress
import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from kubesched.api.errors import UserError
from kubesched.kube.tls import stamp

Check = Callable[[web.Request], Awaitable[web.StreamResponse | None]]
"""Looks at a request. Its response ends the request; None lets it pass to the next check, or to its handler."""

REFUSALS, PERIOD = 20, 10.0
"""After `REFUSALS` refusals within `PERIOD` seconds an address gets 429 until that time is over."""
_MOST_ADDRESSES = 4096


class ExposedError(UserError):
    """The server would be open to others without protection."""


class TokenFileError(UserError):
    """There is no token in a token file."""


def guard(*checks: Check) -> Middleware:
    """The middleware through which every request goes: a request is handled if no check refuses it."""

    @web.middleware
    async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
        for check in checks:
            refusal = await check(request)
            if refusal is not None:
                return refusal
        return await handler(request)

    return guarded


# -- addresses and web pages ------------------------------------------------------------------------------------------


def check_exposure(host: str, *, has_token: bool, has_tls: bool) -> None:
    """Refuse to listen beyond loopback without TLS and a token."""
    if is_loopback(host) or (has_token and has_tls):
        return
    missing = " and ".join(word for word, has in (("TLS", has_tls), ("a bearer token", has_token)) if not has)
    raise ExposedError(
        f"will not listen on {host or 'all addresses'}: others could reach it, and there is no protection ({missing} "
        "missing); listen on 127.0.0.1, or give both"
    )


def why_foreign(headers: Mapping[str, str], is_this_server: Callable[[str], bool]) -> str:
    """Why a request is taken to come from a web page of another site; empty if it is not.

    A page of another site can send some requests across: its Origin says so. A name that its owner points at 127.0.0.1
    makes this server its own site: then the Host header has that name. `is_this_server` knows the names and addresses
    that requests may be addressed to.
    """
    host = headers.get("Host", "")
    if not is_this_server(host_name(host)):
        return f"the Host header names {host!r}, which is not this server"
    origin = headers.get("Origin")
    if origin is not None and urlsplit(origin).netloc != host:
        return f"requests of web pages at {origin!r} are not answered"
    return ""


def any_name(name: str) -> bool:
    """Accept every Host: where a token is required, DNS rebinding gains nothing."""
    return True


def refuse_foreign(is_this_server: Callable[[str], bool]) -> Check:
    """Check that no page of another site caused the request."""

    async def check(request: web.Request) -> None:
        if reason := why_foreign(request.headers, is_this_server):
            raise web.HTTPForbidden(text=f"{reason}\n")

    return check


def host_name(host: str) -> str:
    """The name or address in a Host header, without the brackets of an IPv6 address."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()


def is_loopback(host: str) -> bool:
    return host == "localhost" or (is_address(host) and ipaddress.ip_address(host).is_loopback)


def is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


# -- tokens -----------------------------------------------------------------------------------------------------------


class BearerToken:
    """A bearer token: made for this run, or from a file, which is read again when it changes.

    While the file is being replaced it may be empty or gone: the last token counts until there is a new one.
    """

    def __init__(self, file: str = "") -> None:
        self._file = file
        self._stamp: object = None
        self.value = self._read() if file else secrets.token_urlsafe(24)

    def admits(self, header: str) -> bool:
        """Whether an Authorization header has it."""
        scheme, _, offered = header.partition(" ")
        if self._file and stamp(self._file) != self._stamp:
            with contextlib.suppress(TokenFileError):
                self.value = self._read()
        is_the_token = hmac.compare_digest(offered.strip().encode(), self.value.encode())
        return scheme.lower() == "bearer" and is_the_token

    def _read(self) -> str:
        seen = stamp(self._file)
        try:
            value = Path(self._file).read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            raise TokenFileError(f"--token-file: {self._file}: {error}") from None
        if not value:
            raise TokenFileError(f"--token-file: {self._file}: there is no token in it")
        self._stamp = seen
        return value


def require_credentials(token: BearerToken | None, *, open_paths: Collection[str]) -> Check:
    """Check that a request has the token, or a client certificate that the handshake accepted."""

    async def check(request: web.Request) -> None:
        if request.path in open_paths:
            return
        if token is not None and token.admits(request.headers.get("Authorization", "")):
            return
        connection = request.get_extra_info("ssl_object")
        if connection is None or not connection.getpeercert():
            raise web.HTTPUnauthorized(
                text="this needs the bearer token, or a client certificate where one is accepted",
                headers={"WWW-Authenticate": "Bearer"},
            )

    return check


# -- refusals ---------------------------------------------------------------------------------------------------------


class RefusalLimiter:
    """Counts refusals by address: each cost the API server a review or two, which a client must not cause at will.

    Requests that are let in are never counted, so that scrapers and administrators are not limited.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._refusals: OrderedDict[str, tuple[float, int]] = OrderedDict()
        """By address, the beginning of its period and the refusals since; the oldest first."""

    def is_limited(self, address: str) -> bool:
        """Whether the address had too many refusals within its period."""
        since, count = self._refusals.get(address, (0.0, 0))
        return count >= REFUSALS and self._clock() - since < PERIOD

    def count(self, address: str) -> None:
        """Count a refusal of this address."""
        now = self._clock()
        since, count = self._refusals.pop(address, (now, 0))
        self._refusals[address] = (since, count + 1) if now - since < PERIOD else (now, 1)
        while len(self._refusals) > _MOST_ADDRESSES:
            self._refusals.popitem(last=False)
