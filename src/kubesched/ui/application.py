"""The page as an aiohttp application: its files, the answers to its questions, and the stream."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from importlib.resources import files
from importlib.resources.abc import Traversable

from aiohttp import web
from aiohttp.typedefs import Middleware

from kubesched.ui.endpoints import SHOWN, TRAVEL, errors_as_documents, routes
from kubesched.ui.guard import add_headers
from kubesched.ui.stream import PAGES
from kubesched.ui.travel import TimeTravel
from kubesched.ui.views_provider import ViewsProvider

LARGEST_BODY = 256 << 10
_TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".html": "text/html"}

Serve = Callable[[web.Request], Awaitable[web.Response]]


def page_application(
    shown: ViewsProvider, middlewares: Sequence[Middleware] = (), travel: TimeTravel | None = None
) -> web.Application:
    """All that the page is made of. Its addresses are relative, so it can be under any path that ends with a slash."""
    app = web.Application(middlewares=[*middlewares, errors_as_documents], client_max_size=LARGEST_BODY)
    app[SHOWN] = shown
    if travel is not None:
        app[TRAVEL] = travel
    app[PAGES] = set()
    app.on_response_prepare.append(add_headers)
    app.add_routes(routes())
    for path, file, kind in static_files():
        app.router.add_get(path, _file(file, kind))
    return app


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


def _file(entry: Traversable, kind: str) -> Serve:
    async def handler(request: web.Request) -> web.Response:
        return web.Response(body=entry.read_bytes(), content_type=kind, charset="utf-8")

    return handler
