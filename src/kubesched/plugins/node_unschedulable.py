"""NodeUnschedulable: cordoned nodes take only pods that tolerate the taint of that name."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from kubesched.api.tolerations import UNSCHEDULABLE_TAINT, tolerates_any_way
from kubesched.framework.cycle import Cycle
from kubesched.framework.nodes import Nodes
from kubesched.framework.plugin import FilterPlugin, Scope
from kubesched.framework.status import unresolvable
from kubesched.state.columns import Int32

CORDONED = unresolvable("node(s) were unschedulable")


class NodeUnschedulable(FilterPlugin):
    """Keeps pods off cordoned nodes."""

    name = "NodeUnschedulable"
    looks_only_at_facts = True
    filter_scope = Scope.NODE_OBJECT

    def filter_question(self, cycle: Cycle) -> Hashable:
        return self._tolerated(cycle)

    def filter(self, cycle: Cycle, nodes: Nodes) -> Int32:
        if self._tolerated(cycle):
            return np.zeros(len(nodes), dtype=np.int32)
        return self.reject(nodes.unschedulable, CORDONED)

    def _tolerated(self, cycle: Cycle) -> bool:
        numeric = self.context.enabled("TaintTolerationComparisonOperators", default=False)
        tolerations = cycle.pod.spec.tolerations
        return bool(tolerations) and tolerates_any_way(tolerations, UNSCHEDULABLE_TAINT, numeric=numeric)
