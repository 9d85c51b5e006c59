"""What happens, as server-sent events: rows of the map that changed, new decisions, the queue. Only while one looks."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import msgspec
from aiohttp import web

from kubesched.ui.model.node_map import Version
from kubesched.ui.views import PageViews, ViewsProvider

TICK = 0.2
"""Seconds between two looks at the cluster: a decision is seen so much later, or later where `Allowance` pauses."""
_STILL_THERE = 15.0
"""Seconds after which a page that hears nothing is told that nothing happened."""
_DECISIONS_AT_FIRST, _DECISIONS_AT_ONCE = 60, 20
"""What fills the list, and what it grows by at a look: nobody reads a hundred lines a second."""
_MOST_PAGES, _MOST_PER_ADDRESS = 32, 16


class Follower:
    """One open page, and what it knows already."""

    def __init__(self, views: PageViews, version: Version | None, decision: int, group_by: str) -> None:
        """`version` is that of the map which the page has, `decision` the last that it knows."""
        self._views = views
        self._version = version or views.map.version
        self._decision = decision
        self._most_decisions = _DECISIONS_AT_FIRST
        self._group_by = group_by
        self._counts: object = None
        self._said: str | None = None
        self._now = 0.0

    def news(self, views: PageViews) -> dict[str, Any]:
        """What is new since the last time; nothing if nothing is. With time travel, views are others after a step back.

        It is records with names of one word, which are JSON as they are: this is asked several times a second.
        """
        found: dict[str, Any] = {}
        if views is not self._views:
            self._views = views
            self._version, self._decision, self._counts = views.map.version, 0, None
            self._most_decisions = _DECISIONS_AT_FIRST
            found |= {"again": True, "map": {"reload": True}}
        observed = views.observed
        if views.map.version != self._version:
            changes = views.map.since(self._version, self._group_by)
            found["map"] = changes if changes is not None else {"reload": True}
            self._version = views.map.version
        log = observed.log
        if log is not None and log.number != self._decision:
            found["decisions"] = log.since(self._decision, self._most_decisions)
            found["skipped"] = max(log.number - self._decision - self._most_decisions, 0)
            self._decision, self._most_decisions = log.number, _DECISIONS_AT_ONCE
        counts = views.queue.counts() if observed.live or self._counts is None else self._counts
        if counts != self._counts:
            found["queue"] = counts
            self._counts = counts
        said = observed.saying()
        if said != self._said:
            found["saying"] = said
            self._said = said
        now = round(observed.clock(), 3)
        if found or (observed.kind == "recording" and now != self._now):
            found["now"] = self._now = now
        return found


async def stream(request: web.Request, shown: ViewsProvider) -> web.StreamResponse:
    """Until the page is closed. Its `version` is that of the map it has, `decision` the last that it knows."""
    query, pages = request.query, request.app[PAGES]
    addresses = [page.remote for page in pages.values() if _is_open(page)]
    of_address = addresses.count(request.remote)
    if len(addresses) >= _MOST_PAGES or of_address >= _MOST_PER_ADDRESS:
        raise web.HTTPTooManyRequests(text=f"{len(addresses)} pages are open already, {of_address} of them from there")
    text = query.get("decision", "0")
    # Of what happened before the page was opened, only the last decisions: the rest would be news of no use.
    decision = int(text) if text.isascii() and text.isdigit() and len(text) < 16 else 0
    version, group = _version(query.get("version", "")), query.get("group", "")
    task = asyncio.current_task()
    assert task is not None
    pages[task] = request
    try:
        with shown.looking():
            follower = await shown.ask(lambda views: Follower(views, version, decision, group))
            response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
            await response.prepare(request)
            with contextlib.suppress(ConnectionResetError, asyncio.CancelledError):
                await _send_news(request, response, follower, shown)
            return response
    finally:
        del pages[task]


async def _send_news(
    request: web.Request, response: web.StreamResponse, follower: Follower, shown: ViewsProvider
) -> None:
    now = asyncio.get_running_loop().time
    quiet_since = now()
    while _is_open(request):
        news = await shown.ask(follower.news)
        if news:
            await response.write(b"data: " + msgspec.json.encode(news) + b"\n\n")
            quiet_since = now()
        elif now() - quiet_since > _STILL_THERE:
            await response.write(b": nothing happened\n\n")
            quiet_since = now()
        await asyncio.sleep(TICK)


def _is_open(page: web.Request) -> bool:
    """Whether the browser still listens. A page that was closed or loaded anew takes nobody's place."""
    return page.transport is not None and not page.transport.is_closing()


def _version(text: str) -> Version | None:
    parts = text.split(",")
    if len(parts) != 2 or not all(part.isascii() and part.isdigit() and len(part) < 16 for part in parts):
        return None
    return int(parts[0]), int(parts[1])


PAGES = web.AppKey("pages", dict[asyncio.Task[Any], web.Request])
"""The tasks that serve open pages, which end with the server, and the requests for them."""
