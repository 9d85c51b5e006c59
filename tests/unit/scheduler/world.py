"""A scheduler on a cluster in memory, in virtual time, with the words that tests of its reliability need."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from tests.unit.scheduler.memory_cluster import MemoryCluster, Running

from kubesched import config
from kubesched.api.meta import KubeObject
from kubesched.config.features import DEFAULT_FEATURES
from kubesched.framework.client import SchedulerMode
from kubesched.framework.extender import Extender
from kubesched.framework.plugin import Plugin
from kubesched.framework.registry import Registry
from kubesched.plugins.registry import IN_TREE
from kubesched.scheduler.assembly import SchedulerSettings, build_scheduler
from kubesched.scheduler.attempt.attempt import Attempt
from kubesched.scheduler.groups.group_attempt import GroupAttempt
from kubesched.scheduler.queue.queued_pod import QueuedPod
from kubesched.scheduler.queue.scheduling_queue import SchedulingQueue
from kubesched.scheduler.scheduler import Scheduler
from kubesched.testing import NodeBuilder, PodBuilder


class World:
    """Begins with some objects that the watch has told of. Time passes, and the watch tells, only when asked to."""

    cluster_type = MemoryCluster

    def __init__(
        self,
        *objects: PodBuilder | NodeBuilder | KubeObject,
        features: config.Features = DEFAULT_FEATURES,
        plugins: tuple[type[Plugin], ...] = (),
        profiles: tuple[tuple[str, tuple[str, ...]], ...] = (),
        extenders: Sequence[Extender] = (),
        batched: bool = False,
        **settings: Any,
    ) -> None:
        """Plugins are those besides the ones in tree; settings are those of the scheduler.

        Profiles are those besides the default one, each with the plugins that it does without.
        """
        self.now = 0.0
        self.cluster = self.cluster_type()
        self.scheduler = build_scheduler(
            SchedulerSettings(
                clock=lambda: self.now,
                draw=lambda among: 0,
                now=lambda: self.now,
                mode=SchedulerMode.BATCHED if batched else SchedulerMode.PARITY,
                **settings,
            ),
            _configuration(features, plugins, profiles),
            self.cluster,
            Registry((*IN_TREE, *plugins)),
            extenders=extenders,
        )
        self.see(*objects)

    @property
    def queue(self) -> SchedulingQueue:
        return self.scheduler.queue

    def see(self, *objects: PodBuilder | NodeBuilder | KubeObject) -> None:
        for obj in objects:
            self.cluster.put(obj if isinstance(obj, KubeObject) else obj.build())
        self.cluster.tell(self.scheduler)

    def lose(self, obj: PodBuilder | NodeBuilder) -> None:
        self.cluster.remove(obj.build())
        self.cluster.tell(self.scheduler)

    def pass_seconds(self, seconds: float) -> None:
        self.now += seconds
        self.scheduler.flush_backoff()
        self.scheduler.flush_leftovers()

    def decided(self) -> Attempt:
        attempt = pop_pod(self.scheduler)
        assert attempt is not None, "nobody to try"
        self.scheduler.decide(attempt)
        return attempt

    def finish(self, attempt: Attempt, *, tell: bool = True) -> Attempt:
        Running(self.scheduler.finish(attempt)).to_the_end()
        if tell:
            self.cluster.tell(self.scheduler)
        return attempt

    def tried(self) -> Attempt:
        """One attempt from beginning to end, the watch included."""
        return self.finish(self.decided())

    def is_assumed(self, pod: PodBuilder) -> bool:
        placed = self.scheduler.state.placed(pod.build())
        return placed is not None and placed.assumed

    def pods_on(self, node: str) -> int:
        nodes = self.scheduler.state.nodes
        return int(nodes.pod_count[nodes.row_of[node]]) if node in nodes.row_of else 0

    def nothing_is_in_flight(self) -> bool:
        return self.queue.in_flight() == [] and self.queue.in_flight_events() == []


@cache
def _configuration(
    features: config.Features, more: tuple[type[Plugin], ...], profiles: tuple[tuple[str, tuple[str, ...]], ...]
) -> config.SchedulerConfiguration:
    enabled = [{"name": plugin.name} for plugin in more]
    plain = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {"schedulerName": "default-scheduler", "plugins": {"multiPoint": {"enabled": enabled}}},
            *(
                {"schedulerName": name, "plugins": {"multiPoint": {"disabled": [{"name": one} for one in without]}}}
                for name, without in profiles
            ),
        ],
    }
    return config.from_plain(plain, features=features)


def names(queued: list[QueuedPod]) -> list[str]:
    return [one.pod.name for one in queued]


def pop_pod(scheduler: Scheduler) -> Attempt | None:
    """The next pod's turn, where there are no pod groups."""
    attempt = scheduler.pop()
    assert not isinstance(attempt, GroupAttempt)
    return attempt
