"""A client that counts the writes under way, so that a driver can tell them from attempts that wait for others."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

from kubesched.api.pod import Pod, PodCondition
from kubesched.framework.client import Awaited, ClusterClient, Json

T = TypeVar("T")


_BUSY = 8
"""Writes under way. With more, the API server has enough to do without attempts that need not be made yet."""


class WriteCounter(ClusterClient):
    """Whatever plugins and the scheduler write goes through it. Reading, and waiting for others, is no write."""

    def __init__(self, client: ClusterClient) -> None:
        self._client = client
        self.under_way = 0
        self.on_end: Callable[[], None] = lambda: None
        """Called when a write has ended, one way or the other."""

    def is_busy(self) -> bool:
        return self.under_way > _BUSY

    async def get(self, kind: str, name: str, namespace: str = "") -> Json:
        return await self._client.get(kind, name, namespace)

    async def create(self, kind: str, obj: Json) -> Json:
        return await self._counted(self._client.create(kind, obj))

    async def replace(self, kind: str, obj: Json, *, subresource: str = "") -> Json:
        return await self._counted(self._client.replace(kind, obj, subresource=subresource))

    async def patch(self, kind: str, name: str, patch: Json, *, namespace: str = "", subresource: str = "") -> Json:
        return await self._counted(self._client.patch(kind, name, patch, namespace=namespace, subresource=subresource))

    async def delete(self, kind: str, name: str, *, namespace: str = "", uid: str = "") -> None:
        await self._counted(self._client.delete(kind, name, namespace=namespace, uid=uid))

    async def bind(self, pod: Pod, node_name: str) -> None:
        self.under_way += 1  # as `_counted`, spelled out because every pod comes here
        try:
            await self._client.bind(pod, node_name)
        finally:
            self.under_way -= 1
            self.on_end()

    async def patch_pod_status(
        self, pod: Pod, *, condition: PodCondition | None, nominated_node_name: str | None
    ) -> None:
        await self._counted(
            self._client.patch_pod_status(pod, condition=condition, nominated_node_name=nominated_node_name)
        )

    async def evict(self, pod: Pod, condition: PodCondition) -> None:
        await self._counted(self._client.evict(pod, condition))

    async def wait(
        self, pod: Pod, is_met: Callable[[], bool], *, objects: Callable[[], Iterable[Awaited]], within: float
    ) -> bool:
        return await self._client.wait(pod, is_met, objects=objects, within=within)

    def record_event(self, pod: Pod, *, related: Pod | None, type: str, reason: str, action: str, note: str) -> None:
        self._client.record_event(pod, related=related, type=type, reason=reason, action=action, note=note)

    async def _counted(self, write: Awaitable[T]) -> T:
        self.under_way += 1
        try:
            return await write
        finally:
            self.under_way -= 1
            self.on_end()
