"""The kubelets of nodes without machines on a real API server: pods run, end after their time, and go when told to."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from kubesched.api.kinds import PODS, Object
from kubesched.kube.client import MERGE_PATCH, Client
from kubesched.kube.errors import ApiStatusError, KubeError
from kubesched_sandbox.api import ApiEvent
from kubesched_sandbox.nodes.manifests import DURATION, seconds_in

_GOES_AFTER = 0.5
_PAUSE = 1.0
_encode = msgspec.json.Encoder().encode


class Kubelets:
    """All of them at once. A pod has one task at a time: it lives, or it goes."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._lives: dict[str, asyncio.Task[None]] = {}
        self._going: set[str] = set()

    def see(self, event: ApiEvent) -> None:
        if event.resource is not PODS or not event.object["spec"].get("nodeName"):
            return
        pod, uid = event.object, event.object["metadata"]["uid"]
        if event.type == "DELETED":
            self._end(uid)
        elif "deletionTimestamp" in pod["metadata"]:
            if uid not in self._going:
                self._end(uid)
                self._going.add(uid)
                self._lives[uid] = asyncio.create_task(self._go(pod))
        elif uid not in self._lives and pod["status"].get("phase") == "Pending":
            self._lives[uid] = asyncio.create_task(self._live(pod))

    def stop(self) -> None:
        for uid in list(self._lives):
            self._end(uid)

    def _end(self, uid: str) -> None:
        self._going.discard(uid)
        if (task := self._lives.pop(uid, None)) is not None:
            task.cancel()

    async def _live(self, pod: Object) -> None:
        await self._say(pod, "Running")
        if (seconds := seconds_in(pod, DURATION)) is not None:
            await asyncio.sleep(seconds)
            await self._say(pod, "Succeeded")

    async def _go(self, pod: Object) -> None:
        await asyncio.sleep(_GOES_AFTER)
        path, uid = _path(pod), pod["metadata"]["uid"]
        at_once = _encode({"gracePeriodSeconds": 0, "preconditions": {"uid": uid}})
        while not await self._is_over_with(self._client.delete(path, at_once)):
            await asyncio.sleep(_PAUSE)

    async def _say(self, pod: Object, phase: str) -> None:
        patch = _encode({"metadata": {"uid": pod["metadata"]["uid"]}, "status": {"phase": phase}})
        while not await self._is_over_with(self._client.patch(_path(pod, "status"), patch, content_type=MERGE_PATCH)):
            await asyncio.sleep(_PAUSE)

    async def _is_over_with(self, request: Any) -> bool:
        """Done, or of no use any more, since the pod is gone or another has its name."""
        try:
            await request
        except KubeError as error:
            return isinstance(error, ApiStatusError) and error.code in (404, 409)
        return True


def _path(pod: Object, subresource: str = "") -> str:
    meta = pod["metadata"]
    return PODS.path_of(namespace=meta["namespace"], name=meta["name"], subresource=subresource)
