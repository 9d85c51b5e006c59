"""Watches, from the request to the end: each change is encoded once, and sent to every watcher of its resource.

Lines are handed straight to the connections, all of one burst in one write. That is what makes five watchers of a
thousand changes a second cost less than the changes themselves. A client that cannot keep up is let go.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable, Iterable

from aiohttp import HttpVersion11, web

from kubesched.api.api_error import gone
from kubesched.api.kinds import Object, Resource
from kubesched_sandbox.api import Api, ListSelector
from kubesched_sandbox.api.catalog import table_of
from kubesched_sandbox.http.answers import Shapes, encoded_line, too_large_version
from kubesched_sandbox.http.faults import Faults
from kubesched_sandbox.http.query import Query, bad_list_option
from kubesched_sandbox.store import ExpiredError, StoredChange, StoredObject
from kubesched_sandbox.store.memory import key_of

MOST_UNSENT = 32 * 1024 * 1024
"""Bytes that may wait for one client."""
_BURST_SECONDS = 0.002
"""Changes that come faster than this are written together."""

_CHUNK = 256 * 1024
_SHORTEST, _LONGEST = 1800, 3600
"""How long a watch lasts that does not say, so that not all end at once."""


class Watcher:
    """One client that waits for changes of one resource."""

    def __init__(self, resource: Resource, namespace: str | None, wanted: ListSelector, shapes: Shapes) -> None:
        self.resource, self.namespace, self.wanted, self.shapes = resource, namespace, wanted, shapes
        self._filters = not wanted.is_everything
        self.unsent: list[bytes] = []
        self.unsent_bytes = 0
        self.bookmarks = False
        self.since = 0
        """Changes up to this revision are known to the client from a list."""
        self.write: Callable[[bytes], None] | None = None
        """Where lines go; None while the client still gets what was there before."""
        self.frozen = False
        self.broken = False
        """Whether the connection is to break, rather than to end in good order."""
        self.ended = asyncio.Event()
        self._held: list[bytes] = []

    def offer(self, change: StoredChange, shared: dict[str, bytes]) -> None:
        """Take a change if it is one for this client. `shared` holds the lines made for others before."""
        line = self.line(change, shared) if change.revision > self.since else None
        if line is not None:
            self.take(line)

    def hold(self, change: StoredChange, shared: dict[str, bytes]) -> None:
        """Take a change, but send it only after the next one."""
        line = self.line(change, shared) if change.revision > self.since else None
        if line is not None:
            self._held.append(line)

    def take(self, line: bytes) -> None:
        self.unsent.append(line)
        if self._held:
            self.unsent += self._held
            self._held.clear()
        self.unsent_bytes += len(line)
        if self.unsent_bytes > MOST_UNSENT:
            self.end()

    def line(self, change: StoredChange, shared: dict[str, bytes]) -> bytes | None:
        obj = change.record.object
        if self.namespace is not None and key_of(obj)[0] != self.namespace:
            return None
        kind: str = change.type
        if self._filters:
            seen_as = self._seen_as(change)
            if seen_as is None:
                return None
            kind = seen_as
            if kind == "DELETED" and change.type != "DELETED":
                return self._left(change)
        if not self.shapes.is_plain:
            return self.shapes.event(kind, self.shapes.one(obj))
        line = shared.get(kind)
        if line is None:
            line = shared[kind] = encoded_line(kind, change.record.encoded)
        return line

    def added(self, obj: Object, encoded: bytes) -> bytes:
        """The line for an object that was there before."""
        if self.shapes.is_plain:
            return encoded_line("ADDED", encoded)
        return self.shapes.event("ADDED", self.shapes.one(obj))

    def bookmark(self, revision: int, *, initial: bool = False) -> bytes:
        annotations = {"k8s.io/initial-events-end": "true"} if initial else None
        return self.shapes.event("BOOKMARK", self.shapes.bookmark(revision, annotations))

    def end(self) -> None:
        """Break the connection: the client is too slow, or a fault says so."""
        self.write = None
        self.broken = True
        self.ended.set()

    def finish(self) -> None:
        """End in good order, with what is still to be said."""
        self.flush()
        self.write = None
        self.ended.set()

    def flush(self) -> None:
        if self.write is None or self.frozen or not self.unsent:
            return
        data = self.unsent[0] if len(self.unsent) == 1 else b"".join(self.unsent)
        self.unsent.clear()
        self.unsent_bytes = 0
        self.write(data)

    def _seen_as(self, change: StoredChange) -> str | None:
        """What a change is to a client that sees only a selection; None when it sees nothing of it."""
        before = change.old is not None and self.wanted.matches(change.old.object)
        if change.type == "DELETED":
            return "DELETED" if before else None
        if self.wanted.matches(change.record.object):
            return "MODIFIED" if before else "ADDED"
        return "DELETED" if before else None

    def _left(self, change: StoredChange) -> bytes:
        """An object that left the selection is shown as it was when it was last in it."""
        assert change.old is not None
        old = change.old.object
        last = {**old, "metadata": {**old["metadata"], "resourceVersion": str(change.revision)}}
        return self.shapes.event("DELETED", self.shapes.one(last))


class Watches:
    """All watchers of a server."""

    def __init__(self, api: Api, faults: Faults) -> None:
        self._api, self._faults = api, faults
        self._watchers: dict[str, set[Watcher]] = {}
        self._loop = asyncio.get_running_loop()
        self._rng = random.Random()
        self._flush_planned = False
        self._flushed = 0.0
        self._stop = api.store.listen(self._changed, durable=True)

    def __len__(self) -> int:
        return sum(map(len, self._watchers.values()))

    def add(self, watcher: Watcher, since: int | None) -> None:
        """Tell a watcher of every change from now on, and first of those since a revision."""
        table = table_of(watcher.resource)
        if since is not None:
            durable = self._api.store.durable_revision
            for change in self._api.store.table(table).changes_after(since):
                if change.revision <= durable:
                    watcher.offer(change, {})
        self._watchers.setdefault(table, set()).add(watcher)

    def remove(self, watcher: Watcher) -> None:
        self._watchers.get(table_of(watcher.resource), set()).discard(watcher)

    async def serve(self, request: web.BaseRequest, watcher: Watcher, query: Query) -> web.StreamResponse:
        """Send a client what was there, if its query asks for that, and every change until the watch ends."""
        since = query.resource_version()
        send_initial = query.flag("sendInitialEvents")
        _check_options(query)
        seconds = query.number("timeoutSeconds") or self._rng.randint(_SHORTEST, _LONGEST)
        current = self._api.store.revision
        if since is not None and since > current:
            raise too_large_version(since, current)
        watcher.bookmarks = query.flag("allowWatchBookmarks")
        from_list = send_initial or (since in (None, 0) and not query.text("sendInitialEvents"))
        records: list[StoredObject] = []
        error: bytes = b""
        try:
            if from_list:
                records = self._api.records(watcher.resource, watcher.namespace, watcher.wanted)
                watcher.since = current
                self.add(watcher, None)
            else:
                self.add(watcher, current if since in (None, 0) else since)
        except ExpiredError as expired:
            error = watcher.shapes.event("ERROR", gone(str(expired)).status())
        try:
            await self._api.store.durable(current)
            response = _response(request, watcher.shapes.event_type)
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
            self.remove(watcher)

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

    def close(self) -> None:
        self._stop()
        for watchers in self._watchers.values():
            for watcher in tuple(watchers):
                watcher.finish()

    def send_bookmarks(self) -> None:
        """Send a bookmark to every watch that asked for bookmarks."""
        revision = self._api.store.durable_revision
        for watchers in self._watchers.values():
            for watcher in watchers:
                if watcher.bookmarks:
                    watcher.take(watcher.bookmark(revision))
        self.plan_flush()

    def plan_flush(self) -> None:
        if self._flush_planned:
            return
        self._flush_planned = True
        wait = self._flushed + _BURST_SECONDS - self._loop.time()
        if wait <= 0:
            self._loop.call_soon(self._flush)
        else:
            self._loop.call_later(wait, self._flush)

    def _changed(self, change: StoredChange) -> None:
        watchers = self._watchers.get(change.table)
        if not watchers:
            return
        shared: dict[str, bytes] = {}
        if self._faults.active:
            for watcher in tuple(watchers):
                self._offer_faulty(watcher, change, shared)
        else:
            for watcher in tuple(watchers):
                watcher.offer(change, shared)
        self.plan_flush()

    def _offer_faulty(self, watcher: Watcher, change: StoredChange, shared: dict[str, bytes]) -> None:
        match self._faults.for_event(watcher.resource):
            case "drop-watch":
                watcher.end()
            case "duplicate":
                watcher.offer(change, shared)
                watcher.offer(change, shared)
            case "reorder":
                watcher.hold(change, shared)
            case "410":
                watcher.take(watcher.shapes.event("ERROR", gone("too old resource version: injected fault").status()))
                watcher.finish()
            case "freeze":
                watcher.offer(change, shared)
                watcher.frozen = True
            case _:
                watcher.offer(change, shared)

    def _flush(self) -> None:
        self._flush_planned = False
        self._flushed = self._loop.time()
        for watchers in self._watchers.values():
            for watcher in tuple(watchers):
                watcher.flush()


def _response(request: web.BaseRequest, content_type: str) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": content_type, "Cache-Control": "no-cache, private"})
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
