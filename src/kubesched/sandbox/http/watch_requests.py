"""One watch from its request to its end: what was there, what came since, and then what comes."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Iterable

from aiohttp import HttpVersion11, web

from kubesched.api.api_error import gone
from kubesched.api.kinds import Resource
from kubesched.sandbox.api import Api, ListSelector
from kubesched.sandbox.http.content import JSON
from kubesched.sandbox.http.lists import too_large_version
from kubesched.sandbox.http.query import Query, bad_list_option
from kubesched.sandbox.http.shapes import Shapes
from kubesched.sandbox.http.watches import MOST_UNSENT, Watcher, Watches, event_line
from kubesched.sandbox.store import ExpiredError, StoredObject

_CHUNK = 256 * 1024
_SHORTEST, _LONGEST = 1800, 3600
"""How long a watch lasts that does not say, so that not all end at once."""


class WatchRequests:
    """Serves watches."""

    def __init__(self, api: Api, watches: Watches) -> None:
        self._api, self._watches = api, watches
        self._rng = random.Random()

    async def watch(
        self,
        request: web.BaseRequest,
        resource: Resource,
        namespace: str | None,
        wanted: ListSelector,
        query: Query,
        shapes: Shapes,
    ) -> web.StreamResponse:
        since = query.resource_version()
        send_initial = query.flag("sendInitialEvents")
        _check_options(query)
        seconds = query.number("timeoutSeconds") or self._rng.randint(_SHORTEST, _LONGEST)
        current = self._api.store.revision
        if since is not None and since > current:
            raise too_large_version(since, current)
        watcher = Watcher(resource, namespace, wanted, shapes)
        watcher.bookmarks = query.flag("allowWatchBookmarks")
        from_list = send_initial or (since in (None, 0) and not query.text("sendInitialEvents"))
        records: list[StoredObject] = []
        error: bytes = b""
        try:
            if from_list:
                records = self._api.records(resource, namespace, wanted)
                watcher.since = current
                self._watches.add(watcher, None)
            else:
                self._watches.add(watcher, current if since in (None, 0) else since)
        except ExpiredError as expired:
            error = event_line("ERROR", gone(str(expired)).status())
        try:
            await self._api.store.durable(current)
            response = _response(request)
            with contextlib.suppress(ConnectionError):  # the client has gone, which is no error
                await response.prepare(request)
                if error:
                    await response.write(error)
                else:
                    await _write_initial(response, watcher, records)
                    if send_initial:
                        await response.write(watcher.bookmark(current, initial=True))
                    await self._live(request, response, watcher, seconds)
                await response.write_eof()
            return response
        finally:
            self._watches.remove(watcher)

    async def _live(
        self, request: web.BaseRequest, response: web.StreamResponse, watcher: Watcher, seconds: float
    ) -> None:
        while watcher.unsent:
            lines, watcher.unsent, watcher.unsent_bytes = watcher.unsent, [], 0
            await response.write(b"".join(lines))
        transport = request.transport
        if transport is None:
            return
        chunked = response.chunked

        def write(data: bytes) -> None:
            if transport.is_closing() or transport.get_write_buffer_size() > MOST_UNSENT:
                watcher.end()
            else:
                transport.write(b"%x\r\n%b\r\n" % (len(data), data) if chunked else data)

        watcher.write = write
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(watcher.ended.wait(), seconds)
        if watcher.broken:
            transport.abort()
            return
        watcher.finish()
        if watcher.bookmarks:
            await response.write(watcher.bookmark(self._api.store.durable_revision))


def _response(request: web.BaseRequest) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": JSON, "Cache-Control": "no-cache, private"})
    if request.version >= HttpVersion11:
        response.enable_chunked_encoding()
    return response


async def _write_initial(response: web.StreamResponse, watcher: Watcher, records: Iterable[StoredObject]) -> None:
    lines, size = [], 0
    for record in records:
        line = watcher.added(record.object, record.encoded)
        lines.append(line)
        size += len(line)
        if size > _CHUNK:
            await response.write(b"".join(lines))
            lines, size = [], 0
    if lines:
        await response.write(b"".join(lines))


def _check_options(query: Query) -> None:
    match = query.text("resourceVersionMatch")
    initial = query.text("sendInitialEvents")
    if initial and match != "NotOlderThan":
        why = "Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        raise bad_list_option("resourceVersionMatch", why)
    if match and not initial:
        why = "Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        raise bad_list_option("resourceVersionMatch", why)
    if query.text("continue"):
        raise bad_list_option("continue", "Forbidden: continue is forbidden for watch")
