"""How much of the resources that scoring looks at is in use on each node, and how much the pod would add."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from kubesched.api.pod import Pod
from kubesched.api.quantity import ZERO
from kubesched.api.requests import Quantities, is_scalar, whole
from kubesched.config.args import ResourceSpec
from kubesched.framework.cycle import Cycle
from kubesched.framework.nodes import Nodes, NodeTotals
from kubesched.plugins.dynamic_resources.counting import DeviceCounts
from kubesched.plugins.shared.device_resources import ServedResources, is_served, may_be_served
from kubesched.state.columns import Int64, Rows


class Line(NamedTuple):
    """One resource that counts for a pod: its column, its weight, and how much the pod adds."""

    column: int
    weight: int
    amount: int


class Demand(NamedTuple):
    """What a pod adds to each resource. An extended resource that it does not ask for does not count at all."""

    question: tuple[int, ...]
    is_nothing: bool
    lines: tuple[Line, ...]
    columns: Rows
    weights: Int64
    amounts: Int64
    """Columns, weights and amounts of the lines as arrays, the amounts one below the other."""
    extended: tuple[tuple[int, str], ...]
    """The lines of extended resources, with their names: on nodes that offer none, devices may count instead."""


class Use(NamedTuple):
    """A line per resource that counts, a column per node."""

    used: Int64
    offered: Int64


class Allocation:
    """Some resources. With `defaults`, cpu and memory are counted as scoring counts them."""

    def __init__(
        self, resources: tuple[ResourceSpec, ...], requests: Callable[[Pod], Quantities], *, defaults: bool
    ) -> None:
        self._resources = resources
        self._requests = requests
        self._defaults = defaults

    def demand_of(self, cycle: Cycle) -> Demand:
        """What the pod asks for; worked out once per equivalence class."""
        return cycle.facts.derived(self._demand, cycle)

    def use(self, nodes: Nodes, demand: Demand) -> Use:
        """What is in use without the pod, and what is offered: a line per resource that counts."""
        used = nodes.scoring_requested(demand.columns) if self._defaults else nodes.requested(demand.columns)
        offered = nodes.allocatable(demand.columns)
        for line, name in demand.extended:
            served_by = nodes.state.companion(ServedResources).class_of(name)
            if served_by is not None:
                count = nodes.state.companion(DeviceCounts).of(served_by)
                by_devices = offered[line] == 0
                offered[line] = np.where(by_devices, nodes.take(count.capacity), offered[line])
                used[line] = np.where(by_devices, nodes.take(count.in_use), used[line])
        return Use(used, offered)

    def may_use_devices(self, cycle: Cycle, demand: Demand) -> bool:
        """Whether there is more to `use` than the totals of a node tell."""
        return any(is_served(name, cycle.state) for _, name in demand.extended)

    def used_at(self, totals: NodeTotals) -> list[int]:
        """What is in use on one node without the pod, by resource column."""
        return totals.scoring_requested if self._defaults else totals.requested

    def _demand(self, cycle: Cycle) -> Demand:
        asked = self._requests(cycle.pod)
        amounts = {resource.name: whole(resource.name, asked.get(resource.name, ZERO)) for resource in self._resources}
        counting = [one for one in self._resources if amounts[one.name] or not is_scalar(one.name)]
        lines = tuple(
            Line(cycle.state.nodes.resource_id(resource.name), resource.weight, amounts[resource.name])
            for resource in counting
        )
        return Demand(
            tuple(amounts.values()),
            not any(amounts.values()),
            lines,
            np.array([line.column for line in lines], dtype=np.intp),
            np.array([line.weight for line in lines], dtype=np.int64),
            np.array([line.amount for line in lines], dtype=np.int64)[:, np.newaxis],
            tuple((line, resource.name) for line, resource in enumerate(counting) if may_be_served(resource.name)),
        )
