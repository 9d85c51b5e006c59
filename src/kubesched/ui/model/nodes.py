"""One node for the page: what it has and what is left, its pods and devices, who would fit."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from kubesched.api.device_claims import ResourceClaim
from kubesched.api.devices import ResourceSlice
from kubesched.api.node import Node
from kubesched.api.requests import PODS
from kubesched.ask.headroom import has_headroom
from kubesched.framework.decision_view import DecisionView
from kubesched.plugins.shared.devices.pools import newest
from kubesched.state.columns import Float, Int64, ResourceIds
from kubesched.state.pods import PlacedPod
from kubesched.state.taint_rules import TaintedSlices
from kubesched.ui.model.headroom import HeadroomModel
from kubesched.ui.model.node_map import flags_of
from kubesched.ui.model.observed import ObservedCluster
from kubesched.ui.model.owners import WorkloadName, owner_of, phase_of
from kubesched.ui.model.pending import PendingModel
from kubesched.ui.model.usage import rounded_amount

PAGE = 100
_WORKLOADS = 8
_KINDS = 12
_MOST_SLICED = 300


@dataclass(frozen=True, slots=True)
class NodeResource:
    """A resource of a node, in words and as a share."""

    name: str
    allocatable: str
    requested: str
    left: str
    share: float
    used: str | None = None
    """Where it is measured."""
    used_share: float | None = None


@dataclass(frozen=True, slots=True)
class PodOnNode:
    """A pod there, and the share of the node that it takes of each resource."""

    pod: str
    priority: int
    shares: dict[str, float]
    assumed: bool
    terminating: bool
    workload: str
    phase: str


@dataclass(frozen=True, slots=True)
class NodeDevice:
    """A device that this node alone can use, and the claims that hold it."""

    driver: str
    pool: str
    name: str
    claims: tuple[str, ...]
    taints: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PendingKind:
    """A kind of pod that waits: how many do, and whether this node would take one."""

    example: str
    count: int
    fits: bool
    why_not: str


@dataclass(frozen=True, slots=True)
class MoreOf:
    """A workload with pods here: how many they are, and how many more fit here, if all of them come here."""

    workload: WorkloadName
    example: str
    count: int
    more: int
    at_least: bool


@dataclass(frozen=True, slots=True)
class NodePage:
    """Everything about one node."""

    name: str
    flags: int
    labels: dict[str, str]
    taints: tuple[str, ...]
    conditions: tuple[tuple[str, str], ...]
    resources: tuple[NodeResource, ...]
    pod_count: int
    pods: tuple[PodOnNode, ...]
    offset: int
    nominated: tuple[str, ...]
    devices: tuple[NodeDevice, ...]
    room: tuple[MoreOf, ...]
    waiting: tuple[PendingKind, ...]
    """Kinds of pods that wait, and whether this node would take one."""


@dataclass(frozen=True, slots=True)
class Slices:
    """The pods of some nodes as slices: where a node has more than can be seen, the largest."""

    rows: dict[int, list[tuple[str, str, str, str]]]
    """Names, workloads, phases, and shares of each resource as bytes in base64."""
    resources: list[str]


class NodeModel:
    """Looks nodes up."""

    def __init__(self, observed: ObservedCluster, pending: PendingModel, headroom: HeadroomModel) -> None:
        self._observed = observed
        self._state = observed.state
        self._pending = pending
        self._headroom = headroom

    def view(self, name: str, offset: int = 0) -> NodePage | None:
        """None if there is no such node; else with a page of its pods, the largest first."""
        table = self._state.nodes
        row = table.row_of.get(name)
        if row is None or not table.live[row]:
            return None
        node = table.node(row)
        pods = [self._pod(placed) for placed in self._state.pods.pods_on(row)]
        pods.sort(key=lambda pod: (-max(pod.shares.values(), default=0.0), pod.pod))
        return NodePage(
            name=name,
            flags=flags_of(node),
            labels=dict(sorted(node.metadata.labels.items())),
            taints=tuple(f"{t.key}{'=' if t.value else ''}{t.value}:{t.effect}" for t in node.spec.taints),
            conditions=tuple((condition.type, condition.status) for condition in node.status.conditions),
            resources=tuple(self._resources(row)),
            pod_count=len(pods),
            pods=tuple(pods[offset : offset + PAGE]),
            offset=offset,
            nominated=tuple(pod.key for pod in self._state.nominated.on_node(name)),
            devices=tuple(self._devices(node)),
            room=tuple(self._room(row)),
            waiting=tuple(self._waiting(row)),
        )

    def slices(self, rows: list[int]) -> Slices:
        """The pods of some rows, for a map that is zoomed in."""
        table = self._state.nodes
        offered = [name for name, i in table.resources.items() if table.allocatable[i, : table.size].any()]
        ids = np.array([table.resources[name] for name in offered], dtype=np.intp)
        slices: dict[int, list[tuple[str, str, str, str]]] = {}
        for row in (row for row in rows[:_MOST_SLICED] if 0 <= row < table.size and table.live[row]):
            offer = np.maximum(table.allocatable[ids, row], 1)
            slices[row] = [
                (placed.pod.key, *_whose(placed), _bytes(self._requests(placed, ids) / offer))
                for placed in self._state.pods.pods_on(row)
            ]
        return Slices(slices, offered)

    # -- parts --------------------------------------------------------------------------------------------------------

    def _resources(self, row: int) -> list[NodeResource]:
        table, report = self._state.nodes, self._observed.usage()
        usage: Mapping[str, int] = report.nodes.get(table.names[row], {}) if report is not None else {}
        resources = []
        for name, i in (*table.resources.items(), (PODS, -1)):
            offered = int(table.allowed_pods[row] if i < 0 else table.allocatable[i, row])
            taken = int(table.pod_count[row] if i < 0 else table.requested[i, row])
            if offered or taken:
                share = taken / offered if offered else 1.0
                all_of_it, requested, left = (rounded_amount(name, part) for part in (offered, taken, offered - taken))
                used = _used(usage, name, offered)
                resources.append(NodeResource(name, all_of_it, requested, left, round(share, 4), *used))
        return resources

    def _pod(self, placed: PlacedPod) -> PodOnNode:
        table = self._state.nodes
        shares = {}
        for name, i in table.resources.items():
            offered = int(table.allocatable[i, placed.row])
            if i < len(placed.facts.requests) and placed.facts.requests[i] and offered:
                shares[name] = round(int(placed.facts.requests[i]) / offered, 4)
        pod = placed.pod
        return PodOnNode(pod.key, pod.priority, shares, placed.assumed, pod.is_terminating, *_whose(placed))

    def _requests(self, placed: PlacedPod, ids: ResourceIds) -> Int64:
        requests = placed.facts.requests
        padded = np.zeros(self._state.nodes.allocatable.shape[0], dtype=np.int64)
        padded[: len(requests)] = requests
        return padded[ids]

    def _devices(self, node: Node) -> list[NodeDevice]:
        objects = self._state.objects
        slices = [s for s in objects.all(ResourceSlice) if s.spec.node_name == node.name]
        if not slices:
            return []
        holders: dict[tuple[str, str, str], list[str]] = {}
        for claim in objects.all(ResourceClaim):
            allocation = claim.status.allocation
            for held in allocation.devices.results if allocation is not None else ():
                holders.setdefault((held.driver, held.pool, held.device), []).append(claim.key)
        devices = []
        tainted = TaintedSlices(objects, by_rules=self._state.features.device_taint_rules)
        for part in map(tainted.of, newest(slices)):
            driver, pool = part.spec.driver, part.spec.pool.name
            for device in part.spec.devices:
                claims = tuple(holders.get((driver, pool, device.name), ()))
                taints = tuple(f"{taint.key}:{taint.effect}" for taint in device.taints)
                devices.append(NodeDevice(driver, pool, device.name, claims, taints))
        return devices

    def _room(self, row: int) -> list[MoreOf]:
        """For the workloads that are largest here."""
        pods: dict[WorkloadName, list[PlacedPod]] = {}
        for placed in self._state.pods.pods_on(row):
            if has_headroom(placed.pod):
                pods.setdefault(owner_of(placed.pod), []).append(placed)
        node, rooms = self._state.nodes.names[row], []
        for workload, here in sorted(pods.items(), key=lambda item: -len(item[1]))[:_WORKLOADS]:
            room = self._headroom.of(here[-1].pod, here[-1].facts, node)
            rooms.append(MoreOf(workload, here[-1].pod.key, len(here), room.more, not room.is_exact))
        return rooms

    def _waiting(self, row: int) -> list[PendingKind]:
        kinds = []
        for pod, count in self._pending.models()[:_KINDS]:
            decision = self._observed.decide(pod, explain=True)
            if decision is None:
                continue
            view = DecisionView(decision, self._observed.profiles[decision.profile])
            status = view.rejection(row)
            fits = status is None and view.outcome is not None
            why = "" if fits else status.message if status is not None else decision.message
            kinds.append(PendingKind(pod.key, count, fits, why))
        return sorted(kinds, key=lambda kind: (not kind.fits, -kind.count))


def _used(usage: Mapping[str, int], name: str, offered: int) -> tuple[str | None, float | None]:
    if name not in usage:
        return None, None
    return rounded_amount(name, usage[name]), round(usage[name] / max(offered, 1), 4)


def _whose(placed: PlacedPod) -> tuple[str, str]:
    """The workload of a pod, by which it is coloured, and its phase."""
    owner = owner_of(placed.pod)
    return f"{owner.namespace}/{owner.name}", phase_of(placed.pod, placed.pod.spec.node_name)


def _bytes(shares: Float) -> str:
    return base64.b64encode(np.minimum(np.ceil(shares * 200), 254).astype(np.uint8).tobytes()).decode()
