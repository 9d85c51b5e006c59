"""What is counted only on a scrape: pods in the queue, what is in the cache, which plugins rejected which pods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from typing import NamedTuple

from kubesched.daemon.metrics.registry import MetricsRegistry
from kubesched.scheduler.queue.queued_pod import QueuedPod
from kubesched.scheduler.queue.unschedulable_pods import UnschedulablePods
from kubesched.scheduler.scheduler import Scheduler

_POPPED = "PodPopped"


class _Rejected(NamedTuple):
    """Some pods that the same plugins rejected."""

    pods: int
    plugins: Collection[str]
    profile: str
    is_gated: bool


def _rejected(place: Collection[QueuedPod]) -> Iterator[_Rejected]:
    """Who rejected whom in one place of the queue. Pods that are alike are not looked at one by one."""
    if isinstance(place, UnschedulablePods):
        for pending, members in place.classes():
            yield _Rejected(len(members), pending.rejectors, pending.scheduler_name, bool(pending.gating_plugin))
        return
    for queued in place:
        if queued.unschedulable_plugins or queued.pending_plugins:
            yield _Rejected(1, queued.rejectors, queued.pod.spec.scheduler_name, queued.is_gated)


class Census:
    """Counts a scheduler's queue and state before every scrape."""

    def __init__(self, registry: MetricsRegistry, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._pending = registry.family("scheduler_pending_pods")
        self._in_flight = registry.family("scheduler_inflight_events")
        self._sizes = registry.family("scheduler_cache_size")
        self._rejected = registry.family("scheduler_unschedulable_pods")
        registry.on_scrape(self.take)

    def take(self) -> None:
        """Count everything."""
        self._count_pending()
        self._count_in_flight()
        self._count_cached()

    def _count_pending(self) -> None:
        gated, rejections = 0, Counter[tuple[str, str]]()
        for name, places in self._scheduler.queue.places().items():
            self._pending.child(name).set(sum(len(place) for place in places))
            for rejected in (rejected for place in places for rejected in _rejected(place)):
                gated += rejected.pods if rejected.is_gated else 0
                for plugin in rejected.plugins:
                    rejections[plugin, rejected.profile] += rejected.pods
        self._pending.child("unschedulable").inc(-gated)
        self._pending.child("gated").set(gated)
        self._rejected.clear()
        for (plugin, profile), pods in rejections.items():
            self._rejected.child(plugin, profile).set(pods)

    def _count_in_flight(self) -> None:
        labels = self._scheduler.queue.in_flight_events()
        self._in_flight.clear()
        for event, count in Counter(_POPPED if label.startswith("pod:") else label for label in labels).items():
            self._in_flight.child(event).set(count)

    def _count_cached(self) -> None:
        state = self._scheduler.state
        placed = [pod for row in state.pods.on_row for pod in row]
        self._sizes.child("nodes").set(state.nodes.live_count)
        self._sizes.child("pods").set(len(placed))
        self._sizes.child("assumed_pods").set(sum(pod.assumed for pod in placed))
