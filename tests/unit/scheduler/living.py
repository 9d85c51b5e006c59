"""A scheduler at work on an event loop, in virtual time."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence

from tests import virtual_time
from tests.unit.scheduler.memory_cluster import MemoryCluster

from kubesched import config
from kubesched.api.meta import KubeObject
from kubesched.api.pod import Pod
from kubesched.config.features import DEFAULT_FEATURES
from kubesched.framework.cycle import Cycle
from kubesched.framework.plugin import PermitPlugin, Plugin
from kubesched.framework.registry import Registry
from kubesched.framework.status import Code, Status
from kubesched.plugins.registry import IN_TREE
from kubesched.scheduler.assembly import SchedulerSettings, build_scheduler
from kubesched.scheduler.attempt.attempt import Attempt
from kubesched.scheduler.listener import SchedulerListener
from kubesched.scheduler.loop import SchedulingLoop
from kubesched.testing import NodeBuilder, PodBuilder


class SlowCluster(MemoryCluster):
    """Binding takes ten seconds."""

    async def bind(self, pod: Pod, node_name: str) -> None:
        await asyncio.sleep(10)
        await super().bind(pod, node_name)


class Living(SchedulerListener):
    """A scheduler at work, on a loop."""

    def __init__(
        self,
        cluster: MemoryCluster,
        slice_seconds: float,
        plugins: Sequence[type[Plugin]],
        features: config.Features,
    ) -> None:
        self.cluster = cluster
        self.attempts: list[Attempt] = []
        enabled = {"enabled": [{"name": plugin.name} for plugin in plugins]}
        configuration = config.from_plain(
            {
                "apiVersion": "kubescheduler.config.k8s.io/v1",
                "kind": "KubeSchedulerConfiguration",
                "profiles": [{"plugins": {"multiPoint": enabled}}],
            },
            features=features,
        )
        self.scheduler = build_scheduler(
            SchedulerSettings(clock=virtual_time.now, draw=lambda among: 0),
            configuration,
            cluster,
            Registry((*IN_TREE, *plugins)),
        )
        self.scheduler.listeners.append(self)
        self.loop = SchedulingLoop(self.scheduler, slice_seconds=slice_seconds)

    def finished(self, attempt: Attempt) -> None:
        self.attempts.append(attempt)

    def see(self, *objects: NodeBuilder | PodBuilder | KubeObject) -> None:
        for each in objects:
            self.cluster.put(each if isinstance(each, KubeObject) else each.build())
        self.cluster.tell(self.scheduler)

    @property
    def outcomes(self) -> list[str]:
        return [attempt.outcome or "" for attempt in self.attempts]


class Doorkeeper(PermitPlugin):
    """Lets nobody in before it is told to."""

    name = "Doorkeeper"

    def permit(self, cycle: Cycle, pod: Pod, node_name: str) -> tuple[Status | None, float]:
        return Status(Code.WAIT), 60.0


@contextlib.asynccontextmanager
async def living(
    cluster: MemoryCluster | None = None,
    *,
    slice_seconds: float = 1.0,
    plugins: Sequence[type[Plugin]] = (),
    features: config.Features = DEFAULT_FEATURES,
) -> AsyncIterator[Living]:
    world = Living(cluster or MemoryCluster(), slice_seconds, plugins, features)
    running = asyncio.create_task(world.loop.run())
    try:
        yield world
    finally:
        await world.loop.stop(within=60)
        await running
