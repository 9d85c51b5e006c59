"""Makes a replica: a scheduler with its client, its listeners, its informers and the cache comparer."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable
from typing import IO

from kubesched.daemon.cache_debugger import CacheComparer
from kubesched.daemon.completion import Completed
from kubesched.daemon.live_client import LiveClient, YieldingSink
from kubesched.daemon.log import Log
from kubesched.daemon.metrics.census import Census
from kubesched.daemon.metrics.client import WorkQueueMetrics
from kubesched.daemon.metrics.listener import ClientMetrics, SchedulerMetrics
from kubesched.daemon.metrics.registry import MetricsRegistry
from kubesched.daemon.object_handling import ObjectHandling
from kubesched.daemon.options import Options
from kubesched.daemon.replica import Replica
from kubesched.daemon.scheduling_log import SchedulingLog
from kubesched.daemon.shadow import Shadow, log_and_count, shadow_of
from kubesched.extenders.http_extender import extenders_of
from kubesched.framework.budget import TURN, Budget
from kubesched.framework.client import ClusterClient, SchedulerMode
from kubesched.framework.registry import Registry
from kubesched.kube.authentication import Clients
from kubesched.kube.events import EventRecorder
from kubesched.kube.informers import Informers
from kubesched.kube.originals import originals_for
from kubesched.scheduler.assembly import SchedulerSettings, build_scheduler
from kubesched.scheduler.handle import ObjectWaiter
from kubesched.scheduler.listener import SchedulerListener
from kubesched.scheduler.loop import SchedulingLoop
from kubesched.scheduler.recording.recording import Recording, RecordingClient

log = Log(__name__)


def settings_of(options: Options) -> SchedulerSettings:
    """What flags say about the scheduler itself."""
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
    originals = originals_for(configuration)
    extenders = extenders_of(configuration, originals)
    scheduler = build_scheduler(settings, configuration, client, plugins, extenders=extenders, listeners=listeners)
    sink.attach(lambda: scheduler.writes.under_way)
    Census(registry, scheduler)
    scheduler.listeners.append(
        SchedulerMetrics(registry, scheduler.profiles, clock=time.perf_counter, draw=random.random),
        SchedulingLog(scheduler.engine.knows),
    )
    loop = SchedulingLoop(scheduler)
    shadow: Shadow | None = None
    if options.shadow:
        shadow = shadow_of(scheduler, clock=time.time, on_comparison=log_and_count(registry))
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
    comparer = CacheComparer(scheduler, informers, registry, handling)
    live.attach(comparer.expect_change)
    lost = registry.family("kubesched_lost_events_total")
    registry.on_scrape(lambda: lost.child("dropped").set(events.dropped))
    registry.on_scrape(lambda: lost.child("failed").set(events.failed))
    return Replica(
        scheduler=scheduler,
        loop=loop,
        events=events,
        handling=handling,
        informers=informers,
        comparer=comparer,
        extenders=extenders,
        shadow=shadow,
        listens_late=configuration.delay_cache_until_active and completed.elects,
    )


def log_and_count_recording_error(registry: MetricsRegistry) -> Callable[[Exception], None]:
    """What to do about a recording that has ended because it could not be written."""
    errors = registry.family("kubesched_recording_errors_total")
    errors.child().inc(0)

    def report(error: Exception) -> None:
        errors.child().inc()
        log.error("The recording ends here, because it could not be written; scheduling goes on", err=error)

    return report
