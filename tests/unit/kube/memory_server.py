"""An API server in memory that keeps its promises, and breaks every one that real ones break, when told to."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.builders import Json

from kubesched.api.change import Change
from kubesched.kube.errors import ApiStatusError, KubeError, StatusCause, StatusDetails, UnreachableError

EXPIRED = ApiStatusError(410, "Expired", "too old resource version")
TOO_LARGE = ApiStatusError(
    504,
    "Timeout",
    "Too large resource version",
    StatusDetails(causes=(StatusCause(reason="ResourceVersionTooLarge"),)),
)


@dataclass
class MemoryStream:
    """An open watch."""

    server: MemoryServer
    lines_to_send: list[bytes] = field(default_factory=list)
    held: list[bytes] = field(default_factory=list)
    error: KubeError | None = None
    ended: bool = False
    waiter: asyncio.Future[None] | None = None
    closed: bool = False

    async def lines(self) -> list[bytes]:
        while not self.lines_to_send and self.error is None and not self.ended:
            self.waiter = asyncio.get_running_loop().create_future()
            await self.waiter
        lines, self.lines_to_send = self.lines_to_send, []
        if not lines and self.error is not None:
            raise self.error
        return lines

    def send(self, *lines: bytes) -> None:
        self.lines_to_send += lines
        self.wake()

    def end(self, error: KubeError | None = None) -> None:
        self.error, self.ended = error, True
        self.held.clear()
        self.wake()

    def wake(self) -> None:
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_result(None)

    def close(self) -> None:
        self.closed = True
        if self in self.server.streams:
            self.server.streams.remove(self)
        self.end(UnreachableError("the connection was lost"))


class MemoryServer:
    """Objects of one resource with their history, as a reflector's source."""

    def __init__(self, *, streams_lists: bool = True, page_size: int = 0, version: int = 10) -> None:
        self.objects: dict[str, Json] = {}
        self.version = version
        self.compacted = 0
        self.streams: list[MemoryStream] = []
        self.asked: list[str] = []
        self.failures: list[KubeError] = []
        """Answers to the next requests, whatever they are."""
        self.streams_lists = streams_lists
        self.page_size = page_size
        self.mangle: Callable[[MemoryStream, bytes], None] = MemoryStream.send
        """How an event goes out: once, twice, later."""
        self._history: list[tuple[int, str, Json]] = []
        self._uids = 0

    # What happens to objects

    def put(self, name: str, **spec: Any) -> None:
        """Create or change."""
        known = self.objects.get(name)
        if known is None:
            self._uids += 1
        uid = known["metadata"]["uid"] if known else f"uid-{self._uids}"
        self.objects[name] = self._happened("MODIFIED" if known else "ADDED", name, uid, spec)

    def delete(self, name: str) -> None:
        known = self.objects.pop(name)
        self._happened("DELETED", name, known["metadata"]["uid"], known["spec"])

    def advance(self) -> None:
        """Something else in the cluster changed."""
        self.version += 1

    def _happened(self, type_: str, name: str, uid: str, spec: Json) -> Json:
        self.version += 1
        meta = {"name": name, "namespace": "ns", "uid": uid, "resourceVersion": str(self.version)}
        obj = {"metadata": meta, "spec": spec}
        self._history.append((self.version, type_, obj))
        for stream in list(self.streams):
            self.mangle(stream, line(type_, obj))
        return obj

    # What happens to the server

    def compact(self) -> None:
        self.compacted = self.version
        self._history.clear()

    def drop(self, error: KubeError | None = None) -> None:
        """Every watch ends."""
        for stream in list(self.streams):
            self.streams.remove(stream)
            stream.end(error)

    def restart_from_backup(self, names: list[str]) -> None:
        """The server lost its past, and all objects but these; it counts on from an earlier version."""
        self.objects = {name: obj for name, obj in self.objects.items() if name in names}
        self.version //= 2
        for obj in self.objects.values():
            self.version += 1
            obj["metadata"] = {**obj["metadata"], "resourceVersion": str(self.version)}
        self.compact()
        self.drop(UnreachableError("the connection was lost"))

    def send_to_all(self, *lines: bytes) -> None:
        for stream in list(self.streams):
            stream.send(*lines)

    # What a reflector asks

    async def page(self, *, resource_version: str, limit: int, more: str) -> bytes:
        self.asked.append(f"list {resource_version or 'newest'}{f' from {more}' if more else ''}")
        self._fail_if_told()
        if resource_version and int(resource_version) > self.version:
            raise TOO_LARGE
        names = sorted(self.objects)
        start = int(more.split("@")[0]) if more else 0
        if more and int(more.split("@")[1]) < self.compacted:
            raise EXPIRED
        size = self.page_size if limit and self.page_size else len(names)
        chunk = names[start : start + size]
        meta = {"resourceVersion": str(self.version)}
        if start + size < len(names):
            meta["continue"] = f"{start + size}@{self.version}"
        return json.dumps({"metadata": meta, "items": [self.objects[name] for name in chunk]}).encode()

    async def watch(self, *, resource_version: str, seconds: int, initial_events: bool) -> MemoryStream:
        self.asked.append(f"{'stream' if initial_events else 'watch'} {resource_version or 'newest'}")
        self._fail_if_told()
        version = int(resource_version or 0)
        if initial_events and not self.streams_lists:
            raise ApiStatusError(422, "Invalid", "sendInitialEvents is forbidden")
        if version > self.version:
            raise TOO_LARGE
        stream = MemoryStream(self)
        if initial_events:
            for obj in self.objects.values():
                stream.send(line("ADDED", obj))
            stream.send(bookmark(self.version, ends_list=True))
        elif version < self.compacted:
            raise EXPIRED
        else:
            for happened, type_, obj in self._history:
                if happened > version:
                    self.mangle(stream, line(type_, obj))
        self.streams.append(stream)
        return stream

    def _fail_if_told(self) -> None:
        if self.failures:
            raise self.failures.pop(0)


def line(type_: str, obj: Any) -> bytes:
    return json.dumps({"type": type_, "object": obj}).encode()


def bookmark(version: int, *, ends_list: bool = False) -> bytes:
    meta: Json = {"resourceVersion": str(version)}
    if ends_list:
        meta["annotations"] = {"k8s.io/initial-events-end": "true"}
    return line("BOOKMARK", {"kind": "Pod", "metadata": meta})


def error_event(error: ApiStatusError) -> bytes:
    status = {"kind": "Status", "code": error.code, "reason": error.reason, "message": error.message}
    return line("ERROR", status)


MARKS = {"added": "+", "updated": "~", "deleted": "-"}


class View:
    """A handler that holds the reflector to its promises."""

    def __init__(self) -> None:
        self.objects: dict[str, Json] = {}
        self.log: list[str] = []

    def handle(self, change: Change[Json]) -> None:
        old, new = change
        name = change.obj["metadata"]["name"]
        assert self.objects.get(name) is old
        if old is not None and new is not None:
            assert old["metadata"]["uid"] == new["metadata"]["uid"]
        if new is None:
            del self.objects[name]
        else:
            self.objects[name] = new
        self.log.append(f"{MARKS[change.verb]}{name}")

    def told(self) -> list[str]:
        """What happened since the last time."""
        log, self.log = self.log, []
        return log
