"""One replica: a scheduler, what it hears from the API server, what it writes there, and its watch over itself."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Coroutine
from typing import IO, Any

from kubesched import garbage
from kubesched.api.pod import Pod
from kubesched.daemon.belief import repaired
from kubesched.daemon.beside import beside
from kubesched.daemon.completion import Completed
from kubesched.daemon.informers import Informers
from kubesched.daemon.logging import Log
from kubesched.daemon.metrics.catalogue import Series
from kubesched.daemon.metrics.census import Census
from kubesched.daemon.metrics.client import WorkQueueMetrics
from kubesched.daemon.metrics.observer import SchedulerMetrics
from kubesched.daemon.metrics.registry import MetricsRegistry
from kubesched.daemon.scheduling_log import SchedulingLog
from kubesched.daemon.shadow import Comparison, Shadow
from kubesched.daemon.writer import LiveWriter
from kubesched.extenders.http_extender import close_all, extenders_of
from kubesched.extenders.originals import originals_for
from kubesched.framework.registry import Registry
from kubesched.kube.clients import Clients
from kubesched.kube.events import EventRecorder
from kubesched.scheduler.listener import SchedulerListener
from kubesched.scheduler.loop import SchedulingLoop
from kubesched.scheduler.recording.recording import Recording, RecordingWriter
from kubesched.scheduler.scheduler import Scheduler
from kubesched.scheduler.volume_wait import volume_timeouts
from kubesched.scheduler.writer import ClusterWriter

COMPARE_EVERY = 15 * 60.0
"""Seconds between two comparisons of belief and truth."""
HEARSAY_WITHIN = 5.0
"""Seconds after which the watch must have told what an answer to a binding gave away."""
FINISH_WITHIN = 10.0
"""Seconds that bindings under way are given when the replica is told to stop."""
FLUSH_WITHIN = 3.0

log = Log(__name__)

_DIFFERENCES = Series(
    "kubesched_belief_differences_total",
    "counter",
    ("kind",),
    "ALPHA",
    "Objects about which the scheduler believed something else than the API server said; each was repaired.",
)
_COMPARISONS = Series(
    "kubesched_belief_comparisons_total", "counter", (), "ALPHA", "Comparisons of belief with the API server."
)
_LOST_EVENTS = Series(
    "kubesched_lost_events_total",
    "counter",
    ("why",),
    "ALPHA",
    "Events that were not written: dropped because too many waited, or failed because the API server refused them.",
)
_SHADOWED = Series(
    "kubesched_shadow_decisions_total",
    "counter",
    ("judgement",),
    "ALPHA",
    "Pods that another scheduler bound, by how that compares with the decision made here.",
)


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
        metrics = SchedulerMetrics(registry, clock=time.perf_counter, draw=random.randrange)
        self.events = EventRecorder(
            connections.events,
            configuration.profiles[0].scheduler_name,
            observer=WorkQueueMetrics(registry, "events"),
        )
        live = LiveWriter(
            connections.scheduler, self.events, volume_timeouts=volume_timeouts(configuration), observer=metrics
        )
        writer: ClusterWriter = live
        listeners: list[SchedulerListener] = [metrics]
        if record is not None:
            recording = Recording(record, configuration, time.monotonic)
            writer = RecordingWriter(live, recording)
            listeners.append(recording)
        originals = originals_for(configuration)
        self._extenders = extenders_of(configuration, originals)
        self.scheduler = Scheduler(
            configuration,
            writer,
            clock=time.monotonic,
            draw=random.randrange,
            plugins=plugins,
            extenders=self._extenders,
            longest_wait=float(options.pod_max_in_unschedulable_pods_duration),
            stopwatch=time.perf_counter,
            listeners=listeners,
        )
        live.objects, live.pods = self.scheduler.state.objects, self.scheduler.pods
        live.on_contradiction = self._watch_may_be_deaf
        metrics.count_evaluations_of(self.scheduler)
        Census(registry, self.scheduler)
        self.scheduler.listeners.append(SchedulingLog(self.scheduler.engine.knows))
        self.loop = SchedulingLoop(self.scheduler)
        self.shadow: Shadow | None = None
        if options.shadow:
            self._judgements = registry.add(_SHADOWED)
            self.shadow = Shadow(self.scheduler.engine, clock=time.time, on_comparison=self._note_comparison)
            self.scheduler.listeners.append(self.shadow)
        self.informers = Informers(
            connections.scheduler,
            self.scheduler.handle,
            custom=self.scheduler.custom_resources,
            originals=originals,
        )
        self._differences, self._comparisons = registry.add(_DIFFERENCES), registry.add(_COMPARISONS)
        self._compare_now = asyncio.Event()
        lost = registry.add(_LOST_EVENTS)
        registry.on_scrape(lambda: lost.child("dropped").set(self.events.dropped))
        registry.on_scrape(lambda: lost.child("failed").set(self.events.failed))

    def stop(self) -> None:
        """Whoever acts finishes what is under way, and ends."""
        self._stopping.set()

    async def listen(self) -> None:
        """Follow the cluster, write events, and compare belief with truth. For ever."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.events.run(), name="events")
            tasks.create_task(self._keep_belief_true(), name="belief")
            if not self._listens_late:
                tasks.create_task(self.informers.run(), name="informers")

    async def act(self) -> None:
        """It is our turn: schedule, or in shadow mode look on, until told to stop. `listen` must be running."""
        try:
            if self._only_watches:
                await self._watch()
            elif self._listens_late:
                async with beside(self.informers.run()):
                    await self._schedule()
            else:
                await self._schedule()
        finally:
            if self.shadow is not None:
                await self.shadow.stop()
            await close_all(self._extenders)

    async def _schedule(self) -> None:
        """Schedule until told to stop, then finish what is under way.

        Before the first decision everything is read anew: whoever led before may have bound pods that the watch has
        not shown us yet.
        """
        if not await _done_before(self._stopping, self.informers.catch_up()):
            return
        garbage.spare_what_is_there()
        log.info("Starting to schedule", nodes=self.scheduler.state.nodes.live_count, pods=len(self.scheduler.pods))
        scheduling = asyncio.create_task(self.loop.run(), name="scheduling")
        told = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait((scheduling, told), return_when=asyncio.FIRST_COMPLETED)
            if scheduling.done():
                scheduling.result()  # it does not end by itself: this raises what broke it
            await self.loop.stop(FINISH_WITHIN)
            await scheduling
        finally:
            told.cancel()
            scheduling.cancel()
            # If the lease is lost, somebody else may be binding pods: nothing more may be written.
            await self.loop.stop(within=0)
            await asyncio.wait((scheduling,))

    async def _watch(self) -> None:
        """Shadow mode: only look, until told to stop."""
        if await _done_before(self._stopping, self.informers.wait_synced()):
            log.info("Watching, and binding nothing", pods=len(self.scheduler.pods))
            await self._stopping.wait()

    async def _keep_belief_true(self) -> None:
        """Compare belief and truth from time to time, and whenever asked to. For ever."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(COMPARE_EVERY):
                    await self._compare_now.wait()
            self._compare_now.clear()
            if self.informers.have_synced:
                await self._compare()

    def _watch_may_be_deaf(self, pod: Pod) -> None:
        """The pod is gone or bound, as the API server says, and the watch should tell any moment."""
        asyncio.get_running_loop().call_later(HEARSAY_WITHIN, self._compare_if_still_believed, pod)

    def _compare_if_still_believed(self, pod: Pod) -> None:
        believed = self.scheduler.pods.get(pod.key)
        if believed is not None and believed.uid == pod.uid and not believed.spec.node_name:
            log.warning("The watch has not told what the API server said to a binding", pod=pod.key)
            self.compare_soon()

    def compare_soon(self) -> None:
        self._compare_now.set()

    async def _compare(self) -> None:
        before = self.informers.missed()
        found = repaired(self.scheduler, *await self.informers.read_anew())
        self.loop.wake()
        self._comparisons.child().inc()
        for kind, missed in (self.informers.missed() - before).items():
            self._differences.child(kind).inc(missed)
            log.error("The watch had not told of changes, which were read now", kind=kind, changes=missed)
        for difference in found:
            self._differences.child(difference.kind).inc()
            log.error("Belief differed from the API server, and was repaired", kind=difference.kind,
                      name=difference.name, difference=difference.what)  # fmt: skip
        log.info("Compared belief with the API server", v=2, differences=len(found))

    def _note_comparison(self, comparison: Comparison) -> None:
        self._judgements.child(comparison.judgement).inc()
        theirs, ours, judgement = comparison.theirs, comparison.ours, comparison.judgement
        if comparison.agrees:
            log.info("Shadow agrees", v=3, pod=comparison.pod, theirs=theirs, ours=ours, judgement=judgement)
        else:
            log.info("Shadow differs", pod=comparison.pod, theirs=theirs, ours=ours, judgement=judgement,
                     why=comparison.why)  # fmt: skip


async def _done_before(stopping: asyncio.Event, work: Coroutine[Any, Any, None]) -> bool:
    """Wait for the work, but no longer than until told to stop. Whether it was done."""
    doing, told = asyncio.create_task(work), asyncio.create_task(stopping.wait())
    try:
        await asyncio.wait((doing, told), return_when=asyncio.FIRST_COMPLETED)
        if not doing.done():
            return False
        doing.result()
        return not stopping.is_set()
    finally:
        for task in (doing, told):
            task.cancel()
        await asyncio.wait((doing, told))
