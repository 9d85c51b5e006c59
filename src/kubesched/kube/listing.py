"""The source of a reflector's objects: lists in pages, and watches, of one resource with its field selector."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, TypeVar
from urllib.parse import urlencode

from kubesched.api.kinds import Resource
from kubesched.kube.client import Client
from kubesched.kube.decoding import Codec, ListPage, UnreadableObject
from kubesched.kube.errors import ApiStatusError

T = TypeVar("T")

PAGE = 500
SILENCE = 120.0
"""Seconds a watch may be silent. Servers send a bookmark every minute; and if one does not, resuming costs little."""
LIST_TIMEOUT = 300.0
"""Seconds for a page, which may be the whole of a large cluster."""
UNFINISHED = "status.phase!=Succeeded,status.phase!=Failed"
"""The field selector for pods that hold something or want to."""


class EventStream(Protocol):
    """An open watch."""

    async def lines(self) -> list[bytes]:
        """At least one line, or none at the end. Raises KubeError."""

    def close(self) -> None: ...


class ObjectSource(Protocol):
    """The requests of a reflector to an API server. Both methods raise KubeError."""

    async def page(self, *, resource_version: str, limit: int, more: str) -> bytes:
        """Some of the objects: at least as new as that version, or the newest if it is empty."""

    async def watch(self, *, resource_version: str, seconds: int, initial_events: bool) -> EventStream:
        """The changes since that version; with initial events, first all objects, and then a bookmark."""


async def list_in_pages(
    source: ObjectSource, codec: Codec[T], *, version: str = "", arrived: Callable[[int], None] = lambda count: None
) -> ListPage[T]:
    """All objects, the version they are of, and those that cannot be read. Raises KubeError.

    `arrived` is called with the number of objects of each page.
    """
    # Any version but the newest is served from memory, where pages would only cost.
    limit = PAGE if version in ("", "0") else 0
    objects: list[T] = []
    unreadable: list[UnreadableObject] = []
    more = ""
    while True:
        try:
            body = await source.page(resource_version=version, limit=limit, more=more)
        except ApiStatusError as error:
            if not (more and error.is_expired):
                raise
            arrived(-len(objects))
            # Pages came too slowly for the server to remember the version: read all at once.
            objects, unreadable, limit, more, version = [], [], 0, "", ""
            continue
        page = codec.page(body)
        objects += page.objects
        unreadable += page.unreadable
        arrived(len(page.objects))
        more = page.more
        if not more:
            return ListPage(objects, page.resource_version, "", unreadable)


class ApiSource:
    """A resource of a live API server."""

    def __init__(
        self,
        client: Client,
        resource: Resource,
        *,
        namespace: str = "",
        field_selector: str = "",
        silence: float = SILENCE,
    ) -> None:
        self._client = client
        self._path = resource.path_of(namespace=namespace)
        self._field_selector = field_selector
        self._silence = silence

    async def page(self, *, resource_version: str, limit: int, more: str) -> bytes:
        query = {
            "fieldSelector": self._field_selector,
            "limit": str(limit) if limit else "",
            "continue": more,
            "resourceVersion": "" if more else resource_version,  # a continued list stays where it began
        }
        return await self._client.get(_with_query(self._path, query), timeout=LIST_TIMEOUT)

    async def watch(self, *, resource_version: str, seconds: int, initial_events: bool) -> EventStream:
        query = {
            "fieldSelector": self._field_selector,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(seconds),
        }
        if initial_events:
            query |= {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        return await self._client.watch(_with_query(self._path, query), silence=self._silence)


def _with_query(path: str, query: Mapping[str, str]) -> str:
    """The path with those parameters that have a value."""
    parameters = {name: value for name, value in query.items() if value}
    return f"{path}?{urlencode(parameters)}" if parameters else path
