"""The scheduler as its plugins see it, and the waits of plugins for what controllers do in the cluster."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TypeVar
from weakref import WeakValueDictionary

from kubesched.api.change import Change
from kubesched.api.meta import KubeObject
from kubesched.api.pod import Pod
from kubesched.framework.client import Awaited, Handle, SchedulerMode
from kubesched.framework.events import ClusterEvent
from kubesched.scheduler.attempt.binding_cycle import PreBinding
from kubesched.scheduler.listener import Listeners, SchedulerListener
from kubesched.scheduler.queue.scheduling_queue import SchedulingQueue

S = TypeVar("S")
T = TypeVar("T")

_AT_ONCE = 16
"""Writes of one kind for one pod that are under way together, as many as in kube-scheduler."""
_END_WITHIN = 5.0
"""Seconds in which a write may end when the binding of its pod is stopped, or the process ends."""


class SchedulerHandle(Handle):
    """A scheduler at work."""

    def __init__(
        self,
        pre_binding: PreBinding,
        listeners: Listeners,
        mode: SchedulerMode = SchedulerMode.PARITY,
    ) -> None:
        """Plugins get it before there is a queue, which needs the QueueSort plugin: hence `attach`."""
        self._queue: SchedulingQueue | None = None
        self._pre_binding = pre_binding
        self._listeners = listeners
        self.mode = mode
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        """Locks by key, while any work with this key is under way."""

    def attach(self, queue: SchedulingQueue) -> None:
        """Tell the handle the queue of the scheduler."""
        self._queue = queue

    def activate(self, pod: Pod) -> None:
        if self._queue is not None:
            self._queue.activate(pod)

    def open_gate(self, pod: Pod, plugin: str) -> bool:
        return self._queue is not None and self._queue.open_gate(pod, plugin)

    def stop_binding(self, pod: Pod, reason: str) -> bool:
        return self._pre_binding.stop(pod, reason)

    def turn(self, key: str) -> AbstractAsyncContextManager[None]:
        if not has_event_loop():  # nothing waits, so work never overlaps
            return super().turn(key)
        return self._turns.setdefault(key, asyncio.Lock())

    async def to_the_end(self, work: Awaitable[T]) -> T:
        if not has_event_loop():  # then no pod is stopped
            return await work
        writing = asyncio.ensure_future(work)
        try:
            return await asyncio.shield(writing)
        except asyncio.CancelledError:
            await asyncio.wait((writing,), timeout=_END_WITHIN)
            writing.cancel()
            raise

    async def for_each(self, items: Sequence[S], write: Callable[[S], Awaitable[None]]) -> None:
        waiting = deque(items)

        async def work() -> None:
            while waiting:
                try:
                    await write(waiting.popleft())
                except BaseException:
                    waiting.clear()
                    raise

        if len(items) < 2 or not has_event_loop():
            await work()
            return
        results = await asyncio.gather(*(work() for _ in range(min(len(items), _AT_ONCE))), return_exceptions=True)
        for failure in results:
            if failure is not None:
                raise failure

    async def pause(self, seconds: float) -> None:
        if has_event_loop():
            await asyncio.sleep(seconds)

    def count(self, metric: str, *labels: str) -> None:
        self._listeners.counted(metric, labels)

    def measure(self, metric: str, seconds: float, *labels: str) -> None:
        self._listeners.measured(metric, seconds, labels)


class ObjectWaiter(SchedulerListener):
    """Waits of plugins, each for its pod and for some objects. Clients on an event loop wait through it."""

    def __init__(self) -> None:
        self._waiting: dict[Awaited, set[asyncio.Future[bool]]] = {}
        """Waiters by object; woken by the watch, never polled."""

    @property
    def awaited(self) -> int:
        """How many objects and kinds plugins wait for."""
        return len(self._waiting)

    async def wait(
        self, pod: Pod, is_met: Callable[[], bool], *, objects: Callable[[], Iterable[Awaited]], within: float
    ) -> bool:
        """See `ClusterClient.wait`."""
        if is_met():
            return True
        deadline = asyncio.get_running_loop().time() + within
        while True:
            is_in_time = await self._wait_for_watch({(Pod, pod.key), *objects()}, deadline)
            if is_met():
                return True
            if not is_in_time:
                return False

    async def _wait_for_watch(self, awaited: Iterable[Awaited], deadline: float) -> bool:
        """Wait until the watch shows one of these, or until the deadline: whether it did in time."""
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[bool] = loop.create_future()
        alarm = loop.call_at(deadline, _settle, waiter, False)
        for awaited_object in awaited:
            self._waiting.setdefault(awaited_object, set()).add(waiter)
        try:
            return await waiter
        finally:
            alarm.cancel()
            for awaited_object in awaited:
                waiters = self._waiting[awaited_object]
                waiters.discard(waiter)
                if not waiters:
                    del self._waiting[awaited_object]

    def handled(self, change: Change[KubeObject], events: Sequence[ClusterEvent], seconds: float) -> None:
        if not self._waiting:
            return
        obj = change.obj
        for awaited in ((type(obj), obj.key), type(obj)):
            for waiter in self._waiting.get(awaited, ()):
                _settle(waiter, True)


def has_event_loop() -> bool:
    """Whether an event loop runs. In virtual time none does, and nothing waits."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _settle(future: asyncio.Future[bool], result: bool) -> None:
    if not future.done():
        future.set_result(result)
