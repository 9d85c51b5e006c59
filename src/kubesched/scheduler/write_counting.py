"""A client that counts the writes under way, so that SchedulingLoop can tell them from waits for controllers."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from kubesched.api.pod import Pod
from kubesched.framework.client import ClusterClient, WrappedClient

T = TypeVar("T")


_BUSY = 8
"""Writes under way. With more, the API server has enough to do without attempts that need not be made yet."""


class WriteCounter(WrappedClient):
    """All writes of plugins and of the scheduler go through it. `get` and `wait` are no writes."""

    def __init__(self, client: ClusterClient) -> None:
        super().__init__(client)
        self.under_way = 0
        self.on_end: Callable[[], None] = lambda: None
        """Called when a write has ended or failed."""

    def is_busy(self) -> bool:
        return self.under_way > _BUSY

    async def bind(self, pod: Pod, node_name: str) -> None:
        self.under_way += 1  # as `_call`, spelled out because every pod comes here
        try:
            await self._client.bind(pod, node_name)
        finally:
            self.under_way -= 1
            self.on_end()

    async def _call(self, verb: str, obj: str, call: Coroutine[Any, Any, T], body: Any = None) -> T:
        if verb in ("get", "wait"):
            return await call
        self.under_way += 1
        try:
            return await call
        finally:
            self.under_way -= 1
            self.on_end()
