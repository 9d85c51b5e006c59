"""How full the nodes are and where pods wait, as the scheduler sees it: what the live view shows."""

from __future__ import annotations

from typing import NamedTuple

from kubesched.scheduler.scheduler import Scheduler

_CPU, _MEMORY = 0, 1


class NodeUsage(NamedTuple):
    """The requested share of a node, 1.0 being all of it."""

    name: str
    cpu: float
    memory: float
    pods: int
    remarks: tuple[str, ...]


class Waiting(NamedTuple):
    """How many pods are where in the queue."""

    active: int
    backoff: int
    unschedulable: int
    gated: int


def usage(scheduler: Scheduler) -> list[NodeUsage]:
    """All nodes by name."""
    table = scheduler.state.nodes
    found = []
    for name in sorted(name for name, row in table.row_of.items() if table.live[row]):
        row = table.row_of[name]
        node = table.node(row)
        remarks = ["cordoned"] if node.spec.unschedulable else []
        remarks += [taint.key.rpartition("/")[2] for taint in node.spec.taints if taint.effect == "NoExecute"]
        shares = [
            float(table.requested[i, row] / table.allocatable[i, row]) if table.allocatable[i, row] else 0.0
            for i in (_CPU, _MEMORY)
        ]
        found.append(NodeUsage(name, shares[_CPU], shares[_MEMORY], int(table.pod_count[row]), tuple(remarks)))
    return found


def waiting(scheduler: Scheduler) -> Waiting:
    queue = scheduler.queue
    pool = queue.unschedulable()
    gated = sum(1 for queued in pool if queued.gating_plugin)
    backoff = len(queue.backoff()) + len(queue.error_backoff())
    return Waiting(len(queue.active()), backoff, len(pool) - gated, gated)
