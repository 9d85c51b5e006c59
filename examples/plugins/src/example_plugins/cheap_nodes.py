"""CheapNodes: nodes say what they cost in a label; the cheaper the better, and some are too expensive."""

from __future__ import annotations

from typing import Any

import numpy as np

from kubesched.plugin import (
    MAX_NODE_SCORE,
    Cycle,
    Details,
    ExplainPlugin,
    FilterOutcome,
    FilterPlugin,
    Int32,
    Int64,
    Nodes,
    PluginContext,
    PodFields,
    Reads,
    Scope,
    ScorePlugin,
    Section,
    unresolvable,
)

PRICE = "example.com/price"
PRICE_IF_NOT_SAID = 100
NO_LIMIT = 2**31
TOO_EXPENSIVE = unresolvable("node(s) were too expensive")


class CheapNodes(FilterPlugin, ScorePlugin, ExplainPlugin):
    """Rejects nodes that cost more than `maxPrice`, and scores the others by how cheap they are."""

    name = "CheapNodes"
    filter_reads = score_reads = Reads(PodFields.NONE, Scope.NODE_OBJECT)  # of the pod nothing: all share one answer

    def __init__(self, args: Any = None, context: PluginContext | None = None) -> None:
        super().__init__(args, context)
        self.max_price = int((args or {}).get("maxPrice", NO_LIMIT))

    def filter(self, cycle: Cycle, nodes: Nodes) -> Int32:
        return self.reject(self._prices(nodes) > self.max_price, TOO_EXPENSIVE)

    def score(self, cycle: Cycle, nodes: Nodes) -> Int64:
        return self._prices(nodes)

    def normalize(self, cycle: Cycle, scores: Any, nodes: Nodes) -> Int64:
        prices = np.broadcast_to(scores, len(nodes)).astype(np.int64)
        dearest = max(1, int(prices.max()))
        return MAX_NODE_SCORE - MAX_NODE_SCORE * prices // dearest

    def explain(self, cycle: Cycle, outcome: FilterOutcome, node: str) -> Details:
        nodes = Nodes(cycle.state)
        names = [nodes.name(i) for i in range(len(nodes))]
        prices = dict(zip(names, self._prices(nodes).tolist()))
        rows = tuple((name, str(price)) for name, price in sorted(prices.items()) if price > self.max_price)
        table = Section(columns=("Too expensive", "Price"), rows=rows, right=("Price",))
        return Details((table,) if rows else (), {"maxPrice": self.max_price, "prices": prices})

    def _prices(self, nodes: Nodes) -> Int64:
        """The price of every row: worked out once per distinct label value, then picked by row."""
        values = nodes.label_values(PRICE)
        of_value = [int(value) if value and value.isdecimal() else PRICE_IF_NOT_SAID for value in values]
        of_value.append(PRICE_IF_NOT_SAID)  # the last entry answers for rows without the label, whose id is -1
        return np.array(of_value, dtype=np.int64)[nodes.label_ids(PRICE)]
