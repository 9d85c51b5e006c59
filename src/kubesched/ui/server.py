"""The server of the page: static files, answers and the stream, behind the guard, on localhost."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from importlib.resources import files
from importlib.resources.abc import Traversable

from aiohttp import web

from kubesched.ui.endpoints import VIEWS, errors_as_documents, routes
from kubesched.ui.guard import TokenGuard, add_headers, check_exposure, guarded
from kubesched.ui.model.observed import Observed
from kubesched.ui.stream import PAGES
from kubesched.ui.views import Views

_LARGEST_BODY = 256 << 10
_SAMPLE_SECONDS = 1.0
_TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".html": "text/html"}


Serve = Callable[[web.Request], Awaitable[web.Response]]


class PageServer:
    """Serves the page of one cluster. To be started and stopped on the event loop where the cluster lives."""

    def __init__(self, observed: Observed, *, host: str = "127.0.0.1", port: int = 0, token: str | None = None) -> None:
        """ExposedError if others could reach that address."""
        check_exposure(host)
        self._host = host
        self.port = port
        self._guard = TokenGuard(token)
        self._views = Views(observed)
        self._app = self._application()
        self._runner = web.AppRunner(self._app, access_log=None, shutdown_timeout=1.0)
        self._sampling: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        """The address to open, with the token."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self.port}/?token={self._guard.token}"

    async def start(self) -> None:
        """Listen. OSError if the port is taken."""
        await self._runner.setup()
        site = web.TCPSite(self._runner, self._host, self.port)
        try:
            await site.start()
        except OSError:
            await self._runner.cleanup()
            raise
        self.port = self._runner.addresses[0][1]
        if self._views.observed.queue is not None:
            self._sampling = asyncio.create_task(self._sample(), name="queue history")

    async def stop(self) -> None:
        """Close all connections: pages that are open try to come back, and say so."""
        if self._sampling is not None:
            self._sampling.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._sampling
        pages = self._app[PAGES]
        for task in list(pages):
            task.cancel()
        await self._runner.cleanup()

    def _application(self) -> web.Application:
        app = web.Application(middlewares=[guarded(self._guard), errors_as_documents], client_max_size=_LARGEST_BODY)
        app[VIEWS] = self._views
        app[PAGES] = set()
        app.on_response_prepare.append(add_headers)
        app.add_routes(routes())
        for path, handler in _static(files(__package__).joinpath("static")):
            app.router.add_get(path, handler)
        return app

    async def _sample(self) -> None:
        while True:
            self._views.queue.sample()
            await asyncio.sleep(_SAMPLE_SECONDS)


def _static(folder: Traversable, prefix: str = "/") -> list[tuple[str, Serve]]:
    """A path for each file of the page: what is not in the package is not served, whatever the path says."""
    found = []
    for entry in folder.iterdir():
        if entry.is_dir():
            found += _static(entry, f"{prefix}{entry.name}/")
        elif (kind := _TYPES.get(f".{entry.name.rpartition('.')[2]}")) is not None:
            path = prefix if entry.name == "index.html" else f"{prefix}{entry.name}"
            found.append((path, _file(entry, kind)))
    return found


def _file(entry: Traversable, kind: str) -> Serve:
    async def handler(request: web.Request) -> web.Response:
        return web.Response(body=entry.read_bytes(), content_type=kind, charset="utf-8")

    return handler
