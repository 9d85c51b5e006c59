"""How many matching pods lie in each domain of a topology, counting only the nodes that a constraint counts."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from kubesched.api.tolerations import has_untolerated
from kubesched.framework.budget import Expense
from kubesched.framework.cycle import Cycle
from kubesched.framework.nodes import Nodes
from kubesched.plugins.pod_topology_spread.constraints import SpreadConstraint
from kubesched.plugins.shared.node_requirements import RequiredNodes
from kubesched.state.columns import Bool, Int64, LabelColumn
from kubesched.state.facts import StateKey
from kubesched.state.matching import MatchCounter

_NO_MINIMUM = 2**31 - 1
EXPENSE = Expense("PodTopologySpread", "its topology spread constraints")
_KINDS_KEPT = 256
_KEYS_KEPT = 16
"""What counts for pods with more constraints is worked out anew for each: they are rare, and large."""


class Domains:
    """The domains of one constraint for one pod. Entry -1 of each array is for nodes without the label."""

    __slots__ = ("constraint", "counted", "pods")

    def __init__(self, constraint: SpreadConstraint, counted: CountedNodes, pods: Int64) -> None:
        self.constraint = constraint
        self.counted = counted
        self.pods = pods
        """Matching pods per domain, by the id of the label's value."""

    @classmethod
    def count(cls, cycle: Cycle, constraint: SpreadConstraint, counted: CountedNodes) -> Domains:
        """Count the pods on these nodes now."""
        table = cycle.state.nodes
        column = table.label(constraint.topology_key)
        matching = matching_pods(cycle, constraint) if counted.domains else None
        if matching is None:
            pods = np.zeros(len(column.values) + 1, dtype=np.int64)
        elif counted.rows is None:
            pods = matching.by_value(column, table.size).copy()
        else:
            pods = column.sum_by_value(matching.counts[: table.size] * counted.rows)
        return cls(constraint, counted, pods)

    def fewest(self) -> int:
        """The pods in the domain that has fewest; 0 if there are fewer domains than the constraint wants."""
        present = self.counted.present
        if self.counted.domains < self.constraint.min_domains:
            return 0
        return int(self.pods[present].min()) if self.counted.domains else _NO_MINIMUM

    def counts_row(self, row: int) -> bool:
        """Whether pods on this row count."""
        return self.counted.rows is None or bool(self.counted.rows[row])


class CountedNodes:
    """The nodes that a constraint counts, and the domains of its topology that they lie in."""

    __slots__ = ("domains", "present", "rows")

    def __init__(self, rows: Bool | None, column: LabelColumn, size: int) -> None:
        self.rows = rows
        self.present: Bool = np.zeros(len(column.values) + 1, dtype=np.bool_)
        ids = column.ids[:size]
        self.present[ids if rows is None else ids[rows]] = True
        self.present[-1] = False
        self.domains = int(np.count_nonzero(self.present))


class EligibleNodes:
    """The nodes with all the labels `keys` that the policies of a constraint do not leave out."""

    __slots__ = ("_by_topology", "_rows", "_table", "version")

    def __init__(self, cycle: Cycle, constraint: SpreadConstraint, keys: Iterable[str], *, numeric: bool) -> None:
        table = cycle.state.nodes
        nodes = Nodes(cycle.state)
        rows = table.live[: table.size].copy()
        for key in keys:
            if not table.has_label(key):
                rows[:] = False
                break
            rows &= nodes.label_ids(key) >= 0
        if constraint.honors_affinity and not (required := RequiredNodes.of(cycle)).allow_all and rows.any():
            rows &= required.selects(nodes)
        if constraint.honors_taints:
            rows &= _tolerated(cycle, nodes, numeric)
        self.version = _version(cycle)
        self._table = table
        self._rows: Bool | None = None if rows.all() else rows
        self._by_topology: dict[str, CountedNodes] = {}

    def counted(self, topology_key: str) -> CountedNodes:
        column = self._table.label(topology_key)
        counted = self._by_topology.get(column.key)
        if counted is None:
            counted = self._by_topology[column.key] = CountedNodes(self._rows, column, self._table.size)
        return counted


