"""The watchdog over pods that wait: one that would fit now, though no event woke it, is woken, counted and logged.

It should never find a pod. One that it finds shows a missing event, a wrong hint or a wrong memory of failures, and
would otherwise wait for the flush of pods that have waited for long.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from kubesched.api.change import Change
from kubesched.api.meta import KubeObject
from kubesched.daemon.log import Log
from kubesched.daemon.metrics.registry import MetricsRegistry
from kubesched.framework.budget import TurnOverError
from kubesched.framework.errors import PluginError
from kubesched.framework.events import ClusterEvent
from kubesched.framework.plugin import FilterPlugin, PermitPlugin, PreFilterPlugin
from kubesched.scheduler.listener import SchedulerListener
from kubesched.scheduler.queue.queued_pod import QueuedPod
from kubesched.scheduler.scheduler import Scheduler

LOOK_EVERY = 60.0
"""Seconds between two looks."""
MOST_PODS = 20
"""Pods that one look tries; the next look goes on with others."""
SECOND_LOOK_AFTER = 5.0
"""Seconds in which an event that is on its way, such as the end of an attempt that is being undone, has arrived."""
_CHANGES_KEPT = 500
_EVENTS_LOGGED = 20
_FIRST_TURN = 1e-9
"""Seconds, so that a decision that takes long is given up at the end of its turn."""

log = Log(__name__)


class PastChange(NamedTuple):
    """A change that was handled, as far as a report needs it: a change itself would keep its objects alive."""

    at: float
    events: Sequence[ClusterEvent]
    kind: type[KubeObject]
    key: str


class LostWakeups(SchedulerListener):
    """Looks at some of the pods that wait, from time to time."""

    def __init__(self, scheduler: Scheduler, registry: MetricsRegistry, clock: Callable[[], float]) -> None:
        """`clock` is the one of the scheduler."""
        self._scheduler = scheduler
        self._lost = registry.family("kubesched_lost_wakeups_total")
        self._clock = clock
        self._past: deque[PastChange] = deque(maxlen=_CHANGES_KEPT)
        self._looked_at = 0
        scheduler.listeners.append(self)

    def handled(self, change: Change[KubeObject], events: Sequence[ClusterEvent], seconds: float) -> None:
        if events:
            obj = change.obj
            self._past.append(PastChange(self._clock(), events, type(obj), obj.key))

    async def look(self) -> None:
        """Pods that fit, and still wait for an event a few seconds later and fit, are woken."""
        suspects = [(queued, queued.attempts) for queued in self._sample() if await self._fits(queued)]
        if not suspects:
            return
        await asyncio.sleep(SECOND_LOOK_AFTER)
        waiting = set(map(id, self._scheduler.queue.unschedulable()))
        for queued, attempts in suspects:
            if id(queued) in waiting and queued.attempts == attempts and await self._fits(queued):
                self._wake(queued)

    def _sample(self) -> list[QueuedPod]:
        waiting = [queued for queued in self._scheduler.queue.unschedulable() if self._waits_for_a_node(queued)]
        start = self._looked_at % max(1, len(waiting))
        self._looked_at = start + MOST_PODS
        return (waiting[start:] + waiting[:start])[:MOST_PODS]

    def _waits_for_a_node(self, queued: QueuedPod) -> bool:
        """Whether the pod waits neither for a gate, a Permit plugin, the other pods of its group, nor an extender."""
        profile = self._scheduler.profiles.get(queued.scheduler_name)
        if profile is None or queued.is_gated or queued.pending_plugins or queued.pod.spec.scheduling_group is not None:
            return False
        plugins = [profile.plugins.get(name) for name in queued.rejectors]
        rejects_nodes = all(isinstance(plugin, FilterPlugin | PreFilterPlugin) for plugin in plugins)
        return rejects_nodes and not any(isinstance(plugin, PermitPlugin) for plugin in plugins)

    async def _fits(self, queued: QueuedPod) -> bool:
        """Whether a node fits. Other work on the event loop has its turn before."""
        await asyncio.sleep(0)
        engine, pod = self._scheduler.engine, queued.pod
        if engine.answers_for(pod) is not None:
            return False
        try:
            return bool(engine.decide(pod, spent=_FIRST_TURN, run_post_filter=False).node)
        except (TurnOverError, PluginError):
            return False

    def _wake(self, queued: QueuedPod) -> None:
        plugins = sorted(queued.rejectors)
        for plugin in plugins:
            self._lost.child(plugin).inc()
        events = [
            f"{event.label} {past.kind.__name__} {past.key}"
            for past in self._past
            if past.at >= queued.timestamp
            for event in past.events
        ]
        log.error("A pod waited though it fits, and no event had woken it: please report this",
                  pod=queued.key, rejectedBy=plugins, attempts=queued.attempts,
                  waitedSeconds=round(self._clock() - queued.timestamp), events=events[-_EVENTS_LOGGED:],
                  eventsInAll=len(events))  # fmt: skip
        self._scheduler.activate(queued.pod)
