"""One replica: a scheduler with its informers, its client, its listeners and the cache comparer."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any

from kubesched.daemon.cache_debugger import CacheComparer
from kubesched.daemon.log import Log
from kubesched.daemon.object_handling import ObjectHandling
from kubesched.daemon.shadow import Shadow
from kubesched.extenders.http_extender import HTTPExtender, close_all
from kubesched.kube.events import EventRecorder
from kubesched.kube.informers import Informers
from kubesched.scheduler import garbage
from kubesched.scheduler.loop import SchedulingLoop
from kubesched.scheduler.scheduler import Scheduler

FINISH_WITHIN = 10.0
"""Seconds that bindings under way are given when the replica stops."""
FLUSH_WITHIN = 3.0

log = Log(__name__)


@dataclass(eq=False, kw_only=True)
class Replica:
    """All that schedules, once it is its turn. It lives on one event loop, where nothing else can keep it waiting."""

    scheduler: Scheduler
    loop: SchedulingLoop
    events: EventRecorder
    handling: ObjectHandling
    informers: Informers
    comparer: CacheComparer
    extenders: Sequence[HTTPExtender]
    shadow: Shadow | None
    """In shadow mode: what it would have decided, against what the other scheduler did."""
    listens_late: bool
    """Whether the cluster is followed only from when it is the replica's turn."""
    _stopping: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    def stop(self) -> None:
        """End `act`, once what is under way is finished."""
        self._stopping.set()

    async def listen(self) -> None:
        """Follow the cluster, write events, and compare the cache with the API server. For ever."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.events.run(), name="events")
            tasks.create_task(self.comparer.run(), name="cache comparer")
            if not self.listens_late:
                tasks.create_task(self.informers.run(), name="informers")

    async def act(self) -> None:
        """It is our turn: schedule, or in shadow mode look on, until `stop`. `listen` must be running."""
        try:
            if self.shadow is not None:
                await self._watch()
            elif self.listens_late:
                async with running(self.informers.run()):
                    await self._schedule()
            else:
                await self._schedule()
        finally:
            if self.shadow is not None:
                await self.shadow.stop()
            await close_all(self.extenders)

    async def _schedule(self) -> None:
        """Schedule until `stop`, then finish what is under way.

        Before the first decision everything is read anew: the last leader may have bound pods that the watch has
        not shown us yet.
        """
        if not await _done_before(self._stopping, self.informers.catch_up()):
            return
        garbage.freeze()
        log.info("Starting to schedule", nodes=self.scheduler.state.nodes.live_count, pods=len(self.scheduler.pods))
        scheduling = asyncio.create_task(self.loop.run(), name="scheduling")
        stopped = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait((scheduling, stopped), return_when=asyncio.FIRST_COMPLETED)
            if scheduling.done():
                scheduling.result()  # it does not end by itself: this raises what broke it
            await self.loop.stop(FINISH_WITHIN)
            await scheduling
        finally:
            stopped.cancel()
            scheduling.cancel()
            # If the lease is lost, another replica may be binding pods: nothing more may be written.
            await self.loop.stop(within=0)
            await asyncio.wait((scheduling,))

    async def _watch(self) -> None:
        """Shadow mode: only look, until `stop`."""
        if await _done_before(self._stopping, self.informers.wait_synced()):
            log.info("Watching, and binding nothing", pods=len(self.scheduler.pods))
            await self._stopping.wait()


@contextlib.asynccontextmanager
async def running(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """The work runs along with the body, and ends with it. If it breaks, so does the body."""
    try:
        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(work)
            yield
            task.cancel()
    except BaseExceptionGroup as several:
        raise _first(several) from None


def _first(several: BaseExceptionGroup[BaseException]) -> BaseException:
    """What broke first: the others only followed."""
    error = several.exceptions[0]
    return _first(error) if isinstance(error, BaseExceptionGroup) else error


async def _done_before(stopping: asyncio.Event, work: Coroutine[Any, Any, None]) -> bool:
    """Wait for the work, but no longer than until `stopping`. Whether it was done."""
    doing, stopped = asyncio.create_task(work), asyncio.create_task(stopping.wait())
    try:
        await asyncio.wait((doing, stopped), return_when=asyncio.FIRST_COMPLETED)
        if not doing.done():
            return False
        doing.result()
        return not stopping.is_set()
    finally:
        for task in (doing, stopped):
            task.cancel()
        await asyncio.wait((doing, stopped))
