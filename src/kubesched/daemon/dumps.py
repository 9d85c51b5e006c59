"""What a scheduler believes and has in its queue, as plain values: for /debug, for the log, for a curious operator."""

from __future__ import annotations

from typing import Any

from kubesched.scheduler.queued_pod import QueuedPod
from kubesched.scheduler.scheduler import Scheduler


def queue_dump(scheduler: Scheduler) -> dict[str, Any]:
    """Every pod that waits, where, and for whom."""
    queue = scheduler.queue
    return {
        "active": [_queued(pod) for pod in queue.active()],
        "backoff": [
            {**_queued(pod), "until": queue.backoff_until(pod)} for pod in (*queue.backoff(), *queue.error_backoff())
        ],
        "unschedulable": [_queued(pod) for pod in queue.unschedulable() if not pod.is_gated],
        "gated": [{**_queued(pod), "gatedBy": pod.gating_plugin} for pod in queue.unschedulable() if pod.is_gated],
        "inFlight": [pod.key for pod in queue.in_flight()],
        "waitingOnPermit": [
            {"pod": waiting.pod.key, "node": waiting.node_name, "plugins": waiting.pending_plugins}
            for waiting in scheduler.waiting
        ],
    }


def state_dump(scheduler: Scheduler) -> dict[str, Any]:
    """Every node with what it has, what is taken, and the pods on it; nodes that are gone but have pods are marked."""
    state = scheduler.state
    table = state.nodes
    nodes = {}
    for name, row in sorted(table.row_of.items()):
        pods = state.pods.pods_on(row)
        nodes[name] = {
            "exists": bool(table.live[row]),
            "allocatable": dict(table.node(row).status.allocatable) if table.live[row] else {},
            "pods": sorted(placed.pod.key for placed in pods if not placed.assumed),
            "assumed": sorted(placed.pod.key for placed in pods if placed.assumed),
            "nominated": sorted(pod.key for pod in state.nominated.on_node(name)),
        }
    return {"nodes": nodes}


def nominated_dump(scheduler: Scheduler) -> dict[str, list[str]]:
    """The pods that were promised a node, by node."""
    nominated = scheduler.state.nominated
    return {name: sorted(pod.key for pod in nominated.on_node(name)) for name in sorted(nominated.nodes)}


def _queued(queued: QueuedPod) -> dict[str, Any]:
    return {
        "pod": queued.key,
        "attempts": queued.attempts,
        "rejectedBy": sorted(queued.rejectors),
    }
