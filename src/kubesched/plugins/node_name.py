"""NodeName: a pod that names its node goes there or nowhere."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from kubesched.framework.cycle import Cycle
from kubesched.framework.events import Action, Interest, Kind
from kubesched.framework.nodes import Nodes, NodeView
from kubesched.framework.plugin import FilterPlugin, PluginContext, PreFilterPlugin
from kubesched.framework.reads import PodFields, Reads, Scope
from kubesched.framework.status import Status, unresolvable
from kubesched.plugins.shared.hinting import waits_for
from kubesched.state.columns import Int32

OTHER_NODE = unresolvable("node(s) didn't match the requested node name")


class NodeName(PreFilterPlugin, FilterPlugin):
    """Rejects every node but the one in spec.nodeName."""

    name = "NodeName"
    pre_filter_reads = Reads(PodFields.SPEC, Scope.NOTHING)
    filter_reads = Reads(PodFields.SPEC, Scope.NODE_OBJECT)

    def __init__(self, args: None = None, context: PluginContext | None = None) -> None:
        super().__init__(args, context)
        self.absent_from = () if self.context.features.release.more_pre_filters else ("pre_filter",)

    def events_to_register(self) -> tuple[Interest, ...]:
        return (waits_for(Kind.NODE, Action.ADD),)

    def sign(self, cycle: Cycle) -> Hashable:
        return cycle.pod.spec.node_name

    def pre_filter(self, cycle: Cycle) -> frozenset[str] | None:
        node_name = cycle.pod.spec.node_name
        return frozenset((node_name,)) if node_name else None

    def filter(self, cycle: Cycle, nodes: Nodes) -> Int32:
        node_name = cycle.pod.spec.node_name
        if not node_name:
            return np.zeros(len(nodes), dtype=np.int32)
        row = cycle.state.nodes.row_of.get(node_name, -1)
        return self.reject(nodes.row_ids != row, OTHER_NODE)

    def filter_node(self, cycle: Cycle, node: NodeView) -> Status | None:
        node_name = cycle.pod.spec.node_name
        return OTHER_NODE if node_name and node.name != node_name else None
