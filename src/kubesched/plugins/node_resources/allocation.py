"""How much of the resources that scoring looks at would be in use on each node, with and without the pod."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from kubesched.api.pod import Pod
from kubesched.api.quantity import ZERO
from kubesched.api.requests import CPU, MEMORY, Quantities, is_scalar, whole
from kubesched.config.args import ResourceSpec
from kubesched.framework.cycle import Cycle
from kubesched.framework.nodes import Nodes
from kubesched.state.columns import Int64


class Usage(NamedTuple):
    """A line per resource, a column per row. Where `allocatable` is 0 the resource does not count on that row."""

    without_pod: Int64
    with_pod: Int64
    allocatable: Int64


class Allocation:
    """The usage of some resources. With `defaults`, cpu and memory are counted as scoring counts them."""

    def __init__(self, resources: tuple[ResourceSpec, ...], *, defaults: bool) -> None:
        self._names = tuple(resource.name for resource in resources)
        self._scalar = tuple(is_scalar(name) for name in self._names)
        self._defaults = defaults

    def demand_of(self, cycle: Cycle, requests: Callable[[Pod], Quantities]) -> tuple[int, ...]:
        """What the pod asks for of each resource; worked out once per kind of pod."""
        memo = cycle.facts.memo
        if self not in memo:
            asked = requests(cycle.pod)
            memo[self] = tuple(whole(name, asked.get(name, ZERO)) for name in self._names)
        return memo[self]  # type: ignore[no-any-return]

    def on(self, nodes: Nodes, demand: tuple[int, ...]) -> Usage:
        """The usage on every row of a view."""
        columns = [nodes.state.nodes.resource_id(name) for name in self._names]
        allocatable = nodes.allocatable[columns]
        used = nodes.requested[columns]
        if self._defaults:
            for line, name in enumerate(self._names):
                if name in (CPU, MEMORY):
                    used[line] = nodes.scoring_requested[0 if name == CPU else 1]
        for line, amount in enumerate(demand):
            if not amount and self._scalar[line]:
                allocatable[line] = 0  # an extended resource that the pod does not ask for is left out
        return Usage(used, used + np.array(demand, dtype=np.int64)[:, np.newaxis], allocatable)
