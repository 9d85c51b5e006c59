"""How much of the resources that scoring looks at is in use on each node, and how much the pod would add."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from kubesched.api.requests import is_scalar
from kubesched.config.args import ResourceSpec
from kubesched.framework.cycle import Cycle
from kubesched.framework.nodes import Nodes, NodeTotals
from kubesched.plugins.shared.devices.counting import DeviceCounts
from kubesched.plugins.shared.devices.extended_resources import ServedResources, is_served, may_be_served
from kubesched.state.columns import Int64, ResourceIds


class ScoredResource(NamedTuple):
    """One resource that counts for a pod: its id, its weight, and how much the pod adds."""

    resource_id: int
    weight: int
    amount: int


class ScoredRequest(NamedTuple):
    """What a pod adds to each resource. An extended resource that it does not ask for does not count at all."""

    amounts_asked: tuple[int, ...]
    is_nothing: bool
    resources: tuple[ScoredResource, ...]
    resource_ids: ResourceIds
    weights: Int64
    amounts: Int64
    """Ids, weights and amounts of the resources as arrays, the amounts one below the other."""
    extended: tuple[tuple[int, str], ...]
    """Which of the resources are extended, with their names: on nodes that offer none, devices may count instead."""


class ResourceUse(NamedTuple):
    """A column for each resource that counts."""

    used: Int64
    offered: Int64


class Allocation:
    """Some resources. With `defaults`, cpu and memory are counted as scoring counts them."""

    def __init__(
        self, resources: tuple[ResourceSpec, ...], requests: Callable[[Cycle], Mapping[str, int]], *, defaults: bool
    ) -> None:
        self._resources = resources
        self._requests = requests
        self._defaults = defaults
        self._make = self._request
        """One object, by which facts keep the request: a method is a new one each time it is asked for."""

    def request_of(self, cycle: Cycle) -> ScoredRequest:
        """What the pod asks for; worked out once per equivalence class."""
        return cycle.shared_facts.derived_at(cycle.state.nodes.resources_version, self._make, cycle)

    def use(self, nodes: Nodes, request: ScoredRequest) -> ResourceUse:
        """The resources in use without the pod, and those offered."""
        ids = request.resource_ids
        used = nodes.scoring_requested_of(ids) if self._defaults else nodes.requested_of(ids)
        offered = nodes.allocatable_of(ids)
        for i, name in request.extended:
            served_by = nodes.state.companion(ServedResources).class_of(name)
            if served_by is not None:
                count = nodes.state.companion(DeviceCounts).of(served_by)
                used, offered, by_devices = used.copy(), offered.copy(), offered[i] == 0
                offered[i] = np.where(by_devices, nodes.take(count.capacity), offered[i])
                used[i] = np.where(by_devices, nodes.take(count.in_use), used[i])
        return ResourceUse(used, offered)

    def may_use_devices(self, cycle: Cycle, request: ScoredRequest) -> bool:
        """Whether there is more to `use` than the totals of a node tell."""
        return any(is_served(name, cycle.state) for _, name in request.extended)

    def used_at(self, totals: NodeTotals) -> list[int]:
        """The amounts in use on one node without the pod, by the id of the resource."""
        return totals.scoring_requested if self._defaults else totals.requested

    def _request(self, cycle: Cycle) -> ScoredRequest:
        requests = self._requests(cycle)
        amounts = {resource.name: requests.get(resource.name, 0) for resource in self._resources}
        counting = [scored for scored in self._resources if amounts[scored.name] or not is_scalar(scored.name)]
        resources = tuple(
            ScoredResource(cycle.state.nodes.resource_id(resource.name), resource.weight, amounts[resource.name])
            for resource in counting
        )
        return ScoredRequest(
            tuple(amounts.values()),
            not any(amounts.values()),
            resources,
            np.array([scored.resource_id for scored in resources], dtype=np.intp),
            np.array([scored.weight for scored in resources], dtype=np.int64),
            np.array([scored.amount for scored in resources], dtype=np.int64)[:, np.newaxis],
            tuple((i, resource.name) for i, resource in enumerate(counting) if may_be_served(resource.name)),
        )
