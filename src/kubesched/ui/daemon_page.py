"""The page of `kubesched run --ui-port`: under /ui/, behind the guard of the secure port, with a token in a cookie."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import quote, unquote

import msgspec
from aiohttp import web
from multidict import CIMultiDict

from kubesched.daemon.page import ObservedReplica
from kubesched.http.access import guard, is_address, is_loopback
from kubesched.ui.endpoints import read_body
from kubesched.ui.server import (
    LARGEST_BODY,
    add_headers,
    close_pages,
    page_application,
    refuse_other_sites,
    static_files,
)
from kubesched.ui.sources import attached, detached
from kubesched.ui.views import SchedulerThreadViews

ROOT = "/ui"
"""Not `/`: RBAC knows paths without hosts, and all who are authenticated may get the API server's own `/api/*`."""
SIGN_IN = f"{ROOT}/sign-in"
_LONGEST_TOKEN = 3_900
"""Browsers forget cookies of more than 4096 bytes."""


class DaemonPage:
    """A `ServedPage` of the daemon."""

    def __init__(self, subject: ObservedReplica) -> None:
        self._shown = SchedulerThreadViews(
            lambda: attached(subject), lambda observed: detached(subject, observed), subject.call
        )
        self._app: web.Application = page_application(self._shown)
        self._app.router.add_post("/sign-in", sign_in)
        self.open_paths = ("/", ROOT, SIGN_IN, *(f"{ROOT}{path}" for path, _, _ in static_files()))

    def credentials(self, request: web.Request) -> Mapping[str, str]:
        """The headers, with the token of the cookie. For files it does not count: they show where to sign in anew."""
        token = unquote(request.cookies.get(_cookie_name(request), ""))
        if not token or "Authorization" in request.headers or request.path in self.open_paths:
            return request.headers
        return CIMultiDict(request.headers, Authorization=f"Bearer {token}")

    def application(self, middlewares: Iterable[Any], is_this_server: Callable[[str], bool]) -> web.Application:
        # A Host that is an IP address is no DNS name, so DNS rebinding cannot be behind it.
        from_here = refuse_other_sites(lambda name: is_loopback(name) or is_address(name) or is_this_server(name))
        root = web.Application(middlewares=[guard(from_here), *middlewares], client_max_size=LARGEST_BODY)
        root.on_response_prepare.append(add_headers)
        root.router.add_get("/", _to_page)
        root.router.add_get(ROOT, _to_page)
        root.add_subapp(ROOT, self._app)
        return root

    async def stop(self) -> None:
        close_pages(self._app)
        await self._shown.stop()


class _SignIn(msgspec.Struct):
    token: str


async def sign_in(request: web.Request) -> web.Response:
    """Puts a token into a cookie, which scripts cannot read; an empty one takes it out. The guard looks at it later."""
    token = (await read_body(request, _SignIn)).token.strip()
    kept = quote(token, safe="")
    if len(kept) > _LONGEST_TOKEN:
        raise web.HTTPBadRequest(text="the token is too long for a cookie; one of a service account is shorter")
    response = web.Response(status=204)
    if kept:
        response.set_cookie(_cookie_name(request), kept, httponly=True, secure=True, samesite="Strict", path="/")
    else:
        response.del_cookie(_cookie_name(request), httponly=True, secure=True, samesite="Strict", path="/")
    return response


def _cookie_name(request: web.Request) -> str:
    """Cookies are shared by all ports of a host, and several forwarded ports may lead to several schedulers."""
    return f"__Host-kubesched-ui-{request.host.rpartition(':')[2] if ':' in request.host else 443}"


async def _to_page(request: web.Request) -> web.Response:
    return web.Response(status=303, headers={"Location": f"{ROOT}/"})
