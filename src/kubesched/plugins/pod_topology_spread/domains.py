"""How many matching pods lie in each domain of a topology, counting only the nodes that a constraint counts."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from kubesched.api.tolerations import has_untolerated
from kubesched.framework.cycle import Cycle
from kubesched.framework.nodes import Nodes
from kubesched.plugins.pod_topology_spread.constraints import Constraint
from kubesched.plugins.shared.node_requirements import RequiredNodes
from kubesched.state.columns import Bool, Int64
from kubesched.state.matching import MatchCounter

_NO_MINIMUM = 2**31 - 1
_KINDS_KEPT = 256


class Domains:
    """The domains of one constraint for one pod. Entry -1 of each array is for nodes without the label."""

    __slots__ = ("constraint", "counted", "pods")

    def __init__(self, constraint: Constraint, counted: CountedNodes, pods: Int64) -> None:
        self.constraint = constraint
        self.counted = counted
        self.pods = pods
        """Matching pods per domain, by the id of the label's value."""

    @classmethod
    def count(cls, cycle: Cycle, constraint: Constraint, counted: CountedNodes) -> Domains:
        """Count the pods on these nodes now."""
        table = cycle.state.nodes
        column = table.label(constraint.topology_key)
        matching = matching_pods(cycle, constraint)
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
    """The nodes that a constraint counts: those with all the labels `keys` that its policies do not leave out."""

    __slots__ = ("domains", "present", "rows", "version")

    def __init__(self, cycle: Cycle, constraint: Constraint, keys: tuple[str, ...], *, numeric: bool) -> None:
        table = cycle.state.nodes
        nodes = Nodes(cycle.state)
        rows = table.live[: table.size].copy()
        for key in keys:
            rows &= nodes.label_ids(key) >= 0
        if constraint.honors_affinity and not (required := RequiredNodes.of(cycle)).allow_all:
            rows &= required.selects(nodes)
        if constraint.honors_taints:
            rows &= _tolerated(cycle, nodes, numeric)
        column = table.label(constraint.topology_key)
        self.version = _version(cycle)
        self.rows: Bool | None = None if rows.all() else rows
        self.present: Bool = np.zeros(len(column.values) + 1, dtype=np.bool_)
        self.present[column.ids[: table.size][rows]] = True
        self.present[-1] = False
        self.domains = int(np.count_nonzero(self.present))


class CountedNodesOf:
    """Finds or makes the counted nodes. They change only with node objects, and many kinds of pods share them."""

    def __init__(self, *, numeric: bool) -> None:
        self._numeric = numeric
        self._known: dict[Hashable, CountedNodes] = {}

    def __call__(self, cycle: Cycle, constraint: Constraint, keys: tuple[str, ...]) -> CountedNodes:
        required = RequiredNodes.of(cycle) if constraint.honors_affinity else None
        key = (
            cycle.state,
            constraint.topology_key,
            keys,
            None if required is None or required.allow_all else (required.labels, required.terms),
            cycle.pod.spec.tolerations if constraint.honors_taints else None,
        )
        known = self._known.get(key)
        if known is None or known.version != _version(cycle):
            if len(self._known) >= _KINDS_KEPT:
                del self._known[next(iter(self._known))]
            known = self._known[key] = CountedNodes(cycle, constraint, keys, numeric=self._numeric)
        return known


def matching_pods(cycle: Cycle, constraint: Constraint) -> MatchCounter | None:
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
