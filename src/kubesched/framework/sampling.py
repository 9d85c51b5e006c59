"""percentageOfNodesToScore: stop looking when enough nodes fit, and start further on the next time.

Off unless a configuration asks for it: looking at every node is what the columns are for.
"""

from __future__ import annotations

import numpy as np

from kubesched.framework.diagnosis import Verdicts
from kubesched.state.cluster import ClusterState
from kubesched.state.columns import Rows

MIN_FEASIBLE_NODES = 100


class Sampler:
    """Keeps the place in the list of nodes where the next search begins."""

    def __init__(self, state: ClusterState, percentage: int) -> None:
        self._state = state
        self._percentage = percentage
        self.next_start = 0
        self._order_names: list[str] | None = None
        self._order: Rows = np.zeros(0, dtype=np.intp)

    def sample(self, verdicts: Verdicts, own_percentage: int | None, *, narrowed: bool) -> None:
        """Cut the verdicts down to the nodes that a search in order would have looked at."""
        percentage = self._percentage if own_percentage is None else own_percentage
        if percentage in (0, 100):
            return
        order = self._nodes_in_order()
        if narrowed:
            order = order[verdicts.considered[order]]
        total = len(order)
        if not total:
            return
        enough = max(MIN_FEASIBLE_NODES, total * percentage // 100)
        if total < MIN_FEASIBLE_NODES:
            enough = total
        order = np.roll(order, -(self.next_start % total))
        hits = np.flatnonzero(verdicts.feasible[order])
        looked_at = total if len(hits) <= enough else int(hits[enough - 1]) + 1
        self.next_start = (self.next_start + looked_at) % self._state.nodes.live_count
        if looked_at < total:
            seen = np.zeros(len(verdicts.considered), dtype=np.bool_)
            seen[order[:looked_at]] = True
            verdicts.considered = verdicts.considered & seen
            verdicts.feasible = verdicts.feasible & seen

    def _nodes_in_order(self) -> Rows:
        table = self._state.nodes
        names = table.order.names()
        if names is not self._order_names:
            self._order_names = names
            self._order = np.array([table.row_of[name] for name in names], dtype=np.intp)
        return self._order
