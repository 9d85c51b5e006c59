"""NodeResourcesFit: rejects nodes without room for the pod's requests, and scores nodes by how full they are."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

import numpy as np

from kubesched.api.devices import DeviceClass
from kubesched.api.pod_groups import PodGroup
from kubesched.api.requests import (
    CPU,
    EPHEMERAL_STORAGE,
    MEMORY,
    SCORING_DEFAULTS,
    amount_text,
    is_countable,
    is_extended,
    pod_requests,
    whole,
)
from kubesched.config.args import NodeResourcesFitArgs
from kubesched.config.args_validation import validate_node_resources_fit
from kubesched.framework.cycle import Cycle
from kubesched.framework.diagnosis import FilterOutcome
from kubesched.framework.events import Interest
from kubesched.framework.groups import PlacementScorePlugin, Proposal
from kubesched.framework.nodes import Nodes, NodeView
from kubesched.framework.plugin import (
    Details,
    ExplainPlugin,
    FilterPlugin,
    PluginContext,
    PreFilterPlugin,
    PreScorePlugin,
    ScorePlugin,
    Section,
)
from kubesched.framework.profile import ProfileError
from kubesched.framework.reads import PodFields, Reads, Scope
from kubesched.framework.status import Status, unresolvable, unschedulable
from kubesched.plugins.advice.requests import RequestAdvice
from kubesched.plugins.node_resources import hints, placements
from kubesched.plugins.node_resources.allocation import Allocation
from kubesched.plugins.node_resources.strategies import strategy
from kubesched.plugins.shared.arithmetic import wrapped
from kubesched.plugins.shared.devices.extended_resources import served_by_devices
from kubesched.state.cluster import ClusterState
from kubesched.state.columns import Bool, Int32, Int64, ResourceIds
from kubesched.state.facts import StateKey

TOO_MANY_PODS = "Too many pods"

_TABLE_BITS = 16
"""Up to so many faults there is a table of all combinations; pods that ask for more resources than that are rare."""


@dataclass(frozen=True, eq=False)
class PodRequest:
    """What a pod needs of a node, in the order in which shortages are reported."""

    names: tuple[str, ...]
    wanted: tuple[int, ...]
    """How much of each."""
    offered: tuple[int, ...]
    """Which of the names some node offers; of all others every node has none."""
    missing: tuple[int, ...]
    """The others."""
    resource_ids: ResourceIds
    amounts: Int64
    """Ids and amounts of the resources that are offered."""
    by_id: tuple[tuple[int, int, int], ...]
    """Of each resource that is offered: its place among the names, its id, and the amount."""
    shortages: dict[int, Status | None] = field(default_factory=dict)

    @property
    def hopeless(self) -> int:
        """The fault of nodes that could not take the pod even if they were empty."""
        return 2 << len(self.names)

    def shortage(self, faults: int) -> Status | None:
        """What to say of a combination of faults, a bit each: too many pods, then the resources, last hopeless."""
        if faults not in self.shortages:
            names = (TOO_MANY_PODS, *map(_insufficient, self.names))
            is_set = faults.to_bytes(len(names) // 8 + 1, "little")  # a bit of a large number is slow to find
            reasons = [reason for bit, reason in enumerate(names) if is_set[bit >> 3] >> (bit & 7) & 1]
            status = unresolvable(*reasons) if faults & self.hopeless else unschedulable(*reasons)
            self.shortages[faults] = status if reasons else None
        return self.shortages[faults]


_REQUEST = StateKey[PodRequest]("PreFilterNodeResourcesFit")


class NodeResourcesFit(
    PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin, PlacementScorePlugin, ExplainPlugin, RequestAdvice
):
    """Room for the pod, and the strategy by which fuller or emptier nodes are better."""

    name = "NodeResourcesFit"
    pre_filter_reads = Reads(PodFields.SPEC, Scope.OBJECTS)
    filter_reads = score_reads = Reads(PodFields.SPEC, Scope.NODE_TOTALS)
    explained_as = "shortages"

    def __init__(self, args: NodeResourcesFitArgs | None = None, context: PluginContext | None = None) -> None:
        super().__init__(args, context)
        self._args = args or NodeResourcesFitArgs()
        faults = [str(mistake) for mistake in validate_node_resources_fit("NodeResourcesFit", self._args)]
        if faults:
            raise ProfileError("; ".join(faults))
        self._allocation = Allocation(self._args.scoring_strategy.resources, _scoring_requests, defaults=True)
        self._strategy = strategy(self._args.scoring_strategy)
        self._pod_level = self.context.features.pod_level_resources
        self._waits_for_classes = self.context.features.devices_as_resources
        self._make = self._request
        """One object, by which facts keep the request: a method is a new one each time it is asked for."""

    def events_to_register(self) -> tuple[Interest, ...]:
        return hints.interests(self.context.features.release, device_classes=self._waits_for_classes)

    def score_placement(self, group: PodGroup, proposal: Proposal, state: ClusterState) -> int:
        return placements.fullness(self._args.scoring_strategy.resources, proposal, state)

    def pre_filter(self, cycle: Cycle) -> Status | None:
        cycle.write(_REQUEST, self._request_of(cycle))
        return None

    def capacity(self, cycle: Cycle, nodes: Nodes) -> Int64 | None:
        request = cycle.read(_REQUEST)
        if any(name in served_by_devices(cycle) for name in request.names):
            return None
        room: Int64 = np.maximum(nodes.allowed_pods - nodes.pod_count, 0)
        free = nodes.allocatable_of(request.resource_ids) - nodes.requested_of(request.resource_ids)
        least: Int64 = np.maximum(free // request.amounts, 0).min(axis=0, initial=np.iinfo(np.int64).max)
        return np.minimum(room, least)

    def sign(self, cycle: Cycle) -> Hashable:
        request = self._request_of(cycle)
        return request.names, request.wanted, self._allocation.request_of(cycle).amounts_asked

    def filter(self, cycle: Cycle, nodes: Nodes) -> Int32:
        request = cycle.read(_REQUEST)
        full = nodes.pod_count >= nodes.allowed_pods
        offered = nodes.allocatable_of(request.resource_ids)
        wanted = request.amounts
        short = wanted > offered - nodes.requested_of(request.resource_ids)
        if short.any():
            by_devices = served_by_devices(cycle)
            served = np.array([[request.names[i] in by_devices] for i in request.offered])
            short &= ~(served & (offered <= 0))  # DynamicResources looks for devices there
        elif not request.missing and not full.any():
            return np.zeros(len(full), dtype=np.int32)
        hopeless = (short & (wanted > offered)).any(axis=0)
        return self._rejections_for(request, np.vstack((full, short, hopeless)), self._missing(cycle, request))

    def filter_node(self, cycle: Cycle, node: NodeView) -> Status | None:
        request = cycle.read(_REQUEST)
        offered, requested, _, pods, allowed_pods = node.totals
        faults = int(pods >= allowed_pods)
        if request.missing:
            faults |= self._missing(cycle, request)
        for i, resource_id, wanted in request.by_id:
            if wanted > wrapped(offered[resource_id] - requested[resource_id]):
                if offered[resource_id] <= 0 and request.names[i] in served_by_devices(cycle):
                    continue
                faults |= 2 << i
                if wanted > offered[resource_id]:
                    faults |= request.hopeless
        return request.shortage(faults) if faults else None

    def _missing(self, cycle: Cycle, request: PodRequest) -> int:
        """The faults of every node: what no node offers, unless devices stand for it."""
        if not request.missing:
            return 0
        version = (cycle.state.objects.version(DeviceClass), cycle.state.nodes.resources_version)
        return cycle.shared_facts.derived_at(version, self._find_missing, (cycle, request))

    def _find_missing(self, about: tuple[Cycle, PodRequest]) -> int:
        cycle, request = about
        by_devices = served_by_devices(cycle)
        faults = bytearray(len(request.names) // 8 + 1)
        for i in request.missing:
            if request.names[i] not in by_devices:
                faults[(i + 1) >> 3] |= 1 << ((i + 1) & 7)
        bits = int.from_bytes(faults, "little")
        return bits | request.hopeless if bits else 0

    def score(self, cycle: Cycle, nodes: Nodes) -> Int64:
        request = self._allocation.request_of(cycle)
        used, offered = self._allocation.use(nodes, request)
        return self._strategy.columns(used + request.amounts, offered, request.weights)

    def score_node(self, cycle: Cycle, node: NodeView) -> int:
        totals = node.totals
        request = self._allocation.request_of(cycle)
        if request.extended and self._allocation.may_use_devices(cycle, request):
            return int(self.score(cycle, node.alone)[0])
        return self._strategy.node(request.resources, self._allocation.used_at(totals), totals.allocatable)

    def _request_of(self, cycle: Cycle) -> PodRequest:
        return cycle.shared_facts.derived_at(cycle.state.nodes.resources_version, self._make, cycle)

    def _request(self, cycle: Cycle) -> PodRequest:
        amounts = {
            name: amount
            for name, quantity in pod_requests(cycle.pod, pod_level=self._pod_level).items()
            if is_countable(name) and (amount := whole(name, quantity)) > 0 and not self._is_ignored(name)
        }
        fixed = [name for name in (CPU, MEMORY, EPHEMERAL_STORAGE) if name in amounts]
        names = (*fixed, *sorted(set(amounts) - set(fixed)))
        ids = cycle.state.nodes.resources
        by_id = tuple((i, ids[name], amounts[name]) for i, name in enumerate(names) if name in ids)
        return PodRequest(
            names=names,
            wanted=tuple(amounts[name] for name in names),
            offered=tuple(i for i, _, _ in by_id),
            missing=tuple(i for i, name in enumerate(names) if name not in ids),
            resource_ids=np.array([resource_id for _, resource_id, _ in by_id], dtype=np.intp),
            amounts=np.array([[amount] for _, _, amount in by_id], dtype=np.int64).reshape(-1, 1),
            by_id=by_id,
        )

    def enforces(self, resource: str) -> bool:
        """Whether a node must have room for what the pod requests of a resource."""
        return is_countable(resource) and not self._is_ignored(resource)

    def explain(self, cycle: Cycle, outcome: FilterOutcome, node: str) -> Details:
        """The resources missing on nodes that no other plugin rejects: more room elsewhere would not help the pod."""
        request = cycle.find(_REQUEST)
        if node or request is None:
            return Details()
        nodes = Nodes(cycle.state)
        short_of: dict[str, list[NodeView]] = {name: [] for name in request.names}
        for row in np.flatnonzero(outcome.considered).tolist():
            status = outcome.status_of(row)
            if status is None or status.plugin != self.name or set(outcome.rejections_of(row)) - {status}:
                continue
            for name in request.names:
                if _insufficient(name) in status.reasons:
                    short_of[name].append(nodes.view(row))
        amounts = dict(zip(request.names, request.wanted))
        shortages = (shortage_of(name, amounts[name], views) for name, views in sorted(short_of.items()) if views)
        return details_of(tuple(shortages))

    def _is_ignored(self, name: str) -> bool:
        args = self._args
        is_listed = name in args.ignored_resources or name.split("/")[0] in args.ignored_resource_groups
        return is_listed and is_extended(name)

    def _rejections_for(self, request: PodRequest, faults: Bool, always: int) -> Int32:
        """The rejection id of each combination of faults: each row of `faults` is a bit of the combination.

        `always` are the faults that every node has.
        """
        places = (0, *(1 + i for i in request.offered), 1 + len(request.names))

        def rejection(bits: Iterable[int]) -> int:
            return self.rejections.id_of(request.shortage(sum((1 << places[bit] for bit in bits), 0) | always))

        if len(faults) > _TABLE_BITS:
            packed = np.ascontiguousarray(np.packbits(faults, axis=0).T)
            _, first, inverse = np.unique(
                packed.view(np.dtype((np.void, packed.shape[1])))[:, 0], return_index=True, return_inverse=True
            )
            ids = [rejection(np.flatnonzero(faults[:, column]).tolist()) for column in first.tolist()]
            return np.array(ids, dtype=np.int32)[inverse]
        combined = (1 << np.arange(len(faults))) @ faults
        table = np.zeros(1 << len(faults), dtype=np.int32)
        for combination in np.flatnonzero(np.bincount(combined)).tolist():
            table[combination] = rejection(bit for bit in range(len(faults)) if combination >> bit & 1)
        return np.asarray(table[combined])


def _insufficient(resource: str) -> str:
    return f"Insufficient {resource}"


def _scoring_requests(cycle: Cycle) -> dict[str, int]:
    """The scorer of kube-scheduler does not know of pod-level resources, though its filter does."""
    requests = pod_requests(cycle.pod, pod_level=False, defaults=SCORING_DEFAULTS)
    return {name: whole(name, amount) for name, amount in requests.items()}


@dataclass(frozen=True, slots=True)
class Shortage:
    """A resource of which some nodes have too little left."""

    resource: str
    asked: str
    most_left: str
    """How much is left on the node that has most of it, among those with too little."""
    node: str
    nodes: int
    """How many have too little, and would fit otherwise."""


def details_of(shortages: tuple[Shortage, ...]) -> Details:
    """The shortages, and a table of them."""
    rows = tuple(
        (short.resource, str(short.nodes), short.asked, f"{short.most_left} on {short.node}") for short in shortages
    )
    columns = ("Too little", "Nodes", "Asked for", "Most that is left")
    return Details((Section(columns=columns, rows=rows, right=columns[1:3]),) if rows else (), shortages)


def shortage_of(resource: str, amount: int, nodes: list[NodeView]) -> Shortage:
    """What these nodes have too little of; most is left on a node that offers some."""
    offers = ((node.allocatable(resource), node) for node in nodes)
    _, lack, name = min((not offer, node.requested(resource) - offer, node.name) for offer, node in offers)
    return Shortage(resource, amount_text(resource, amount), amount_text(resource, max(0, -lack)), name, len(nodes))
