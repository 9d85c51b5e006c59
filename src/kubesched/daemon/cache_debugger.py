"""The cache debugger, as in kube-scheduler: dumps of queue, cache and nominations for /debug and SIGUSR2, and the
comparer, which compares cache and queue with the API server.

kube-scheduler's comparer only logs; this one repairs every difference, through `Scheduler.handle`, so that recordings
have the repairs.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from kubesched.api.change import Change
from kubesched.api.meta import KubeObject
from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.daemon.log import Log
from kubesched.daemon.lost_wakeups import LOOK_EVERY, LostWakeups
from kubesched.daemon.metrics.registry import MetricsRegistry
from kubesched.daemon.object_handling import ObjectHandling
from kubesched.kube.informers import Informers
from kubesched.kube.reflector import Handler
from kubesched.scheduler.queue.queued_pod import QueuedPod
from kubesched.scheduler.scheduler import Scheduler

COMPARE_EVERY = 15 * 60.0
"""Seconds between two comparisons."""
WATCH_LAG = 5.0
"""Seconds within which the watch must show the change of which the answer to a binding told."""

log = Log(__name__)


class CacheComparer:
    """Compares every 15 minutes, and after `compare_soon`."""

    def __init__(
        self,
        scheduler: Scheduler,
        informers: Informers,
        registry: MetricsRegistry,
        handling: ObjectHandling,
        lost_wakeups: LostWakeups | None = None,
    ) -> None:
        """With `lost_wakeups`, pods that wait are looked at every minute."""
        self._scheduler = scheduler
        self._handling = handling
        self._informers = informers
        self._differences = registry.family("kubesched_cache_differences_total")
        self._comparisons = registry.family("kubesched_cache_comparisons_total")
        self._soon = asyncio.Event()
        self._lost_wakeups = lost_wakeups

    async def run(self) -> None:
        """Compare every 15 minutes, and after `compare_soon`, for ever; look at pods that wait every minute."""
        now = asyncio.get_running_loop().time
        due = now() + COMPARE_EVERY
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(due if self._lost_wakeups is None else min(due, now() + LOOK_EVERY)):
                    await self._soon.wait()
            is_due = self._soon.is_set() or now() >= due
            self._soon.clear()
            due = now() + COMPARE_EVERY if is_due else due
            if is_due and self._informers.have_synced:
                await self._compare()
            if self._lost_wakeups is not None and self._informers.have_synced:
                await self._lost_wakeups.look()

    def compare_soon(self) -> None:
        self._soon.set()

    def expect_change(self, pod: Pod) -> None:
        """The API server says that the pod is gone or bound: compare unless the watch shows that within seconds."""
        asyncio.get_running_loop().call_later(WATCH_LAG, self._compare_if_still_pending, pod)

    def _compare_if_still_pending(self, pod: Pod) -> None:
        cached = self._scheduler.pods.get(pod.key)
        if cached is not None and cached.uid == pod.uid and not cached.spec.node_name:
            log.warning("The watch has not shown what the API server said to a binding", pod=pod.key)
            self.compare_soon()

    async def _compare(self) -> None:
        before = self._informers.missed()
        truth = await self._informers.read_anew()
        self._handling.look_again()
        differences = repair(self._scheduler, *truth, self._handling)
        self._comparisons.child().inc()
        for kind, missed in (self._informers.missed() - before).items():
            self._differences.child(kind).inc(missed)
            log.error("The watch had not shown changes, which were read now", kind=kind, changes=missed)
        for difference in differences:
            self._differences.child(difference.kind).inc()
            log.error("The cache differed from the API server, and was repaired", kind=difference.kind,
                      name=difference.name, difference=difference.what)  # fmt: skip
        log.info("Compared the cache with the API server", v=2, differences=len(differences))


class CacheDifference(NamedTuple):
    """An object that differs between cache and API server."""

    kind: str
    name: str
    what: str


def compare(scheduler: Scheduler, nodes: Mapping[str, Node], pods: Mapping[str, Pod]) -> list[CacheDifference]:
    """All differences. Pods that are being bound are ahead of the API server, which is no difference."""
    return [*_compare_nodes(scheduler, nodes), *_compare_pods(scheduler, pods)]


def repair(
    scheduler: Scheduler,
    nodes: Mapping[str, Node],
    pods: Mapping[str, Pod],
    handle: Handler[KubeObject] | None = None,
) -> list[CacheDifference]:
    """Repair all differences, and return them: each is handled as a change, by `handle` or else by the scheduler."""
    handle = handle or scheduler.handle
    differences = compare(scheduler, nodes, pods)
    for kind, name, _ in differences:
        change: Change[KubeObject]
        if kind == "Node":
            change = Change(_cached_node(scheduler, name), nodes.get(name))
        elif name in pods:
            change = Change(scheduler.pods.get(name), pods[name])
        else:
            change = Change(scheduler.pods.get(name) or _find_placed(scheduler, name))
        if change != Change():  # it may be gone since, with another difference
            handle(change)
    return differences


def _compare_nodes(scheduler: Scheduler, nodes: Mapping[str, Node]) -> Iterator[CacheDifference]:
    for name, node in nodes.items():
        cached = _cached_node(scheduler, name)
        if cached is None:
            yield CacheDifference("Node", name, "not known")
        elif cached != node:
            yield CacheDifference("Node", name, "known in another version")
    table = scheduler.state.nodes
    for name, row in table.row_of.items():
        if table.live[row] and name not in nodes:
            yield CacheDifference("Node", name, "known but gone")


def _compare_pods(scheduler: Scheduler, pods: Mapping[str, Pod]) -> Iterator[CacheDifference]:
    for key, pod in pods.items():
        cached = scheduler.pods.get(key)
        if cached is None:
            yield CacheDifference("Pod", key, "not known")
        elif cached.uid != pod.uid:
            yield CacheDifference("Pod", key, "known as another pod of that name")
        elif cached.spec.node_name != pod.spec.node_name:
            yield CacheDifference("Pod", key, f'known on "{cached.spec.node_name}", is on "{pod.spec.node_name}"')
        elif pod.spec.node_name and _node_of(scheduler, pod) != pod.spec.node_name:
            yield CacheDifference("Pod", key, f'not counted on "{pod.spec.node_name}"')
    for key in scheduler.pods:
        if key not in pods:
            yield CacheDifference("Pod", key, "known but gone")
    keys = {*pods, *scheduler.pods}
    # The comparisons above do not see a pod that only the cluster state has.
    for placed in scheduler.state.pods.at:
        if placed is not None and not placed.assumed and placed.pod.key not in keys:
            yield CacheDifference("Pod", placed.pod.key, "counted but gone")


def _cached_node(scheduler: Scheduler, name: str) -> Node | None:
    table = scheduler.state.nodes
    row = table.row_of.get(name)
    return table.node(row) if row is not None and table.live[row] else None


def _find_placed(scheduler: Scheduler, key: str) -> Pod | None:
    placed_pods = (placed.pod for placed in scheduler.state.pods.at if placed is not None)
    return next((pod for pod in placed_pods if pod.key == key), None)


def _node_of(scheduler: Scheduler, pod: Pod) -> str:
    placed = scheduler.state.placed(pod)
    return "" if placed is None else scheduler.state.nodes.names[placed.row]


# -- dumps -------------------------------------------------------------------------------------------------------------


def queue_dump(scheduler: Scheduler) -> dict[str, Any]:
    """The pods in each place of the queue, with the plugins that rejected them."""
    queue = scheduler.queue
    return {
        "active": [_dump_queued(queued) for queued in queue.active()],
        "backoff": [_dump_queued(queued) for queued in (*queue.backoff(), *queue.error_backoff())],
        "unschedulable": [_dump_queued(queued) for queued in queue.unschedulable()],
        "inFlight": [queued.key for queued in queue.in_flight()],
        "waitingOnPermit": {waiting.pod.key: waiting.pending_plugins for waiting in scheduler.waiting},
    }


def state_dump(scheduler: Scheduler) -> dict[str, Any]:
    """The resources and the pods of every node in the cache."""
    table, pods = scheduler.state.nodes, scheduler.state.pods
    resources = table.resources
    dump = {}
    for name, row in sorted(table.row_of.items()):
        placed_pods = pods.on_row[row] if row < len(pods.on_row) else []
        dump[name] = {
            "isGhost": not bool(table.live[row]),
            "allocatable": _amounts(resources, table.allocatable[:, row].tolist()),
            "requested": _amounts(resources, table.requested[:, row].tolist()),
            "pods": [placed.pod.key for placed in placed_pods if not placed.assumed],
            "assumedPods": [placed.pod.key for placed in placed_pods if placed.assumed],
        }
    return dump


def nominated_dump(scheduler: Scheduler) -> dict[str, list[str]]:
    """The pods that are nominated to each node."""
    nominated = scheduler.state.nominated
    return {name: [pod.key for pod in nominated.on_node(name)] for name in sorted(nominated.nodes)}


def _dump_queued(queued: QueuedPod) -> dict[str, Any]:
    return {
        "pod": queued.key,
        "attempts": queued.attempts,
        "rejectedBy": sorted(queued.rejectors),
        "gatedBy": queued.gating_plugin,
    }


def _amounts(ids: dict[str, int], amounts: list[int]) -> dict[str, int]:
    return {name: amounts[i] for name, i in ids.items() if amounts[i]}
