"""NodeUnschedulable: cordoned nodes take only pods that tolerate the taint of that name."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from kubesched.api.node import Node
from kubesched.api.pod import Pod, Toleration
from kubesched.api.tolerations import UNSCHEDULABLE_TAINT, tolerates_any_way
from kubesched.framework.cycle import Cycle
from kubesched.framework.events import Action, Hint, Interest, Kind
from kubesched.framework.nodes import Nodes, NodeView
from kubesched.framework.plugin import FilterPlugin, PluginContext, PreFilterPlugin
from kubesched.framework.reads import PodFields, Reads, Scope
from kubesched.framework.status import Status, unresolvable
from kubesched.plugins.advice.taints import CordonAdvice
from kubesched.plugins.shared.hinting import queue_if, waits_for, waits_for_pods
from kubesched.state.cluster import ClusterState
from kubesched.state.columns import Int32

CORDONED = unresolvable("node(s) were unschedulable")


class NodeUnschedulable(PreFilterPlugin, FilterPlugin, CordonAdvice):
    """Keeps pods off cordoned nodes."""

    name = "NodeUnschedulable"
    pre_filter_reads = Reads(PodFields.NONE, Scope.NOTHING)
    is_silent = True
    filter_reads = Reads(PodFields.SPEC, Scope.NODE_OBJECT)

    def __init__(self, args: None = None, context: PluginContext | None = None) -> None:
        super().__init__(args, context)
        self._numeric = self.context.features.taint_comparisons
        self.absent_from = () if self.context.features.release.more_pre_filters else ("pre_filter",)

    def events_to_register(self) -> tuple[Interest, ...]:
        return (
            waits_for(Kind.NODE, Action.ADD | Action.UPDATE_NODE_TAINT, self._after_node),
            *waits_for_pods(
                self.context.features.release, own=Action.UPDATE_POD_TOLERATION, own_hint=self._after_tolerations
            ),
        )

    def pre_filter(self, cycle: Cycle) -> None:
        return None

    def sign(self, cycle: Cycle) -> Hashable:
        return self._tolerated(cycle.pod.spec.tolerations)

    def filter(self, cycle: Cycle, nodes: Nodes) -> Int32:
        if self._tolerated(cycle.pod.spec.tolerations):
            return np.zeros(len(nodes), dtype=np.int32)
        return self.reject(nodes.unschedulable, CORDONED)

    def filter_node(self, cycle: Cycle, node: NodeView) -> Status | None:
        is_open = not node.node.spec.unschedulable or self._tolerated(cycle.pod.spec.tolerations)
        return None if is_open else CORDONED

    def _after_node(self, pod: Pod, old: Node | None, new: Node, state: ClusterState) -> Hint:
        return queue_if(not new.spec.unschedulable and (old is None or old.spec.unschedulable))

    def _after_tolerations(self, pod: Pod, old: Pod, new: Pod, state: ClusterState) -> Hint:
        return queue_if(self._tolerated(new.spec.tolerations))

    def _tolerated(self, tolerations: tuple[Toleration, ...]) -> bool:
        return bool(tolerations) and tolerates_any_way(tolerations, UNSCHEDULABLE_TAINT, numeric=self._numeric)
