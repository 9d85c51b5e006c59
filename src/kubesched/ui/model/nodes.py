"""One node for the page: what it has and what is left, its pods and devices, who would fit; and room in the cluster."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter

import numpy as np

from kubesched.api.device_claims import ResourceClaim
from kubesched.api.devices import ResourceSlice
from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.api.requests import CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from kubesched.framework.decision_view import DecisionView
from kubesched.plugins.shared.devices.pools import newest
from kubesched.state.columns import Bool, Float, Int64, ResourceIds
from kubesched.state.facts import PodFacts
from kubesched.state.pods import PlacedPod
from kubesched.ui.model.node_map import flags_of
from kubesched.ui.model.observed import ObservedCluster, one_more
from kubesched.ui.model.pending import PendingModel

_SHAPES = 6
_PLENTY = 1_000_000
_UNITS = ((1 << 40, "Ti"), (1 << 30, "Gi"), (1 << 20, "Mi"), (1 << 10, "Ki"))
_FACTS: Callable[[PlacedPod], PodFacts] = attrgetter("facts")
PAGE = 100
_WORKLOADS = 8
_KINDS = 12
_MOST_SLICED = 300


@dataclass(frozen=True, slots=True)
class WorkloadRoom:
    """How many more of a kind of pod there is room for on the nodes that would take one now.

    By resources and the number of pods alone: what copies do to each other (spread, anti-affinity) is not counted.
    """

    workload: str
    example: str
    running: int
    more: int
    at_least: bool
    """Whether there may be room for more: devices are allocated by search, so only one per node is counted."""
    nodes: int
    """Nodes that would take one."""
    requests: dict[str, str]


class HeadroomModel:
    """Counts room on columns."""

    def __init__(self, observed: ObservedCluster) -> None:
        self._observed = observed

    def rooms(self) -> list[WorkloadRoom]:
        """For the workloads with most pods."""
        placed = [each for each in self._observed.state.pods.at if each is not None]
        counts = Counter(map(_FACTS, placed))
        one = {each.facts: each.pod for each in reversed(placed)}
        common: dict[str, PodFacts] = {}
        for facts, _ in counts.most_common():  # a workload that is being rolled out has pods of two kinds
            common.setdefault(workload_of(one[facts]), facts)
            if len(common) == _SHAPES:
                break
        return [self._room(one[facts], facts, counts[facts]) for facts in common.values()]

    def per_row(self, facts: PodFacts) -> Int64:
        """How many more pods with these facts each row has room for."""
        table = self._observed.state.nodes
        size = table.size
        left: Int64 = np.maximum(table.allowed_pods[:size] - table.pod_count[:size], 0)
        for name, wanted, _ in facts.amounts:
            if wanted > 0:
                resource = table.resources.get(name)
                if resource is None:  # no node offers it: devices serve it, or nothing does
                    return np.zeros(size, dtype=np.int64)
                free = table.allocatable[resource, :size] - table.requested[resource, :size]
                left = np.minimum(left, np.maximum(free, 0) // wanted)
        left[left > _PLENTY] = _PLENTY
        return left

    def requests(self, facts: PodFacts) -> dict[str, str]:
        return {name: rounded_amount(name, amount) for name, amount, _ in facts.amounts if amount}

    def _room(self, pod: Pod, facts: PodFacts, running: int) -> WorkloadRoom:
        fits = self._fitting(pod)
        left = self.per_row(facts)
        nodes = 0 if fits is None else int(np.count_nonzero(fits))
        at_least = nodes > 0 and (bool(pod.spec.resource_claims) or not left[fits].all())
        more = nodes if at_least or fits is None else int(left[fits].sum())
        return WorkloadRoom(workload_of(pod), pod.key, running, more, at_least, nodes, self.requests(facts))

    def _fitting(self, pod: Pod) -> Bool | None:
        """The rows that would take one more; None if no row would."""
        decision = self._observed.decide(one_more(pod))
        outcome = decision.trace.filter_outcome if decision is not None else None
        if outcome is None:
            return None
        state = self._observed.state
        return outcome.feasible[: state.nodes.size] & state.nodes.live[: state.nodes.size]


def workload_of(pod: Pod) -> str:
    """What manages the pod, or the pod itself: `shop/web`. The hash in the name of a ReplicaSet says nothing."""
    owner = pod.metadata.controller
    if owner is None:
        return pod.key
    name = owner.name
    hashed = pod.metadata.labels.get("pod-template-hash")
    if hashed and name.endswith(f"-{hashed}"):
        name = name.removesuffix(f"-{hashed}")
    return f"{pod.namespace}/{name}"


def rounded_amount(resource: str, amount: int) -> str:
    """An amount in the units of the node table, with at most one digit after the point."""
    if resource == CPU:
        return f"{amount}m" if amount % 1000 else str(amount // 1000)
    if resource in (MEMORY, EPHEMERAL_STORAGE) or resource.startswith("hugepages-"):
        for size, unit in _UNITS:
            if abs(amount) >= size:
                return f"{amount / size:.1f}".removesuffix(".0") + unit
    return str(amount)


@dataclass(frozen=True, slots=True)
class NodeResource:
    """A resource of a node, in words and as a share."""

    name: str
    allocatable: str
    requested: str
    left: str
    share: float


@dataclass(frozen=True, slots=True)
class PodOnNode:
    """A pod there, and the share of the node that it takes of each resource."""

    pod: str
    priority: int
    shares: dict[str, float]
    assumed: bool
    terminating: bool


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
    """A workload with pods here: how many they are, and for how many more there is room, by resources alone."""

    workload: str
    example: str
    count: int
    more: int


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

    rows: dict[int, list[tuple[str, str]]]
    """Names, and shares of each resource as bytes in base64."""
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
            conditions=tuple((each.type, each.status) for each in node.status.conditions),
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
        found: dict[int, list[tuple[str, str]]] = {}
        for row in (row for row in rows[:_MOST_SLICED] if 0 <= row < table.size and table.live[row]):
            offer = np.maximum(table.allocatable[ids, row], 1)
            found[row] = [(p.pod.key, _bytes(self._requests(p, ids) / offer)) for p in self._state.pods.pods_on(row)]
        return Slices(found, offered)

    # -- parts --------------------------------------------------------------------------------------------------------

    def _resources(self, row: int) -> list[NodeResource]:
        table = self._state.nodes
        found = []
        for name, i in (*table.resources.items(), (PODS, -1)):
            offered = int(table.allowed_pods[row] if i < 0 else table.allocatable[i, row])
            taken = int(table.pod_count[row] if i < 0 else table.requested[i, row])
            if offered or taken:
                share = taken / offered if offered else 1.0
                texts = [rounded_amount(name, amount) for amount in (offered, taken, offered - taken)]
                found.append(NodeResource(name, texts[0], texts[1], texts[2], round(share, 4)))
        return found

    def _pod(self, placed: PlacedPod) -> PodOnNode:
        table = self._state.nodes
        shares = {}
        for name, i in table.resources.items():
            offered = int(table.allocatable[i, placed.row])
            if i < len(placed.facts.requests) and placed.facts.requests[i] and offered:
                shares[name] = round(int(placed.facts.requests[i]) / offered, 4)
        pod = placed.pod
        return PodOnNode(pod.key, pod.priority, shares, placed.assumed, pod.is_terminating)

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
        found = []
        for part in newest(slices):
            driver, pool = part.spec.driver, part.spec.pool.name
            for device in part.spec.devices:
                claims = tuple(holders.get((driver, pool, device.name), ()))
                taints = tuple(f"{taint.key}:{taint.effect}" for taint in device.taints)
                found.append(NodeDevice(driver, pool, device.name, claims, taints))
        return found

    def _room(self, row: int) -> list[MoreOf]:
        """For the workloads that are largest here."""
        seen: dict[str, tuple[PlacedPod, int]] = {}
        for placed in self._state.pods.pods_on(row):
            name = workload_of(placed.pod)
            seen[name] = (placed, seen.get(name, (placed, 0))[1] + 1)
        largest = sorted(seen.items(), key=lambda item: -item[1][1])[:_WORKLOADS]
        return [
            MoreOf(name, placed.pod.key, count, int(self._headroom.per_row(placed.facts)[row]))
            for name, (placed, count) in largest
        ]

    def _waiting(self, row: int) -> list[PendingKind]:
        found = []
        for pod, count in self._pending.models()[:_KINDS]:
            decision = self._observed.decide(pod, explain=True)
            if decision is None:
                continue
            view = DecisionView(decision, self._observed.profiles[decision.profile])
            status = view.rejection(row)
            fits = status is None and view.outcome is not None
            why = "" if fits else status.message if status is not None else decision.message
            found.append(PendingKind(pod.key, count, fits, why))
        return sorted(found, key=lambda kind: (not kind.fits, -kind.count))


def _bytes(shares: Float) -> str:
    return base64.b64encode(np.minimum(np.ceil(shares * 200), 254).astype(np.uint8).tobytes()).decode()
