"""What is in a real API server, from its watches: every change in order, and after a gap what the gap amounts to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, Literal

import msgspec

from kubesched.api.kinds import Object, Resource
from kubesched.kube.client import Client
from kubesched.kube.errors import ApiStatusError, KubeError
from kubesched_sandbox.api import ApiEvent

_SILENCE = 120.0
_PAUSE = 0.2
_ENDED = ("Succeeded", "Failed")


class _WatchEvent(msgspec.Struct):
    type: str
    object: msgspec.Raw


class Mirror:
    """Follows some resources. It owes nothing to the reflectors of the scheduler, on which it helps to judge."""

    def __init__(self, client: Client, resources: Iterable[Resource], on_event: Callable[[ApiEvent], None]) -> None:
        self._client, self._on_event = client, on_event
        self._objects: dict[Resource, dict[str, Object]] = {resource: {} for resource in resources}
        """By uid: an object made anew under the name of another is another object."""
        self._reached = dict.fromkeys(self._objects, "")
        self._synced = {resource: asyncio.Event() for resource in self._objects}
        self.lists = 0

    def objects(self, resource: Resource) -> list[Object]:
        return list(self._objects[resource].values())

    async def wait_synced(self) -> None:
        for synced in self._synced.values():
            await synced.wait()

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as group:
            for resource in self._objects:
                group.create_task(self._follow(resource))

    async def _follow(self, resource: Resource) -> None:
        while True:
            try:
                if not self._reached[resource]:
                    await self._list(resource)
                await self._watch(resource)
            except KubeError as error:
                if isinstance(error, ApiStatusError) and error.is_expired:
                    self._reached[resource] = ""
                await asyncio.sleep(_PAUSE)

    async def _list(self, resource: Resource) -> None:
        """Everything; what that changes is shown as if it had been watched, what makes room before what takes it."""
        answer: Any = msgspec.json.decode(await self._client.get(resource.path_of()))
        self.lists += 1
        found = {obj["metadata"]["uid"]: obj for obj in answer["items"]}
        known = self._objects[resource]
        for uid in [uid for uid in known if uid not in found]:
            self._show(resource, "DELETED", known[uid])
        changed = [obj for uid, obj in found.items() if _version(known.get(uid)) != _version(obj)]
        for obj in sorted(changed, key=_takes_room):
            self._show(resource, "MODIFIED" if obj["metadata"]["uid"] in known else "ADDED", obj)
        self._reached[resource] = _version(answer)
        self._synced[resource].set()

    async def _watch(self, resource: Resource) -> None:
        """From where it is, until the watch ends."""
        since = self._reached[resource]
        path = f"{resource.path_of()}?watch=true&allowWatchBookmarks=true&resourceVersion={since}"
        stream = await self._client.watch(path, silence=_SILENCE)
        try:
            while lines := await stream.lines():
                for line in lines:
                    event = msgspec.json.decode(line, type=_WatchEvent)
                    if event.type == "ERROR":
                        raise ApiStatusError.of_event(event.object)
                    obj: Object = msgspec.json.decode(event.object)
                    if event.type in ("ADDED", "MODIFIED", "DELETED"):
                        self._show(resource, event.type, obj)  # type: ignore[arg-type]
                    self._reached[resource] = _version(obj)
        finally:
            stream.close()

    def _show(self, resource: Resource, what: Literal["ADDED", "MODIFIED", "DELETED"], obj: Object) -> None:
        known, uid = self._objects[resource], obj["metadata"]["uid"]
        old = known.pop(uid, None)
        if what != "DELETED":
            known[uid] = obj
        self._on_event(ApiEvent(what, resource, obj, old, int(_version(obj))))


def _version(obj: Object | None) -> str:
    return "" if obj is None else str(obj["metadata"]["resourceVersion"])


def _takes_room(obj: Object) -> bool:
    status = obj.get("status") or {}
    return bool(status.get("allocation")) or (
        bool((obj.get("spec") or {}).get("nodeName")) and status.get("phase") not in _ENDED
    )
