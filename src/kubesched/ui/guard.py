"""Who may see the page: whoever has the token of the printed address, from a page of this server and no other."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Awaitable, Callable

from aiohttp import web
from aiohttp.typedefs import Middleware

from kubesched.api.api_error import ApiError
from kubesched.api.errors import UserError
from kubesched.sandbox.http.security import check_origin, host_name, is_loopback

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Of every answer. All that the page shows comes from a cluster, so nothing in it may ever become script or style."""

_NO_TOKEN = (
    "This page needs the token that is part of its address.\n"
    "Open the whole address that kubesched printed, up to its end: http://127.0.0.1:PORT/?token=...\n"
)


class ExposedError(UserError):
    """The page would be open to others without protection."""


class TokenGuard:
    """A token, in the address at first and in a cookie afterwards, as Jupyter has it."""

    def __init__(self, token: str | None = None) -> None:
        self.token = token or secrets.token_urlsafe(24)

    def admits(self, request: web.Request) -> bool:
        """Whether the request has the token, in any of the three places where it may be."""
        offered = (
            request.cookies.get(cookie_name(request), ""),
            request.headers.get("Authorization", "").removeprefix("Bearer "),
            request.query.get("token", ""),
        )
        return any(hmac.compare_digest(each.encode(), self.token.encode()) for each in offered)

    def remember(self, request: web.Request) -> web.Response:
        """The token goes from the address into a cookie, so that it is in no history and no link."""
        response = web.Response(status=303, headers={"Location": "/"})
        response.set_cookie(cookie_name(request), self.token, httponly=True, samesite="Strict", path="/")
        return response


def cookie_name(request: web.Request) -> str:
    """Cookies are shared by all ports of a host, and several pages may be open."""
    port = request.transport.get_extra_info("sockname")[1] if request.transport is not None else 0
    return f"kubesched-ui-{port}"


def guarded(guard: TokenGuard) -> Middleware:
    """The middleware through which every request goes."""

    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        return await _answer(guard, request, handler)

    return middleware


async def _answer(guard: TokenGuard, request: web.Request, handler: Handler) -> web.StreamResponse:
    mistake = why_foreign(request)
    if mistake:
        return _refused(mistake)
    if not guard.admits(request):
        return _refused(_NO_TOKEN)
    if "token" in request.query and request.method == "GET" and request.path == "/":
        return guard.remember(request)
    return await handler(request)


def why_foreign(request: web.Request, is_this_server: Callable[[str], bool] = is_loopback) -> str:
    """What a page of another site, or a name that was pointed at this address, gives away; empty if nothing does.

    `is_this_server` knows the names and addresses that requests may be addressed to.
    """
    asked = request.headers.get("Host", "")
    if not is_this_server(host_name(asked)):
        return f"the Host header names {asked!r}, which is not this server\n"
    try:
        check_origin(request.headers, "", has_token=True)
    except ApiError as error:
        return f"{error.message}\n"
    # A link to the page may come from anywhere; what the page asks for comes from the page.
    is_link = request.path in ("/", "/ui", "/ui/")
    if request.headers.get("Sec-Fetch-Site", "none") not in ("same-origin", "none") and not is_link:
        return "requests of other web pages are not answered\n"
    return ""


def check_exposure(host: str) -> None:
    """Refuse to listen where others could reach the page: it has a token, but no TLS."""
    if not is_loopback(host):
        raise ExposedError(
            f"will not show the page on {host or 'all addresses'}: others could read along; use 127.0.0.1, and "
            "a tunnel (ssh -L) from elsewhere"
        )


async def add_headers(request: web.Request, response: web.StreamResponse) -> None:
    """For every answer, errors and refusals among them."""
    response.headers.update(HEADERS)
    response.headers.pop("Server", None)


def _refused(text: str) -> web.Response:
    return web.Response(status=403, text=text)
