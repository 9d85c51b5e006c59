"""A replica: a scheduler with its client, its listeners, its informers and the cache comparer; and its assembly."""

from __future__ import annotations

import asyncio
import contextlib
import math
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any

from kubesched.daemon.cache_debugger import CacheComparer
from kubesched.daemon.completion import Completed
from kubesched.daemon.live_client import LiveClient, YieldingSink
from kubesched.daemon.log import Log
from kubesched.daemon.lost_wakeups import LostWakeups
from kubesched.daemon.metrics.census import Census
from kubesched.daemon.metrics.client import WorkQueueMetrics
from kubesched.daemon.metrics.listener import ClientMetrics, SchedulerMetrics
from kubesched.daemon.metrics.registry import MetricsRegistry
from kubesched.daemon.object_handling import ObjectHandling
from kubesched.daemon.options import Options
from kubesched.daemon.scheduling_log import SchedulingLog
from kubesched.daemon.shadow import Shadow, ShadowComparison, log_and_count, shadow_of
from kubesched.daemon.shadow_file import ShadowFile
from kubesched.daemon.stalls import Stalls
from kubesched.daemon.tracing import tracing_of
from kubesched.extenders.http_extender import HTTPExtender, close_all, extenders_of
from kubesched.framework.budget import TURN, Budget
from kubesched.framework.client import ClusterClient, SchedulerMode
from kubesched.framework.registry import Registry
from kubesched.kube.authentication import Clients
from kubesched.kube.events import EventRecorder
from kubesched.kube.informers import Informers
from kubesched.kube.originals import originals_for
from kubesched.scheduler import garbage
from kubesched.scheduler.assembly import SchedulerSettings, build_scheduler
from kubesched.scheduler.handle import ObjectWaiter
from kubesched.scheduler.listener import SchedulerListener
from kubesched.scheduler.loop import SchedulingLoop
from kubesched.scheduler.recording import Recording, RecordingClient
from kubesched.scheduler.scheduler import Scheduler

if TYPE_CHECKING:
    from kubesched.daemon.tracing.exporting import Tracing

FINISH_WITHIN = 10.0
"""Seconds that bindings under way are given when the replica stops."""
FLUSH_WITHIN = 3.0

log = Log(__name__)


@dataclass(frozen=True, kw_only=True)
class ClusterWatch:
    """How a replica follows the cluster."""

    informers: Informers
    handling: ObjectHandling
    comparer: CacheComparer
    stands_by: bool
    """Whether it begins while another replica leads, rather than when this one becomes the leader."""


@dataclass(eq=False, kw_only=True)
class Replica:
    """A scheduler and everything that it needs on a live cluster. It has an event loop of its own."""

    scheduler: Scheduler
    loop: SchedulingLoop
    events: EventRecorder
    watch: ClusterWatch
    stalls: Stalls
    shadow: Shadow | None
    """In shadow mode: compares the decisions of this scheduler with the bindings of another."""
    shadow_file: ShadowFile | None
    """Keeps the comparisons."""
    tracing: Tracing | None
    _stopping: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _following: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    def stop(self) -> None:
        """End `act`, once what is under way is finished."""
        self._stopping.set()

    def stand_by(self) -> None:
        """Another replica leads: follow the cluster, to be warm at a change of leader, if the settings want that."""
        if self.watch.stands_by:
            self._following.set()

    async def listen(self) -> None:
        """Write events, compare the cache with the API server, and follow the cluster from `stand_by` or `act` on."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.events.run(), name="events")
            tasks.create_task(self.watch.comparer.run(), name="cache comparer")
            tasks.create_task(self.stalls.run(), name="stalls")
            await self._following.wait()
            tasks.create_task(self.watch.informers.run(), name="informers")

    async def act(self) -> None:
        """Lead: schedule, or in shadow mode look on, until `stop`. `listen` must be running."""
        try:
            await (self._schedule() if self.shadow is None else self._watch())
        finally:
            if self.shadow is not None:
                await self.shadow.stop()
            if self.shadow_file is not None:
                await self.shadow_file.save()
            extenders = self.scheduler.extenders
            await close_all(extender for extender in extenders if isinstance(extender, HTTPExtender))
            if self.tracing is not None:
                await self.tracing.stop()

    async def _schedule(self) -> None:
        """Schedule until `stop`, then finish what is under way.

        Before the first decision everything is read anew, unless nothing has been read so far: the last leader may have
        bound pods that the watch has not shown yet.
        """
        caught_up = self.watch.informers.catch_up()
        self._following.set()
        if not await _done_before(self._stopping, caught_up):
            return
        garbage.freeze()
        garbage.keep_columns(self.scheduler.state.nodes.live_count)
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
        self._following.set()
        if await _done_before(self._stopping, self.watch.informers.wait_synced()):
            log.info("Watching, and binding nothing", pods=len(self.scheduler.pods))
            keeping = contextlib.nullcontext() if self.shadow_file is None else running(self.shadow_file.run())
            async with keeping:
                await self._stopping.wait()


@contextlib.asynccontextmanager
async def running(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """The work runs along with the body, and ends with it. If it breaks, so does the body."""
    try:
        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(work)
            yield
            task.cancel()
    except BaseExceptionGroup as group:
        raise _first(group) from None


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The first error of a group: the others only followed."""
    error = group.exceptions[0]
    return _first(error) if isinstance(error, BaseExceptionGroup) else error


