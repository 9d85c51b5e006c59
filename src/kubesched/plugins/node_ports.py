"""NodePorts: two pods cannot claim one port of a node."""

from __future__ import annotations

from collections.abc import Hashable

from kubesched.framework.cycle import Cycle
from kubesched.framework.nodes import Nodes
from kubesched.framework.plugin import FilterPlugin, PreFilterPlugin, Scope
from kubesched.framework.status import SKIP_ALIKE, Status, unschedulable
from kubesched.state.columns import Int32

TAKEN = unschedulable("node(s) didn't have free ports for the requested pod ports")
ANY_ADDRESS = "0.0.0.0"


class NodePorts(PreFilterPlugin, FilterPlugin):
    """Rejects nodes where a wanted host port is taken."""

    name = "NodePorts"
    looks_only_at_facts = True
    filter_scope = Scope.NODE

    def pre_filter(self, cycle: Cycle) -> Status | None:
        return None if cycle.facts.ports else SKIP_ALIKE

    def filter_question(self, cycle: Cycle) -> Hashable:
        return cycle.facts.ports

    def filter(self, cycle: Cycle, nodes: Nodes) -> Int32:
        taken = nodes.none()
        for wanted in cycle.facts.ports:
            for i, addresses in nodes.ports_in_use(wanted.protocol, wanted.port):
                # 0.0.0.0 is every address; "::" is, to kube-scheduler, an address like any other.
                taken[i] |= wanted.ip == ANY_ADDRESS or wanted.ip in addresses or ANY_ADDRESS in addresses
        return self.reject(taken, TAKEN)
