"""What is counted only when somebody asks: pods that wait, what is believed, who rejected whom."""

from __future__ import annotations

from collections import Counter

from kubesched.daemon.metrics.registry import MetricsRegistry
from kubesched.scheduler.scheduler import Scheduler

_POPPED = "PodPopped"


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
        self._count_believed()

    def _count_pending(self) -> None:
        gated, rejections = 0, Counter[tuple[str, str]]()
        for name, places in self._scheduler.queue.places().items():
            self._pending.child(name).set(sum(len(place) for place in places))
            for queued in (pod for place in places for pod in place):
                gated += queued.is_gated
                profile = queued.pod.spec.scheduler_name
                rejections.update((plugin, profile) for plugin in queued.rejectors)
        unschedulable = sum(len(place) for place in self._scheduler.queue.places()["unschedulable"])
        self._pending.child("unschedulable").set(unschedulable - gated)
        self._pending.child("gated").set(gated)
        self._rejected.clear()
        for (plugin, profile), pods in rejections.items():
            self._rejected.child(plugin, profile).set(pods)

    def _count_in_flight(self) -> None:
        labels = self._scheduler.queue.in_flight_events()
        self._in_flight.clear()
        for event, count in Counter(_POPPED if label.startswith("pod:") else label for label in labels).items():
            self._in_flight.child(event).set(count)

    def _count_believed(self) -> None:
        state = self._scheduler.state
        placed = [pod for row in state.pods.on_row for pod in row]
        self._sizes.child("nodes").set(state.nodes.live_count)
        self._sizes.child("pods").set(len(placed))
        self._sizes.child("assumed_pods").set(sum(pod.assumed for pod in placed))
