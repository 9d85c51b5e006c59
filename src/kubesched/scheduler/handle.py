"""The scheduler as its plugins see it, and the waits of plugins for what others do in the cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from kubesched.api.change import Change
from kubesched.api.meta import KubeObject
from kubesched.api.pod import Pod
from kubesched.framework.client import Handle
from kubesched.framework.events import ClusterEvent
from kubesched.scheduler.attempt.binding_cycle import PreBinding
from kubesched.scheduler.listener import SchedulerListener
from kubesched.scheduler.queue.scheduling_queue import SchedulingQueue

T = TypeVar("T")

_END_WITHIN = 5.0
"""Seconds that a write is waited for when its pod is stopped, or the whole process."""


class SchedulerHandle(Handle):
    """A scheduler at work."""

    def __init__(
        self, queue: Callable[[], SchedulingQueue], pre_binding: PreBinding, listeners: Sequence[SchedulerListener]
    ) -> None:
        """Plugins are made before the queue, which asks them for their order: hence it is looked up when needed."""
        self._queue = queue
        self._pre_binding = pre_binding
        self._listeners = listeners

    def activate(self, pod: Pod) -> None:
        self._queue().activate(pod)

    def open_gate(self, pod: Pod, plugin: str) -> bool:
        return self._queue().open_gate(pod, plugin)

    def stop_binding(self, pod: Pod, reason: str) -> bool:
        return self._pre_binding.stop(pod, reason)

    async def to_the_end(self, work: Awaitable[T]) -> T:
        try:
            asyncio.get_running_loop()
        except RuntimeError:  # without an event loop no pod is stopped
            return await work
        writing = asyncio.ensure_future(work)
        try:
            return await asyncio.shield(writing)
        except asyncio.CancelledError:
            await asyncio.wait((writing,), timeout=_END_WITHIN)
            writing.cancel()
            raise

    def count(self, metric: str, *labels: str) -> None:
        for listener in self._listeners:
            listener.counted(metric, labels)

    def measure(self, metric: str, seconds: float, *labels: str) -> None:
        for listener in self._listeners:
            listener.measured(metric, seconds, labels)


class ObjectWaiter(SchedulerListener):
    """Waits of plugins, each for its pod and for objects of some kinds; clients on an event loop wait through it."""

    def __init__(self) -> None:
        self._waiting: dict[str | type[KubeObject], set[asyncio.Future[None]]] = {}
        """What is waited for: the pod of this key, or any object of this kind."""

    async def wait(
        self, pod: Pod, is_met: Callable[[], bool], *, kinds: Sequence[type[KubeObject]], within: float
    ) -> bool:
        """As ClusterClient.wait says."""
        if is_met():
            return True
        loop = asyncio.get_running_loop()
        deadline = loop.time() + within
        while True:
            is_late = not await self._change_of((pod.key, *kinds), within=max(0.0, deadline - loop.time()))
            if is_met():
                return True
            if is_late:
                return False

    async def _change_of(self, keys: Sequence[str | type[KubeObject]], *, within: float) -> bool:
        change: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        for key in keys:
            self._waiting.setdefault(key, set()).add(change)
        try:
            done, _ = await asyncio.wait((change,), timeout=within)
        finally:
            for key in keys:
                self._waiting[key].discard(change)
                if not self._waiting[key]:
                    del self._waiting[key]
        return bool(done)

    def handled(self, change: Change[KubeObject], events: Sequence[ClusterEvent], seconds: float) -> None:
        obj = change.obj
        for waiting in self._waiting.get(obj.key if isinstance(obj, Pod) else type(obj), ()):
            if not waiting.done():
                waiting.set_result(None)
