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
from kubesched.framework.nodes import Nodes, NodeView
from kubesched.state.columns import Int64, Rows
from kubesched.state.nodes import NodeTable


class Demand(NamedTuple):
    """What a pod asks for of each resource."""

    question: tuple[int, ...]
    amounts: Int64
    """The same as a matrix of one column."""
    left_out: tuple[int, ...]
    """Extended resources that the pod does not ask for: they do not count."""


class Allocation:
    """Some resources, a line each. With `defaults`, cpu and memory are counted as scoring counts them."""

    def __init__(self, resources: tuple[ResourceSpec, ...], *, defaults: bool) -> None:
        self._names = tuple(resource.name for resource in resources)
        self._defaults = defaults
        self._table: NodeTable | None = None
        self._columns: Rows = np.zeros(0, dtype=np.intp)
        self._column_list: list[int] = []

    def demand_of(self, cycle: Cycle, requests: Callable[[Pod], Quantities]) -> Demand:
        """What the pod asks for; worked out once per kind of pod."""
        memo = cycle.facts.memo
        known: Demand | None = memo.get(self)
        if known is None:
            asked = requests(cycle.pod)
            amounts = tuple(whole(name, asked.get(name, ZERO)) for name in self._names)
            left_out = tuple(i for i, name in enumerate(self._names) if not amounts[i] and is_scalar(name))
            known = memo[self] = Demand(amounts, np.array(amounts, dtype=np.int64)[:, np.newaxis], left_out)
        return known

    def used(self, nodes: Nodes) -> Int64:
        """What is in use without the pod."""
        columns = self._columns_in(nodes.state.nodes)
        return nodes.scoring_requested(columns) if self._defaults else nodes.requested(columns)

    def offered(self, nodes: Nodes, demand: Demand) -> Int64:
        """What nodes offer; 0 where a resource does not count."""
        offered = nodes.allocatable(self._columns_in(nodes.state.nodes))
        for line in demand.left_out:
            offered[line] = 0
        return offered

    def at(self, node: NodeView, demand: Demand) -> tuple[list[int], list[int]]:
        """`used` and `offered` of a single node."""
        self._columns_in(node.table)
        all_used = node.all_scoring_requested if self._defaults else node.all_requested
        all_offered = node.all_allocatable
        offered = [all_offered[column] for column in self._column_list]
        for line in demand.left_out:
            offered[line] = 0
        return [all_used[column] for column in self._column_list], offered

    def _columns_in(self, table: NodeTable) -> Rows:
        if self._table is not table:
            self._table = table
            self._column_list = [table.resource_id(name) for name in self._names]
            self._columns = np.array(self._column_list, dtype=np.intp)
        return self._columns
