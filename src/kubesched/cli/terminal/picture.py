"""What a terminal shows of a sandbox at one moment: nodes with their pods, who waits and why, the last decisions."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

from rich.text import Text

from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.api.well_known import ZONE
from kubesched.cli.sandbox_summary import shares, so_far
from kubesched.sandbox.box import Sandbox
from kubesched.sandbox.chronicle import Entry
from kubesched.scheduler.scheduler import Scheduler

RUNS, STARTS, LEAVES = "■", "□", "▨"
"""A pod as a shape, by where it is in its life."""
DOWN, CORDONED, TAINTED = "down", "cordon", "taint"
"""What is the matter with a node, in words that a narrow screen has room for."""
NO_ZONE = "no zone"
ITS_TURN = "waits for its turn"
ANOTHER_SCHEDULER = "waits for another scheduler: the sandbox's own is off"

_LOST = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_CORDON = "node.kubernetes.io/unschedulable"


class PodShape(NamedTuple):
    """A pod on a node."""

    key: str
    workload: str
    """What it belongs to, so that pods of one kind look alike."""
    shape: str


class NodeShape(NamedTuple):
    """A node with its pods; shares are requested ones, 1.0 being all of the node."""

    name: str
    zone: str
    cpu: float
    memory: float
    mark: str
    """down, cordon, taint, or nothing"""
    pods: tuple[PodShape, ...]

    @property
    def fullness(self) -> float:
        return max(self.cpu, self.memory)


class WaitingGroup(NamedTuple):
    """Pods that wait for the same reason."""

    reason: str
    pods: tuple[str, ...]


@dataclass(frozen=True)
class Picture:
    """All of it. It does not change, so a view that is paused keeps it."""

    at: float
    nodes: tuple[NodeShape, ...]
    """By zone and name."""
    waiting: tuple[WaitingGroup, ...]
    """The most frequent reason first."""
    places: Counter[str]
    """How many wait where in the queue: active, backoff, unschedulable, gated."""
    decisions: tuple[Entry, ...]
    """The latest first."""
    so_far: Text
    saying: str = ""

    @property
    def pods(self) -> int:
        return sum(len(node.pods) for node in self.nodes)


def picture_of(box: Sandbox, saying: str = "") -> Picture:
    """What there is to see now."""
    waiting, places = _waiting(box)
    return Picture(
        at=box.chronicle.now(),
        nodes=tuple(_nodes(box.scheduler)),
        waiting=waiting,
        places=places,
        decisions=tuple(reversed(box.chronicle.entries)),
        so_far=so_far(box.chronicle),
        saying=saying,
    )


def _nodes(scheduler: Scheduler) -> list[NodeShape]:
    table, pods = scheduler.state.nodes, scheduler.state.pods
    found = []
    for name, row in table.row_of.items():
        if not table.live[row]:
            continue
        node = table.node(row)
        shapes = sorted((_pod(placed.pod) for placed in pods.pods_on(row)), key=lambda pod: (pod.workload, pod.key))
        zone = node.metadata.labels.get(ZONE, NO_ZONE)
        found.append(NodeShape(name, zone, *shares(scheduler, row), _mark(node), tuple(shapes)))
    return sorted(found, key=lambda node: (node.zone, node.name))


def _pod(pod: Pod) -> PodShape:
    owner = pod.metadata.controller
    workload = pod.name if owner is None else owner.name
    if owner is not None and owner.kind == "ReplicaSet":
        workload = workload.removesuffix(f"-{pod.metadata.labels.get('pod-template-hash', '')}")
    shape = LEAVES if pod.is_terminating else RUNS if pod.status.phase == "Running" else STARTS
    return PodShape(pod.key, workload, shape)


def _mark(node: Node) -> str:
    taints = {taint.key for taint in node.spec.taints if taint.effect != "PreferNoSchedule"}
    if not taints.isdisjoint(_LOST):
        return DOWN
    if node.spec.unschedulable:
        return CORDONED
    return TAINTED if taints - {_CORDON} else ""


def _waiting(box: Sandbox) -> tuple[tuple[WaitingGroup, ...], Counter[str]]:
    groups: dict[str, list[str]] = {}
    counts: Counter[str] = Counter()
    otherwise = ITS_TURN if box.schedules else ANOTHER_SCHEDULER
    for name, places in box.scheduler.queue.places().items():
        for queued in (queued for place in places for queued in place):
            counts["gated" if queued.is_gated else name] += 1
            gate = f"held back by {queued.gating_plugin}" if queued.is_gated else ""
            groups.setdefault(gate or box.chronicle.why_waiting(queued.key) or otherwise, []).append(queued.key)
    found = [WaitingGroup(reason, tuple(sorted(pods))) for reason, pods in groups.items()]
    return tuple(sorted(found, key=lambda group: (-len(group.pods), group.reason))), counts
