"""Queue, cache and nominations, for /debug and for SIGUSR2."""

from __future__ import annotations

from typing import Any

from kubesched.scheduler.queue.queued_pod import QueuedPod
from kubesched.scheduler.scheduler import Scheduler


def queue_dump(scheduler: Scheduler) -> dict[str, Any]:
    """Which pods wait where, and why."""
    queue = scheduler.queue
    return {
        "active": [_queued(each) for each in queue.active()],
        "backoff": [_queued(each) for each in (*queue.backoff(), *queue.error_backoff())],
        "unschedulable": [_queued(each) for each in queue.unschedulable()],
        "inFlight": [each.key for each in queue.in_flight()],
        "waitingOnPermit": {waiting.pod.key: waiting.pending_plugins for waiting in scheduler.waiting},
    }


def state_dump(scheduler: Scheduler) -> dict[str, Any]:
    """What the cache has about every node."""
    table, pods = scheduler.state.nodes, scheduler.state.pods
    resources = table.resources
    dump = {}
    for name, row in sorted(table.row_of.items()):
        placed = pods.on_row[row] if row < len(pods.on_row) else []
        dump[name] = {
            "isGhost": not bool(table.live[row]),
            "allocatable": _amounts(resources, table.allocatable[:, row].tolist()),
            "requested": _amounts(resources, table.requested[:, row].tolist()),
            "pods": [each.pod.key for each in placed if not each.assumed],
            "assumedPods": [each.pod.key for each in placed if each.assumed],
        }
    return dump


def nominated_dump(scheduler: Scheduler) -> dict[str, list[str]]:
    """Which pods are nominated to which nodes."""
    nominated = scheduler.state.nominated
    return {name: [pod.key for pod in nominated.on_node(name)] for name in sorted(nominated.nodes)}


def _queued(queued: QueuedPod) -> dict[str, Any]:
    return {
        "pod": queued.key,
        "attempts": queued.attempts,
        "rejectedBy": sorted(queued.rejectors),
        "gatedBy": queued.gating_plugin,
    }


def _amounts(ids: dict[str, int], amounts: list[int]) -> dict[str, int]:
    return {name: amounts[i] for name, i in ids.items() if amounts[i]}
