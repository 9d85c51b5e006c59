"""What a plugin sees of nodes: some rows of the table, as columns or one node at a time.

A view may be of all rows, of some, or of rows as they would be if pods came or went (`WhatIf`). A plugin cannot tell.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from kubesched.api.node import Node
from kubesched.api.selectors import NodeTerm, Requirement
from kubesched.state.cluster import ClusterState
from kubesched.state.columns import Bool, Int32, Int64, ResourceIds, Rows, is_one_of
from kubesched.state.facts import HostPort
from kubesched.state.pods import PlacedPod

T = TypeVar("T", bound=npt.NDArray[Any])


class Nodes:
    """Some rows of the node table; `rows=None` stands for all of them, also those without a live node."""

    def __init__(self, state: ClusterState, rows: Rows | None = None) -> None:
        self.state = state
        self.rows = rows
        self._table = state.nodes

    def __len__(self) -> int:
        return self._table.size if self.rows is None else len(self.rows)

    # -- columns ------------------------------------------------------------------------------------------------------

    def take(self, column: T) -> T:
        """The part of a column of the table that this view is of."""
        return column[: self._table.size] if self.rows is None else column[self.rows]  # type: ignore[return-value]

    @property
    def row_ids(self) -> Rows:
        return np.arange(self._table.size) if self.rows is None else self.rows

    def allocatable(self, resource: str) -> Int64:
        """What nodes offer of a resource: thousandths of a cpu, bytes, or units."""
        resource_id = self._table.resources.get(resource)
        if resource_id is None:
            offers = self._table.offers_of(resource)
            return np.array([offers.get(self.row(i), 0) for i in range(len(self))], dtype=np.int64)
        column: Int64 = self.allocatable_of(np.array([resource_id]))[0]
        return column

    def requested(self, resource: str) -> Int64:
        """What the pods there have requested of a resource, in the same units."""
        resource_id = self._table.resources.get(resource)
        if resource_id is None:  # the table has no sums of a resource without a column
            return np.array([_requested(self.pods(i), resource) for i in range(len(self))], dtype=np.int64)
        column: Int64 = self.requested_of(np.array([resource_id]))[0]
        return column

    def allocatable_of(self, resources: ResourceIds) -> Int64:
        """What nodes offer of several resources: a column for each, in their order. Not to be changed."""
        return self._resource_columns(self._table.allocatable, resources)

    def requested_of(self, resources: ResourceIds) -> Int64:
        """What the pods there have requested of several resources, in the same shape."""
        return self._resource_columns(self._table.requested, resources)

    def scoring_requested_of(self, resources: ResourceIds) -> Int64:
        """The same as scoring counts it, with defaults of cpu and memory for containers that request none."""
        return self._resource_columns(self._table.scoring_requested, resources)

    def _resource_columns(self, columns: Int64, resources: ResourceIds) -> Int64:
        if self.rows is None:
            if len(resources) == 2 and resources[1] - resources[0] == 1:  # cpu and memory: nothing is copied
                return columns[resources[0] : resources[0] + 2, : self._table.size]
            return columns[resources, : self._table.size]
        return columns[resources[:, np.newaxis], self.rows]

    @property
    def allowed_pods(self) -> Int64:
        return self.take(self._table.allowed_pods)

    @property
    def pod_count(self) -> Int64:
        return self.take(self._table.pod_count)

    @property
    def unschedulable(self) -> Bool:
        return self.take(self._table.unschedulable)

    @property
    def taint_ids(self) -> Int32:
        """Per row the id of its list of taints in `state.nodes.taint_lists`; -1 where there is no node."""
        return self.take(self._table.taint_ids)

    def label_ids(self, key: str) -> Int32:
        """Per row the id of the value of a label in `label_values(key)`; -1 where it is absent."""
        return self.take(self._table.label(key).ids)

    def label_values(self, key: str) -> Sequence[str | None]:
        """The values that nodes have for a label, by id (`label_ids`); None for one that no node has any more."""
        return self._table.label(key).values.values

    def none(self) -> Bool:
        return np.zeros(len(self), dtype=np.bool_)

    # -- questions about labels ---------------------------------------------------------------------------------------

    def meets(self, requirement: Requirement) -> Bool:
        """Per row whether its label meets the requirement."""
        column = self._table.label(requirement.key)
        return column.meets(requirement, self.take(column.ids))

    def named(self, requirement: Requirement) -> Bool:
        """Per row whether its name meets a requirement on the field metadata.name, the only field there is."""
        if requirement.key != "metadata.name":
            return np.full(len(self), requirement.operator == "NotIn", dtype=np.bool_)
        rows = [row for name in requirement.values if (row := self._table.row_of.get(name)) is not None]
        is_listed = is_one_of(self.row_ids, rows)
        return is_listed if requirement.operator == "In" else ~is_listed

    def selected_by_term(self, term: NodeTerm) -> Bool:
        """Per row whether one term of a node selector matches; a term with a fault matches nothing."""
        table = self._table
        if term.fault or any(
            requirement.operator == "In" and not table.has_label(requirement.key) for requirement in term.labels
        ):
            return self.none()
        selected = np.ones(len(self), dtype=np.bool_)
        for requirement in term.labels:
            selected &= self.meets(requirement)
        for requirement in term.fields:
            selected &= self.named(requirement)
        return selected

    def selected_by(self, terms: Sequence[NodeTerm]) -> Bool:
        """Per row whether any of the terms matches."""
        selected = self.none()
        for term in terms:
            selected |= self.selected_by_term(term)
        return selected

    # -- one at a time ------------------------------------------------------------------------------------------------

    def name(self, i: int) -> str:
        """The name of the node on a row, also of one that is gone."""
        return self._table.names[self.row(i)]

    def node(self, i: int) -> Node:
        return self._table.node(self.row(i))

    def row(self, i: int) -> int:
        return i if self.rows is None else int(self.rows[i])

    def pods(self, i: int) -> Sequence[PlacedPod]:
        return self.state.pods.pods_on(self.row(i))

    def view(self, i: int) -> NodeView:
        return NodeView(self, i)

    def only(self, i: int) -> Nodes:
        """A view of one row."""
        return Nodes(self.state, np.array([self.row(i)]))

    def totals_at(self, i: int) -> NodeTotals:
        """The totals of one node as plain numbers, which for one node are faster than arrays."""
        table, row = self._table, self.row(i)
        offered, requested, scoring = table.amounts[:, :, row].tolist()
        return NodeTotals(offered, requested, scoring, table.pod_count.item(row), table.allowed_pods.item(row))

    def ports_in_use(self, protocol: str, port: int) -> Iterator[tuple[int, set[str]]]:
        """The rows where a port is taken, with the addresses it is taken on."""
        taken = self.state.pods.ports.get((protocol, port))
        if not taken:
            return
        if self.rows is None:
            yield from taken.items()
            return
        for i, row in enumerate(self.rows.tolist()):
            if row in taken:
                yield i, taken[row]


class FewNodes(Nodes):
    """A few rows that several plugins look at: those that have just changed, or all that a pod may go to.

    Views of single nodes are kept.
    """

    def __init__(self, state: ClusterState, rows: list[int]) -> None:
        self.state = state
        self._table = state.nodes
        self._row_list = rows
        self._views: dict[int, NodeView] = {}

    @cached_property
    def rows(self) -> Rows | None:  # type: ignore[override]
        return np.array(self._row_list)

    def row(self, i: int) -> int:
        return self._row_list[i]

    def view(self, i: int) -> NodeView:
        view = self._views.get(i)
        if view is None:
            # Not a view of `self`: a reference cycle would keep both until the garbage collector runs.
            view = self._views[i] = NodeView(FewNodes(self.state, self._row_list), i)
        return view


class FeasibleNodes(Nodes):
    """The rows where a mask is set, listed only when `rows` is read."""

    def __init__(self, state: ClusterState, feasible: Bool, count: int) -> None:
        self.state = state
        self.feasible = feasible
        self.rows_are_all = count == len(feasible)
        self._table = state.nodes
        self._count = count

    def __len__(self) -> int:
        return self._count

    @cached_property
    def rows(self) -> Rows | None:  # type: ignore[override]
        return None if self.rows_are_all else np.flatnonzero(self.feasible)


class WhatIf(Nodes):
    """Rows as they would be if some pods came or went. Nothing outside this object changes."""

    def __init__(self, state: ClusterState, rows: Rows) -> None:
        super().__init__(state, rows)
        self._loads = self._table.loads[:, :, rows]
        self._requested: Int64 = self._loads[0]
        self._scoring: Int64 = self._loads[1]
        self._pod_count = self._table.pod_count[rows]
        self._pods: dict[int, list[PlacedPod]] = {}
        self._ports: dict[int, set[HostPort]] = {}

    def requested_of(self, resources: ResourceIds) -> Int64:
        return self._requested[resources]

    def scoring_requested_of(self, resources: ResourceIds) -> Int64:
        return self._scoring[resources]

    @property
    def pod_count(self) -> Int64:
        return self._pod_count

    def totals_at(self, i: int) -> NodeTotals:
        table, row = self._table, self.row(i)
        offered = table.allocatable[:, row].tolist()
        requested, scoring = self._loads[:, :, i].tolist()
        return NodeTotals(offered, requested, scoring, self._pod_count.item(i), table.allowed_pods.item(row))

    def pods(self, i: int) -> list[PlacedPod]:
        if i not in self._pods:
            self._pods[i] = list(super().pods(i))
        return self._pods[i]

    def add(self, i: int, pod: PlacedPod) -> None:
        if pod.facts.ports:
            self._taken(i).update(pod.facts.ports)
        self.pods(i).append(pod)
        self._count(i, pod, 1)

    def remove(self, i: int, pod: PlacedPod) -> None:
        if pod.facts.ports:
            self._taken(i).difference_update(pod.facts.ports)
        self.pods(i).remove(pod)
        self._count(i, pod, -1)

    def count(self, columns: Rows, requested: Int64, scoring: Int64, pods: Int64) -> None:
        """Add to the totals of some rows, for plugins that read nothing else: `pods` stay as they are."""
        self._requested[: len(requested), columns] += requested
        self._scoring[: len(scoring), columns] += scoring
        self._pod_count[columns] += pods

    def ports_in_use(self, protocol: str, port: int) -> Iterator[tuple[int, set[str]]]:
        for i in range(len(self)):
            addresses = {
                claimed.ip for claimed in self._taken(i) if claimed.protocol == protocol and claimed.port == port
            }
            if addresses:
                yield i, addresses

    def _taken(self, i: int) -> set[HostPort]:
        """The ports taken on a row."""
        if i not in self._ports:
            taken, row = self.state.pods.ports, self.row(i)
            claimed = (port for pod in self.pods(i) for port in pod.facts.ports)
            self._ports[i] = {p for p in claimed if p.ip in taken.get((p.protocol, p.port), {}).get(row, ())}
        return self._ports[i]

    def _count(self, i: int, pod: PlacedPod, sign: int) -> None:
        loads = pod.facts.loads
        self._loads[:, : loads.shape[1], i] += sign * loads
        self._pod_count[i] += sign


class NodeTotals(NamedTuple):
    """What one node offers and what its pods request together, by the id of the resource (`NodeTable.resource_id`)."""

    allocatable: list[int]
    requested: list[int]
    scoring_requested: list[int]
    """As scoring counts it, with defaults of cpu and memory for containers that request none."""
    pod_count: int
    allowed_pods: int


class NodeView:
    """One node, for plugins that look at one node at a time."""

    __slots__ = ("_i", "_nodes", "_totals")

    def __init__(self, nodes: Nodes, i: int) -> None:
        self._nodes = nodes
        self._i = i
        self._totals: NodeTotals | None = None

    @property
    def node(self) -> Node:
        """The API object."""
        return self._nodes.node(self._i)

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def labels(self) -> dict[str, str]:
        return self.node.metadata.labels

    @property
    def annotations(self) -> dict[str, str]:
        return self.node.metadata.annotations

    @property
    def pods(self) -> Sequence[PlacedPod]:
        """The pods on the node; `.pod` is the API object."""
        return self._nodes.pods(self._i)

    @property
    def totals(self) -> NodeTotals:
        """What the node offers and what its pods request."""
        if self._totals is None:
            self._totals = self._nodes.totals_at(self._i)
        return self._totals

    def allocatable(self, resource: str) -> int:
        """What the node offers of a resource: thousandths of a cpu, bytes, or units."""
        table = self._nodes.state.nodes
        resource_id = table.resources.get(resource)
        if resource_id is None:
            return table.offers_of(resource).get(self._nodes.row(self._i), 0)
        return self.totals.allocatable[resource_id]

    def requested(self, resource: str) -> int:
        """What the pods on the node have requested of a resource, in the same units."""
        resource_id = self._nodes.state.nodes.resources.get(resource)
        return _requested(self.pods, resource) if resource_id is None else self.totals.requested[resource_id]

    @property
    def alone(self) -> Nodes:
        """A view of this node only."""
        return self._nodes.only(self._i)


def _requested(pods: Sequence[PlacedPod], resource: str) -> int:
    return sum(pod.facts.amount_of(resource) for pod in pods)
