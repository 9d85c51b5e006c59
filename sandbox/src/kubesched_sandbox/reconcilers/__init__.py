"""The controllers of the sandbox: reconcilers of workloads, volumes, devices, nodes and garbage.

Each is a plain object that observes events and reconciles when called with the time; live, one task drives them all.
Which objects they create is decided by pure functions in `kubesched.controllers`, which simulations call as well.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from kubesched.api.kinds import (
    CONTROLLER_REVISIONS,
    JOBS,
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    Object,
    Resource,
)
from kubesched_sandbox.api import Api, ApiEvent
from kubesched_sandbox.reconcilers.autoscalers import Autoscalers
from kubesched_sandbox.reconcilers.budgets import DisruptionBudgets, ResourceQuotas
from kubesched_sandbox.reconcilers.daemon_sets import DaemonSets
from kubesched_sandbox.reconcilers.deployments import Deployments
from kubesched_sandbox.reconcilers.endpoints import EndpointSlices
from kubesched_sandbox.reconcilers.events import EventExpiry
from kubesched_sandbox.reconcilers.garbage import GarbageCollector, PodGarbage, PodGroupProtection
from kubesched_sandbox.reconcilers.jobs import CronJobs, Jobs
from kubesched_sandbox.reconcilers.namespaces import RootAuthorities, TerminatingNamespaces
from kubesched_sandbox.reconcilers.node_lifecycle import GRACE, NodeLifecycle, TaintEviction
from kubesched_sandbox.reconcilers.ownership import Grouped, Owned
from kubesched_sandbox.reconcilers.reconciler import KeyedReconciler, Reconciler
from kubesched_sandbox.reconcilers.replica_sets import ReplicaSets, StatefulSets
from kubesched_sandbox.reconcilers.resource_claims import ResourceClaims
from kubesched_sandbox.reconcilers.volumes import EphemeralVolumes, PersistentVolumes

__all__ = ["Dispatch", "KeyedReconciler", "Reconciler", "Runner", "standard_reconcilers"]


def standard_reconcilers(
    api: Api, *, node_grace: float = GRACE, job_groups: bool = False, authority: str = ""
) -> list[Reconciler]:
    """All controllers of a cluster, for a Runner to drive. `node_grace`: seconds until a silent node is lost.

    With `job_groups`, Jobs make pod groups where their pods run all or not at all. `authority` is the certificate (PEM)
    that namespaces publish.
    """
    pods, replica_sets, revisions = Owned(api, PODS), Owned(api, REPLICA_SETS), Owned(api, CONTROLLER_REVISIONS)
    pods_by_node = Grouped(api, PODS, _node_of)
    return [
        Deployments(api, pods, replica_sets),
        ReplicaSets(api, pods),
        ReplicaSets(api, pods, REPLICATION_CONTROLLERS),
        StatefulSets(api, pods, revisions),
        DaemonSets(api, pods, revisions),
        Jobs(api, pods, makes_groups=job_groups),
        CronJobs(api, Owned(api, JOBS)),
        Autoscalers(api),
        DisruptionBudgets(api),
        EndpointSlices(api),
        EphemeralVolumes(api),
        PersistentVolumes(api),
        ResourceClaims(api),
        ResourceQuotas(api),
        PodGroupProtection(api),
        RootAuthorities(api, authority),
        TerminatingNamespaces(api),
        NodeLifecycle(api, pods_by_node, grace=node_grace),
        TaintEviction(api, pods_by_node),
        GarbageCollector(api),
        PodGarbage(api, pods_by_node),
        EventExpiry(api),
    ]


def _node_of(pod: Object) -> tuple[str, ...]:
    node = pod["spec"].get("nodeName")
    return (node,) if node else ()


# -- the task that drives controllers live, and never holds the loop of the server for long ---------------------------


log = logging.getLogger(__name__)
_IDLE = 60.0
_RETRY = 1.0


class Dispatch:
    """Passes events to the controllers that watch their resource, and keeps when each is due."""

    def __init__(self, api: Api, controllers: Sequence[Reconciler], on_work: Callable[[], None] | None = None) -> None:
        self.controllers = tuple(controllers)
        self.due: list[float | None] = [0.0] * len(self.controllers)
        self._on_work = on_work
        self._watchers: dict[str, list[int]] = {}
        resources: dict[str, Resource] = {}
        for place, controller in enumerate(self.controllers):
            for resource in controller.watches:
                self._watchers.setdefault(resource.path, []).append(place)
                resources[resource.path] = resource
        self.stop = api.subscribe(resources.values(), self._dispatch)

    def _dispatch(self, event: ApiEvent) -> None:
        for place in self._watchers[event.resource.path]:
            try:
                self.controllers[place].observe(event)
            except Exception:
                # A bug in a controller must not fail the write that caused the event.
                log.exception("%s could not take in an event", type(self.controllers[place]).__name__)
            self.due[place] = 0.0
        if self._on_work is not None:
            self._on_work()

    def step(self, place: int, now: float) -> bool:
        """Let one controller do a slice of its work; False if it has none."""
        due = self.due[place]
        if due is None or due > now:
            return False
        self.due[place] = None
        try:
            again = self.controllers[place].reconcile(now)
        except Exception:
            # The others go on; this one is tried again, since whatever is wrong may pass.
            log.exception("%s failed", type(self.controllers[place]).__name__)
            again = now + _RETRY
        current = self.due[place]
        if again is not None and (current is None or again < current):
            self.due[place] = again
        return True

    def next_due(self) -> float | None:
        return min((due for due in self.due if due is not None), default=None)

    def settle(self, now: float, *, slices: int = 100_000) -> None:
        """Call all controllers until none has anything to do at this time (for tests)."""
        for _ in range(slices):
            if (due := self.next_due()) is None or due > now:
                return
            for place in range(len(self.controllers)):
                self.step(place, now)
        raise RuntimeError("the controllers do not come to rest")


class Runner:
    """Runs controllers in the running loop until it is stopped, and yields to the loop between two slices."""

    def __init__(self, api: Api, controllers: Sequence[Reconciler]) -> None:
        self._api = api
        self._controllers = tuple(controllers)
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run(), name="controllers")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def _run(self) -> None:
        woken = asyncio.Event()
        clock = self._api.stamps.time
        dispatch = Dispatch(self._api, self._controllers, woken.set)
        try:
            while True:
                woken.clear()
                for place in range(len(self._controllers)):
                    if dispatch.step(place, clock()):
                        await asyncio.sleep(0)
                due = dispatch.next_due()
                wait = _IDLE if due is None else due - clock()
                if wait > 0:
                    await _wait(woken, min(wait, _IDLE))
        finally:
            dispatch.stop()


async def _wait(event: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        pass
