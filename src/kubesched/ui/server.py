"""The server of the page on localhost: whoever has the token of the printed address sees it."""

from __future__ import annotations

import asyncio
import contextlib

from aiohttp import web

from kubesched.ui.application import close_pages, page_application
from kubesched.ui.guard import TokenGuard, check_exposure, guarded
from kubesched.ui.model.observed import ObservedCluster
from kubesched.ui.travel import TimeTravel
from kubesched.ui.views import PageViews
from kubesched.ui.views_provider import LocalViews, keep_sampling


class PageServer:
    """Serves the page of one cluster. To be started and stopped on the event loop where the cluster lives."""

    def __init__(
        self, shown: ObservedCluster | TimeTravel, *, host: str = "127.0.0.1", port: int = 0, token: str | None = None
    ) -> None:
        """ExposedError if others could reach that address."""
        check_exposure(host)
        self._host = host
        self.port = port
        self._guard = TokenGuard(token)
        self._travel = shown if isinstance(shown, TimeTravel) else None
        self._present = PageViews(shown) if isinstance(shown, ObservedCluster) else None
        self._shown = LocalViews(self._views)
        self._app = page_application(self._shown, [guarded(self._guard)], self._travel)
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
        if self._present is not None and self._present.observed.live:
            self._sampling = asyncio.create_task(keep_sampling(self._shown.ask), name="queue history")

    async def stop(self) -> None:
        """Close all connections."""
        if self._sampling is not None:
            self._sampling.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._sampling
        close_pages(self._app)
        await self._runner.cleanup()
        service = self._views().service
        if service is not None:
            service.close()

    def _views(self) -> PageViews:
        """Of the moment that is shown: of a recording, others after a step back."""
        if self._travel is not None:
            return self._travel.views
        assert self._present is not None
        return self._present