async def _done_before(stopping: asyncio.Event, work: Awaitable[Any]) -> bool:
    """Wait for the work, but no longer than until `stopping`. Whether it was done."""
    doing, stopped = asyncio.ensure_future(work), asyncio.create_task(stopping.wait())
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


def settings_of(options: Options) -> SchedulerSettings:
    """The settings of the scheduler that flags decide."""
    return SchedulerSettings(
        clock=time.monotonic,
        draw=random.randrange,
        longest_wait=float(options.pod_max_in_unschedulable_pods_duration),
        mode=SchedulerMode.BATCHED,
        stopwatch=time.perf_counter,
        budget=Budget(time.thread_time, turn=TURN, limit=float(options.decision_budget) or math.inf),
    )


def build_replica(
    completed: Completed,
    connections: Clients,
    registry: MetricsRegistry,
    plugins: Registry,
    record: IO[str] | None = None,
) -> Replica:
    """On the event loop where it will live. `record` takes a recording.

    ProfileError or ExtenderSettingsError if profiles or extenders cannot be made as configured.
    """
    configuration, options = completed.configuration, completed.options
    settings = settings_of(options)
    sink = YieldingSink(connections.events)
    name = configuration.profiles[0].scheduler_name
    events = EventRecorder(sink, name, observer=WorkQueueMetrics(registry, "events"))
    waiter = ObjectWaiter()
    listeners: list[SchedulerListener] = [waiter]
    live = LiveClient(connections.scheduler, events, waiter, observer=ClientMetrics(registry, time.perf_counter))
    client: ClusterClient = live
    originals = originals_for(configuration)
    extenders = extenders_of(configuration, originals)
    tracing = None
    if completed.tracing is not None:
        tracing = tracing_of(completed.tracing, asked_by="--tracing-config-file")
        client = tracing.trace_calls(live, extenders)
        spans = registry.family("kubesched_lost_spans_total")
        registry.on_scrape(lambda: spans.child("dropped").set(tracing.dropped))
        registry.on_scrape(lambda: spans.child("failed").set(tracing.exporter.failed))
    if record is not None:
        recording = Recording(
            record,
            configuration,
            settings.clock,
            with_annotations=options.record_annotations,
            mode=settings.mode,
            on_broken=log_and_count_recording_error(registry),
        )
        client = RecordingClient(client, recording)
        listeners.append(recording)
    scheduler = build_scheduler(settings, configuration, client, plugins, extenders=extenders, listeners=listeners)
    sink.attach(lambda: scheduler.writes.under_way)
    Census(registry, scheduler)
    stalls = Stalls(registry)
    scheduler.listeners.append(
        SchedulerMetrics(registry, scheduler.profiles, clock=time.perf_counter, draw=random.random),
        *(() if tracing is None else (tracing.listener,)),  # after stopwatches are given, before lines are logged
        SchedulingLog(scheduler.engine.knows),
        stalls,
    )
    loop = SchedulingLoop(scheduler)
    shadow, shadow_file = None, ShadowFile(options.shadow_file) if options.shadow_file else None
    if options.shadow:
        shadow = shadow_of(scheduler, clock=time.time, on_comparison=_shadow_observer(registry, shadow_file))
        scheduler.listeners.append(shadow)
    handling = ObjectHandling(
        scheduler.handle,
        registry,
        events,
        may_record=lambda: not options.shadow and connections.scheduler.may_write(),
    )
    informers = Informers(
        connections.scheduler,
        handling,
        kinds=scheduler.kinds,
        custom=scheduler.custom_resources,
        originals=originals,
        on_unreadable=handling.unreadable,
    )
    lost_wakeups = LostWakeups(scheduler, registry, settings.clock)
    comparer = CacheComparer(scheduler, informers, registry, handling, lost_wakeups)
    live.attach(comparer.expect_change)
    lost = registry.family("kubesched_lost_events_total")
    registry.on_scrape(lambda: lost.child("dropped").set(events.dropped))
    registry.on_scrape(lambda: lost.child("failed").set(events.failed))
    return Replica(
        scheduler=scheduler,
        loop=loop,
        events=events,
        watch=ClusterWatch(
            informers=informers,
            handling=handling,
            comparer=comparer,
            stands_by=not configuration.delay_cache_until_active,
        ),
        stalls=stalls,
        shadow=shadow,
        shadow_file=shadow_file,
        tracing=tracing,
    )


def _shadow_observer(registry: MetricsRegistry, file: ShadowFile | None) -> Callable[[ShadowComparison], None]:
    note = log_and_count(registry)
    if file is None:
        return note

    def note_and_keep(comparison: ShadowComparison) -> None:
        note(comparison)
        file.note(comparison)

    return note_and_keep


def log_and_count_recording_error(registry: MetricsRegistry) -> Callable[[Exception], None]:
    """A callback for a recording that ended because it could not be written."""
    errors = registry.family("kubesched_recording_errors_total")
    errors.child().inc(0)

    def report(error: Exception) -> None:
        errors.child().inc()
        log.error("The recording ends here, because it could not be written; scheduling goes on", err=error)

    return report
