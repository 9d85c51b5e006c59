"""How many nodes a search looks at, and where the next one begins.

It looks at all of them, unless a configuration sets percentageOfNodesToScore: columns make that cheap. With a
percentage, or with no scores to compare, it stops when enough nodes fit, and the next search goes on from there, in the
order in which kube-scheduler with a single worker goes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kubesched.framework.diagnosis import FilterOutcome, PassingRows
from kubesched.state.cluster import ClusterState
from kubesched.state.columns import Bool, Rows

MIN_FEASIBLE_NODES = 100


class NodeSample(NamedTuple):
    """The outcome of a search: the rows that fit, how many they are, and how many rows were looked at."""

    feasible: Bool
    feasible_count: int
    evaluated: int
    passing: PassingRows | None = None
    """Set if the rows that fit are just these (see `FilterOutcome.passing`)."""


class Sampler:
    """Keeps the place in the list of nodes where the next search begins."""

    def __init__(self, state: ClusterState, percentage: int) -> None:
        self._state = state
        self._percentage = percentage
        self._next_start = 0
        self._order_names: list[str] | None = None
        self._order: Rows = np.zeros(0, dtype=np.intp)

    def sample(
        self, outcome: FilterOutcome, own_percentage: int | None, narrowed: bool, one_is_enough: bool
    ) -> NodeSample:
        """The rows that such a search finds, from the outcome of the filters on all rows."""
        percentage = self._percentage if own_percentage is None else own_percentage
        passing = outcome.passing
        count = int(np.count_nonzero(outcome.feasible)) if passing is None else passing.count
        if not percentage and not narrowed and not one_is_enough:
            # The next search begins where this one did.
            return NodeSample(outcome.feasible, count, self._state.nodes.live_count, passing)
        total = int(np.count_nonzero(outcome.considered)) if narrowed else self._state.nodes.live_count
        enough = 1 if one_is_enough else _enough(total, percentage)
        if count <= enough:
            result = NodeSample(outcome.feasible, count, total, passing)
        else:
            result = self._first(outcome, enough, narrowed)
        self._next_start = (self._next_start + result.evaluated) % max(1, self._state.nodes.live_count)
        return result

    def _first(self, outcome: FilterOutcome, enough: int, narrowed: bool) -> NodeSample:
        order = self._nodes_in_order()
        if narrowed:
            order = order[outcome.considered[order]]
        order = np.roll(order, -(self._next_start % len(order)))
        places = np.flatnonzero(outcome.feasible[order])
        # The worker stops at the node that would be one too many; until then every other node was rejected.
        rejected = int(places[enough]) - enough
        feasible = np.zeros(len(outcome.feasible), dtype=np.bool_)
        feasible[order[places[:enough]]] = True
        return NodeSample(feasible, enough, enough + rejected)

    def _nodes_in_order(self) -> Rows:
        table = self._state.nodes
        names = table.order.names()
        if names is not self._order_names:
            self._order_names = names
            self._order = np.array([table.row_of[name] for name in names], dtype=np.intp)
        return self._order


def _enough(nodes: int, percentage: int) -> int:
    if percentage in (0, 100) or nodes < MIN_FEASIBLE_NODES:
        return nodes
    return max(MIN_FEASIBLE_NODES, nodes * percentage // 100)
