"""One replica: a scheduler with its informers, its client, its listeners and the cache comparer."""

from __future__ import annotations

import asyncio
import contextlib
import math
import random
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import IO, Any

from kubesched.daemon.cache_comparer import CacheComparer
from kubesched.daemon.completion import Completed
from kubesched.daemon.informers import Informers
from kubesched.daemon.live_client import LiveClient
from kubesched.daemon.log import Log
from kubesched.daemon.metrics.census import Census
from kubesched.daemon.metrics.client import WorkQueueMetrics
from kubesched.daemon.metrics.listener import ClientMetrics, SchedulerMetrics
from kubesched.daemon.metrics.registry import MetricsRegistry
from kubesched.daemon.object_handling import ObjectHandling
from kubesched.daemon.scheduling_log import SchedulingLog
from kubesched.daemon.shadow import Shadow, log_and_count, shadow_of
from kubesched.daemon.yielding_sink import YieldingSink
from kubesched.extenders.http_extender import close_all, extenders_of
from kubesched.extenders.originals import originals_for
from kubesched.framework.budget import TURN, Budget
from kubesched.framework.client import ClusterClient
from kubesched.framework.registry import Registry
from kubesched.kube.authentication import Clients
from kubesched.kube.events import EventRecorder
from kubesched.plugins.registry import in_tree
from kubesched.scheduler import garbage
from kubesched.scheduler.handle import ObjectWaiter
from kubesched.scheduler.listener import SchedulerListener
from kubesched.scheduler.loop import SchedulingLoop
from kubesched.scheduler.recording.recording import Recording, RecordingClient
from kubesched.scheduler.scheduler import Scheduler

FINISH_WITHIN = 10.0
"""Seconds that bindings under way are given when the replica stops."""
FLUSH_WITHIN = 3.0

log = Log(__name__)


class Replica:
    """All that schedules, once it is its turn. It lives on one event loop, where nothing else can keep it waiting."""

    def __init__(
        self,
        completed: Completed,
        connections: Clients,
        registry: MetricsRegistry,
        *,
        plugins: Registry | None = None,
        record: IO[str] | None = None,
    ) -> None:
        """ProfileError or ExtenderSettingsError if profiles or extenders cannot be made as configured."""
        configuration, options = completed.configuration, completed.options
        self._only_watches = options.shadow
        self._listens_late = configuration.delay_cache_until_active and completed.elects
        self._stopping = asyncio.Event()
        self.events = EventRecorder(
            YieldingSink(connections.events, lambda: self.scheduler.writes.under_way),
            configuration.profiles[0].scheduler_name,
            observer=WorkQueueMetrics(registry, "events"),
        )
        waiter = ObjectWaiter()
        client: ClusterClient = LiveClient(
            connections.scheduler,
            self.events,
            waiter,
            observer=ClientMetrics(registry, time.perf_counter),
            on_contradiction=lambda pod: self.comparer.expect_change(pod),
        )
        listeners: list[SchedulerListener] = [waiter]
        if record is not None:
            recording = Recording(
                record,
                configuration,
                time.monotonic,
                with_annotations=options.record_annotations,
                spares_vain_attempts=True,
                on_broken=told_and_counted(registry),
            )
            client = RecordingClient(client, recording)
            listeners.append(recording)
        originals = originals_for(configuration)
        self._extenders = extenders_of(configuration, originals)
        self.scheduler = Scheduler(
            configuration,
            client,
            clock=time.monotonic,
            draw=random.randrange,
            plugins=plugins or in_tree(),
            extenders=self._extenders,
            longest_wait=float(options.pod_max_in_unschedulable_pods_duration),
            spares_vain_attempts=True,
            stopwatch=time.perf_counter,
            listeners=listeners,
            budget=Budget(time.thread_time, turn=TURN, limit=float(options.decision_budget) or math.inf),
        )
        Census(registry, self.scheduler)
        self.scheduler.listeners.append(
            SchedulerMetrics(registry, self.scheduler.profiles, clock=time.perf_counter, draw=random.random),
            SchedulingLog(self.scheduler.engine.knows),
        )
        self.loop = SchedulingLoop(self.scheduler)
        self.shadow: Shadow | None = None
        if options.shadow:
            self.shadow = shadow_of(self.scheduler, clock=time.time, on_comparison=log_and_count(registry))
            self.scheduler.listeners.append(self.shadow)
        self.handling = ObjectHandling(
            self.scheduler.handle,
            registry,
            self.events,
            may_record=lambda: not self._only_watches and connections.scheduler.may_write(),
        )
        self.informers = Informers(
            connections.scheduler,
            self.handling,
            kinds=self.scheduler.kinds,
            custom=self.scheduler.custom_resources,
            originals=originals,
            on_unreadable=self.handling.unreadable,
        )
        self.comparer = CacheComparer(self.scheduler, self.informers, registry, self.handling)
        lost = registry.family("kubesched_lost_events_total")
        registry.on_scrape(lambda: lost.child("dropped").set(self.events.dropped))
        registry.on_scrape(lambda: lost.child("failed").set(self.events.failed))

    def stop(self) -> None:
        """End `act`, once what is under way is finished."""
        self._stopping.set()

    async def listen(self) -> None:
        """Follow the cluster, write events, and compare the cache with the API server. For ever."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.events.run(), name="events")
            tasks.create_task(self.comparer.run(), name="cache comparer")
            if not self._listens_late:
                tasks.create_task(self.informers.run(), name="informers")

    async def act(self) -> None:
        """It is our turn: schedule, or in shadow mode look on, until `stop`. `listen` must be running."""
        try:
            if self._only_watches:
                await self._watch()
            elif self._listens_late:
                async with running(self.informers.run()):
                    await self._schedule()
            else:
                await self._schedule()
        finally:
            if self.shadow is not None:
                await self.shadow.stop()
            await close_all(self._extenders)

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


def told_and_counted(registry: MetricsRegistry) -> Callable[[Exception], None]:
    """What to do about a recording that has ended because it could not be written."""
    errors = registry.family("kubesched_recording_errors_total")
    errors.child().inc(0)

    def tell(error: Exception) -> None:
        errors.child().inc()
        log.error("The recording ends here, because it could not be written; scheduling goes on", err=error)

    return tell


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
