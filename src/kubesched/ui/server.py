"""The server of the page on localhost: whoever has the token of the printed address sees it."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import secrets

from aiohttp import web

from kubesched.http.access import check_exposure, guard, is_loopback
from kubesched.http.listen import HttpServer
from kubesched.ui.application import close_pages, page_application, refuse_other_sites
from kubesched.ui.model.observed import ObservedCluster
from kubesched.ui.travel import TimeTravel
from kubesched.ui.views import PageViews
from kubesched.ui.views_provider import LocalViews, keep_sampling

_NO_TOKEN = (
    "This page needs the token that is part of its address.\n"
    "Open the whole address that kubesched printed, up to its end: http://127.0.0.1:PORT/?token=...\n"
)


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
        self._travel = shown if isinstance(shown, TimeTravel) else None
        self._present = PageViews(shown) if isinstance(shown, ObservedCluster) else None
        self._shown = LocalViews(self._views)
        self._app = page_application(
            self._shown, [guard(refuse_other_sites(is_loopback), self._token.check)], self._travel
        )
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
        if self._present is not None and self._present.observed.live:
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

    def _views(self) -> PageViews:
        """Of the moment that is shown: of a recording, others after a step back."""
        if self._travel is not None:
            return self._travel.views
        assert self._present is not None
        return self._present
