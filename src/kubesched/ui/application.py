"""The page as an aiohttp application: its files, the answers to its questions, and the stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib.resources import files
from importlib.resources.abc import Traversable

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from kubesched.ask.output import API_VERSION
from kubesched.framework.errors import PluginError
from kubesched.http.access import Check, refuse_foreign
from kubesched.http.errors import errors_as_documents
from kubesched.ui.endpoints import SHOWN, TRAVEL, routes
from kubesched.ui.stream import PAGES
from kubesched.ui.travel import TimeTravel
from kubesched.ui.views_provider import ViewsProvider

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


def page_application(
    shown: ViewsProvider, middlewares: Sequence[Middleware] = (), travel: TimeTravel | None = None
) -> web.Application:
    """All that the page is made of. Its addresses are relative, so it can be under any path that ends with a slash."""
    app = web.Application(
        middlewares=[*middlewares, errors_as_documents(API_VERSION, {PluginError: 500})], client_max_size=LARGEST_BODY
    )
    app[SHOWN] = shown
    if travel is not None:
        app[TRAVEL] = travel
    app[PAGES] = set()
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
    for task in [*app[PAGES]]:
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
