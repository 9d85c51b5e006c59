"""A scheduler with plugins that are not in tree, on a cluster of one node."""

from __future__ import annotations

from typing import Any

from tests.unit.scheduler.memory_cluster import MemoryCluster, Running
from tests.unit.scheduler.world import pop_pod

from kubesched import config
from kubesched.api.pod import Pod
from kubesched.framework.plugin import Plugin
from kubesched.framework.registry import Registry
from kubesched.plugins.registry import IN_TREE
from kubesched.scheduler.assembly import SchedulerSettings, build_scheduler
from kubesched.scheduler.attempt.attempt import Attempt
from kubesched.testing import make_node


class World:
    """One node, a scheduler with some more plugins, and a clock that stands still."""

    def __init__(
        self,
        *plugins: type[Plugin],
        disabled: tuple[str, ...] = (),
        cluster: MemoryCluster | None = None,
        **points: Any,
    ) -> None:
        self.now = 0.0
        self.cluster = cluster or MemoryCluster()
        multi_point = {
            "enabled": [{"name": plugin.name} for plugin in plugins],
            "disabled": [{"name": name} for name in disabled],
        }
        configuration = config.from_plain(
            {
                "apiVersion": "kubescheduler.config.k8s.io/v1",
                "kind": "KubeSchedulerConfiguration",
                "profiles": [{"plugins": {"multiPoint": multi_point, **points}}],
            }
        )
        self.scheduler = build_scheduler(
            SchedulerSettings(clock=lambda: self.now, draw=lambda among: 0),
            configuration,
            self.cluster,
            Registry((*IN_TREE, *plugins)),
        )
        self.cluster.put(make_node("n1").build())

    def add(self, *pods: Pod) -> None:
        for pod in pods:
            self.cluster.put(pod)
        self.cluster.tell(self.scheduler)

    def attempt(self) -> Attempt:
        """One attempt up to the decision."""
        attempt = pop_pod(self.scheduler)
        assert attempt is not None
        self.scheduler.decide(attempt)
        return attempt

    def finish(self, attempt: Attempt) -> Attempt:
        Running(self.scheduler.finish(attempt)).to_the_end()
        self.cluster.tell(self.scheduler)
        return attempt

    @property
    def message(self) -> str:
        """Why the pod `a` is not scheduled, as its status says."""
        return next(c.message for c in self.cluster.pod("a").status.conditions if c.type == "PodScheduled")
