"""NodeResourcesFit: rejects nodes without room for the pod's requests, and scores nodes by how full they are."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

import numpy as np

from kubesched.api.pod import Pod
from kubesched.api.requests import (
    CPU,
    EPHEMERAL_STORAGE,
    MEMORY,
    SCORING_DEFAULTS,
    Quantities,
    is_countable,
    is_extended,
    pod_requests,
    whole,
)
from kubesched.config.args import NodeResourcesFitArgs
from kubesched.config.args_validation import validate_node_resources_fit
from kubesched.framework.cycle import Cycle
from kubesched.framework.events import Interest
from kubesched.framework.nodes import Nodes, NodeView
from kubesched.framework.plugin import (
    FilterPlugin,
    PluginContext,
    PreFilterPlugin,
    PreScorePlugin,
    Scope,
    ScorePlugin,
)
from kubesched.framework.profile import ProfileError
from kubesched.framework.status import Status, unresolvable, unschedulable
from kubesched.plugins.node_resources import hints
from kubesched.plugins.node_resources.allocation import Allocation
from kubesched.plugins.node_resources.strategies import strategy
from kubesched.plugins.shared.device_resources import served_by_devices
from kubesched.plugins.shared.int64 import wrapped
from kubesched.state.columns import Bool, Int32, Int64, Rows
from kubesched.state.facts import StateKey
from kubesched.state.nodes import NodeTable

TOO_MANY_PODS = "Too many pods"

_TABLE_BITS = 16
"""Up to so many faults there is a table of all combinations; who asks for more resources than that can wait."""


@dataclass(frozen=True, eq=False)
class Demand:
    """What a pod needs of a node, in the order in which shortages are reported."""

    names: tuple[str, ...]
    columns: Rows
    amounts: Int64
    lines: tuple[tuple[int, int], ...]
    """Column and amount of each resource."""
    shortages: dict[int, Status | None] = field(default_factory=dict)

    def shortage(self, faults: int) -> Status | None:
        """What to say of a combination of faults, a bit each: too many pods, then the resources, last hopeless."""
        if faults not in self.shortages:
            names = (TOO_MANY_PODS, *(f"Insufficient {name}" for name in self.names))
            reasons = [reason for bit, reason in enumerate(names) if faults >> bit & 1]
            status = unresolvable(*reasons) if faults >> len(names) & 1 else unschedulable(*reasons)
            self.shortages[faults] = status if reasons else None
        return self.shortages[faults]


_REQUEST = StateKey[Demand]("PreFilterNodeResourcesFit")


class NodeResourcesFit(PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin):
    """Room for the pod, and the strategy by which fuller or emptier nodes are better."""

    name = "NodeResourcesFit"
    looks_only_at_facts = True
    filter_scope = Scope.NODE_TOTALS
    score_scope = Scope.NODE_TOTALS

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

    def events_to_register(self) -> tuple[Interest, ...]:
        return hints.interests(device_classes=self._waits_for_classes)

    def pre_filter(self, cycle: Cycle) -> Status | None:
        cycle.write(_REQUEST, cycle.facts.derived(self._demand, cycle))
        return None

    def filter_question(self, cycle: Cycle) -> Hashable:
        return cycle.read(_REQUEST).lines

    def filter(self, cycle: Cycle, nodes: Nodes) -> Int32:
        demand = cycle.read(_REQUEST)
        full = nodes.pod_count >= nodes.allowed_pods
        offered = nodes.allocatable(demand.columns)
        wanted = demand.amounts
        short = wanted > offered - nodes.requested(demand.columns)
        if short.any():
            served = np.array([[name in served_by_devices(cycle)] for name in demand.names])
            short &= ~(served & (offered <= 0))  # DynamicResources looks for devices there
        elif not full.any():
            return np.zeros(len(full), dtype=np.int32)
        hopeless = (short & (wanted > offered)).any(axis=0)
        return self._rejections_for(demand, np.vstack((full, short, hopeless)))

    def filter_node(self, cycle: Cycle, node: NodeView) -> Status | None:
        demand = cycle.read(_REQUEST)
        offered, requested, _, pods, allowed_pods = node.totals
        faults = int(pods >= allowed_pods)
        for line, (column, wanted) in enumerate(demand.lines):
            if wanted > wrapped(offered[column] - requested[column]):
                if offered[column] <= 0 and demand.names[line] in served_by_devices(cycle):
                    continue
                faults |= 2 << line
                if wanted > offered[column]:
                    faults |= 2 << len(demand.lines)
        return demand.shortage(faults) if faults else None

    def score_question(self, cycle: Cycle) -> Hashable:
        return self._allocation.demand_of(cycle).question

    def score(self, cycle: Cycle, nodes: Nodes) -> Int64:
        demand = self._allocation.demand_of(cycle)
        used, offered = self._allocation.use(nodes, demand)
        return self._strategy.columns(used + demand.amounts, offered, demand.weights)

    def score_node(self, cycle: Cycle, node: NodeView) -> int:
        totals = node.totals
        demand = self._allocation.demand_of(cycle)
        if demand.extended and self._allocation.may_use_devices(cycle, demand):
            return int(self.score(cycle, node.alone)[0])
        return self._strategy.node(demand.lines, self._allocation.used_at(totals), totals.allocatable)

    def _demand(self, cycle: Cycle) -> Demand:
        amounts = {
            name: amount
            for name, quantity in pod_requests(cycle.pod, pod_level=self._pod_level).items()
            if is_countable(name) and (amount := whole(name, quantity)) > 0 and not self._is_ignored(name)
        }
        fixed = [name for name in (CPU, MEMORY, EPHEMERAL_STORAGE) if name in amounts]
        names = (*fixed, *sorted(set(amounts) - set(fixed)))
        table: NodeTable = cycle.state.nodes
        return Demand(
            names=names,
            columns=np.array([table.resource_id(name) for name in names], dtype=np.intp),
            amounts=np.array([[amounts[name]] for name in names], dtype=np.int64).reshape(-1, 1),
            lines=tuple((table.resource_id(name), amounts[name]) for name in names),
        )

    def _is_ignored(self, name: str) -> bool:
        if not is_extended(name):
            return False
        return name in self._args.ignored_resources or name.split("/")[0] in self._args.ignored_resource_groups

    def _rejections_for(self, demand: Demand, faults: Bool) -> Int32:
        """The rejection id of each combination of faults: each line of `faults` is a bit of the combination."""
        if len(faults) > _TABLE_BITS:
            distinct, which = np.unique(faults, axis=1, return_inverse=True)
            combinations = [_as_bits(column) for column in distinct.T.tolist()]
            return np.array([self.rejections.id_of(demand.shortage(c)) for c in combinations], dtype=np.int32)[which]
        combined = (1 << np.arange(len(faults))) @ faults
        table = np.zeros(1 << len(faults), dtype=np.int32)
        for combination in np.flatnonzero(np.bincount(combined)).tolist():
            table[combination] = self.rejections.id_of(demand.shortage(combination))
        return np.asarray(table[combined])


def _scoring_requests(pod: Pod) -> Quantities:
    """The scorer of kube-scheduler does not know of pod-level resources, though its filter does."""
    return pod_requests(pod, pod_level=False, defaults=SCORING_DEFAULTS)


def _as_bits(faults: list[bool]) -> int:
    return sum(1 << bit for bit, fault in enumerate(faults) if fault)
