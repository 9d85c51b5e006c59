"""The page over HTTP: the application that answers, and a server of its own for it."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import secrets
from collections.abc import Callable, Iterator, Sequence
from importlib.resources import files
from importlib.resources.abc import Traversable

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from kubesched.ask.output import API_VERSION
from kubesched.ask.service import BusyError, QuestionTimeoutError
from kubesched.framework.errors import PluginError
from kubesched.http.access import Check, check_exposure, guard, is_loopback, refuse_foreign
from kubesched.http.errors import errors_as_documents
from kubesched.http.listen import HttpServer
from kubesched.ui.endpoints import COUNTING, SHOWN, TRAVEL, routes
from kubesched.ui.model.observed import ObservedCluster
from kubesched.ui.stream import PAGES
from kubesched.ui.travel import TimeTravel
from kubesched.ui.views import LocalViews, PageViews, ViewsProvider, keep_sampling

LARGEST_BODY = 256 << 10
_TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".html": "text/html"}

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
_CODES: dict[type[Exception], int] = {BusyError: 429, QuestionTimeoutError: 504, PluginError: 500}
_NO_TOKEN = (
    "This page needs the token that is part of its address.\n"
    "Open the whole address that kubesched printed, up to its end: http://127.0.0.1:PORT/?token=...\n"
)


def page_application(
    shown: ViewsProvider, middlewares: Sequence[Middleware] = (), travel: TimeTravel | None = None
) -> web.Application:
    """All that the page is made of. Its addresses are relative, so it can be under any path that ends with a slash."""
    app = web.Application(
        middlewares=[*middlewares, errors_as_documents(API_VERSION, _CODES)], client_max_size=LARGEST_BODY
    )
    app[SHOWN] = shown
    if travel is not None:
        app[TRAVEL] = travel
    app[PAGES], app[COUNTING] = {}, set()
    app.on_response_prepare.append(add_headers)
    app.add_routes(routes())
    for path, file, kind in static_files():
        app.router.add_get(path, _file(file, kind))
    return app


async def add_headers(request: web.Request, response: web.StreamResponse) -> None:
    """For every answer, errors and refusals among them."""
    response.headers.update(HEADERS)
    response.headers.pop("Server", None)


def refuse_other_sites(is_this_server: Callable[[str], bool]) -> Check:
    """Check that a request comes from the page itself. A link to the page may come from anywhere."""
    refuse = refuse_foreign(is_this_server)

    async def check(request: web.Request) -> None:
        await refuse(request)
        is_link = request.path in ("/", "/ui", "/ui/")
        if request.headers.get("Sec-Fetch-Site", "none") not in ("same-origin", "none") and not is_link:
            raise web.HTTPForbidden(text="requests of other web pages are not answered\n")

    return check


def close_pages(app: web.Application) -> None:
    """End the streams: pages that are open try to come back, and say so."""
    for task in [*app[PAGES], *app[COUNTING]]:
        task.cancel()


def static_files() -> list[tuple[str, Traversable, str]]:
    """The path of each file, and its type: what is not in the package is not served, whatever the path says."""
    return list(_in_folder(files(__package__).joinpath("static"), "/"))


def _in_folder(folder: Traversable, prefix: str) -> Iterator[tuple[str, Traversable, str]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _in_folder(entry, f"{prefix}{entry.name}/")
        elif (kind := _TYPES.get(f".{entry.name.rpartition('.')[2]}")) is not None:
            yield (prefix if entry.name == "index.html" else f"{prefix}{entry.name}"), entry, kind


def _file(entry: Traversable, kind: str) -> Handler:
    async def handler(request: web.Request) -> web.Response:
        return web.Response(body=entry.read_bytes(), content_type=kind, charset="utf-8")

    return handler


class PageToken:
    """A token, in the address at first and in a cookie afterwards, as Jupyter has it."""

    def __init__(self, value: str | None = None) -> None:
        self.value = value or secrets.token_urlsafe(24)

    async def check(self, request: web.Request) -> web.Response | None:
        """Refuse a request without the token, and redirect one that has it in the address of the page."""
        if not self._admits(request):
            raise web.HTTPForbidden(text=_NO_TOKEN)
        if "token" in request.query and request.method == "GET" and request.path == "/":
            return self._remember(request)
        return None

    def _admits(self, request: web.Request) -> bool:
        offered = (
            request.cookies.get(_cookie_name(request), ""),
            request.headers.get("Authorization", "").removeprefix("Bearer "),
            request.query.get("token", ""),
        )
        return any(hmac.compare_digest(token.encode(), self.value.encode()) for token in offered)

    def _remember(self, request: web.Request) -> web.Response:
        """Move the token from the address into a cookie, so that it is in no history and no link."""
        response = web.Response(status=303, headers={"Location": "/"})
        response.set_cookie(_cookie_name(request), self.value, httponly=True, samesite="Strict", path="/")
        return response


def _cookie_name(request: web.Request) -> str:
    """Cookies are shared by all ports of a host, and several pages may be open."""
    port = request.transport.get_extra_info("sockname")[1] if request.transport is not None else 0
    return f"kubesched-ui-{port}"


class PageServer:
    """Serves the page of one cluster. To be started and stopped on the event loop where the cluster lives."""

    def __init__(
        self, shown: ObservedCluster | TimeTravel, *, host: str = "127.0.0.1", port: int = 0, token: str | None = None
    ) -> None:
        """ExposedError if others could reach that address."""
        check_exposure(host, has_token=True, has_tls=False)
        self._token = PageToken(token)
        travel = shown if isinstance(shown, TimeTravel) else None
        self._views = _views_of(shown)
        self._shown = LocalViews(self._views)
        self._is_live = travel is None and self._views().observed.live
        self._app = page_application(self._shown, [guard(refuse_other_sites(is_loopback), self._token.check)], travel)
        self._listening = HttpServer(self._app, host, port)
        self._sampling: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        """The address to open, with the token."""
        return f"{self._listening.url}/?token={self._token.value}"

    @property
    def port(self) -> int:
        return self._listening.port

    async def start(self) -> None:
        """Listen. ListenError if the port is taken."""
        await self._listening.start()
        if self._is_live:
            self._sampling = asyncio.create_task(keep_sampling(self._shown.ask), name="queue history")

    async def stop(self) -> None:
        """Close all connections."""
        if self._sampling is not None:
            self._sampling.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._sampling
        close_pages(self._app)
        await self._listening.stop()
        service = self._views().service
        if service is not None:
            service.close()


def _views_of(shown: ObservedCluster | TimeTravel) -> Callable[[], PageViews]:
    """Of the moment that is shown: of a recording, others after a step back."""
    if isinstance(shown, TimeTravel):
        return lambda: shown.views
    views = PageViews(shown)
    return lambda: views