class CachedNodes(NamedTuple):
    """The nodes that count for one equivalence class, and the version of the cluster for which they hold."""

    version: int
    constraints: tuple[SpreadConstraint, ...]
    keys: tuple[str, ...]
    counted: tuple[tuple[SpreadConstraint, CountedNodes], ...]


class EligibleNodesCache:
    """Finds or makes the eligible nodes. They change only with node objects, and many kinds of pods share them."""

    def __init__(self, *, numeric: bool) -> None:
        self._numeric = numeric
        self._cached: dict[Hashable, EligibleNodes] = {}

    def of_all(
        self,
        cycle: Cycle,
        constraints: tuple[SpreadConstraint, ...],
        keys: tuple[str, ...],
        state_key: StateKey[CachedNodes],
    ) -> Iterable[tuple[SpreadConstraint, CountedNodes]]:
        """The nodes that each of the constraints counts, kept for equivalent pods until a node object changes."""
        if len(constraints) > _KEYS_KEPT:
            return self._of_each(cycle, constraints, keys)
        version = _version(cycle)
        cached = cycle.facts.find(state_key)
        if cached is None or cached.version != version or cached.constraints != constraints or cached.keys != keys:
            cached = CachedNodes(version, constraints, keys, tuple(self._of_each(cycle, constraints, keys)))
            cycle.facts.keep(state_key, cached)
        return cached.counted

    def _of_each(
        self, cycle: Cycle, constraints: Iterable[SpreadConstraint], keys: tuple[str, ...]
    ) -> Iterator[tuple[SpreadConstraint, CountedNodes]]:
        by_policies: dict[tuple[bool, bool], EligibleNodes] = {}
        for constraint in cycle.budget.watched(constraints, EXPENSE):
            policies = constraint.honors_affinity, constraint.honors_taints
            eligible = by_policies.get(policies)
            if eligible is None:
                eligible = by_policies[policies] = self._find(cycle, constraint, keys)
            yield constraint, eligible.counted(constraint.topology_key)

    def _find(self, cycle: Cycle, constraint: SpreadConstraint, keys: tuple[str, ...]) -> EligibleNodes:
        required = RequiredNodes.of(cycle) if constraint.honors_affinity else None
        if len(keys) > _KEYS_KEPT or (required is not None and not required.is_short):
            return EligibleNodes(cycle, constraint, keys, numeric=self._numeric)
        key = (
            cycle.state,
            keys,
            None if required is None or required.allow_all else (required.labels, required.terms),
            cycle.pod.spec.tolerations if constraint.honors_taints else None,
        )
        eligible = self._cached.pop(key, None)
        if eligible is None or eligible.version != _version(cycle):
            if len(self._cached) >= _KINDS_KEPT:
                del self._cached[next(iter(self._cached))]
            eligible = EligibleNodes(cycle, constraint, keys, numeric=self._numeric)
        self._cached[key] = eligible
        return eligible


def matching_pods(cycle: Cycle, constraint: SpreadConstraint) -> MatchCounter | None:
    """The pods that match, terminating ones left out. A selector without conditions counts nothing."""
    if constraint.selector.is_empty or constraint.selector.nothing:
        return None
    namespaces = frozenset((cycle.facts.namespace,))
    return cycle.state.matches.counter(namespaces, constraint.selector, with_terminating=False)


def _version(cycle: Cycle) -> int:
    return cycle.state.nodes.object_changes.position


def _tolerated(cycle: Cycle, nodes: Nodes, numeric: bool) -> Bool:
    tolerations = cycle.pod.spec.tolerations
    lists = cycle.state.nodes.taint_lists.values
    accepted = [not has_untolerated(taints or (), tolerations, numeric=numeric) for taints in lists]
    return np.array([*accepted, True])[nodes.taint_ids]
