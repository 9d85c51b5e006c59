"""TaintToleration: taints keep pods away that do not tolerate them, or make a node less attractive.

Nodes share few distinct lists of taints, so the tolerations of a pod are held against each list once.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from kubesched.api.node import Node, Taint
from kubesched.api.pod import Pod, Toleration
from kubesched.api.tolerations import has_untolerated, tolerates_any_way
from kubesched.framework.cycle import Cycle
from kubesched.framework.events import Action, Hint, Interest, Kind
from kubesched.framework.nodes import Nodes, NodeView
from kubesched.framework.plugin import FilterPlugin, PluginContext, PreFilterPlugin, PreScorePlugin, ScorePlugin
from kubesched.framework.reads import PodFields, Reads, Scope
from kubesched.framework.status import Status, unresolvable
from kubesched.plugins.advice.taints import TaintAdvice
from kubesched.plugins.shared.arithmetic import scaled_to_maximum
from kubesched.plugins.shared.hinting import queue_if, waits_for, waits_for_pods
from kubesched.state.cluster import ClusterState
from kubesched.state.columns import Int32, Int64

UNTOLERATED = unresolvable("node(s) had untolerated taint(s)")


class TaintToleration(PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin, TaintAdvice):
    """Filters by NoSchedule and NoExecute; counts PreferNoSchedule against a node."""

    name = "TaintToleration"
    pre_filter_reads = Reads(PodFields.NONE, Scope.NOTHING)
    is_silent = True
    filter_reads = score_reads = Reads(PodFields.SPEC, Scope.NODE_OBJECT)

    def __init__(self, args: None = None, context: PluginContext | None = None) -> None:
        super().__init__(args, context)
        self._numeric = self.context.features.taint_comparisons
        self.absent_from = () if self.context.features.release.more_pre_filters else ("pre_filter",)

    def events_to_register(self) -> tuple[Interest, ...]:
        return (
            waits_for(Kind.NODE, Action.ADD | Action.UPDATE_NODE_TAINT, self._after_node),
            *waits_for_pods(self.context.features.release, own=Action.UPDATE_POD_TOLERATION),
        )

    def pre_filter(self, cycle: Cycle) -> None:
        return None

    def sign(self, cycle: Cycle) -> Hashable:
        return cycle.pod.spec.tolerations

    def filter(self, cycle: Cycle, nodes: Nodes) -> Int32:
        tolerations, numeric = cycle.pod.spec.tolerations, self._numeric
        lists = cycle.state.nodes.taint_lists.values
        refused = [taints is not None and has_untolerated(taints, tolerations, numeric=numeric) for taints in lists]
        if not any(refused):
            return np.zeros(len(nodes), dtype=np.int32)
        refused.append(False)  # index -1: rows without a node
        return self.reject(np.array(refused)[nodes.taint_ids], UNTOLERATED)

    def filter_node(self, cycle: Cycle, node: NodeView) -> Status | None:
        return UNTOLERATED if self._refuses(node.node, cycle.pod) else None

    def score(self, cycle: Cycle, nodes: Nodes) -> Int64 | int:
        """How many PreferNoSchedule taints the pod does not tolerate."""
        soft = tuple(t for t in cycle.pod.spec.tolerations if t.effect in ("", "PreferNoSchedule"))
        lists = cycle.state.nodes.taint_lists.values
        counts = [self._intolerable(taints or (), soft) for taints in lists]
        if not any(counts):
            return 0
        counts.append(0)
        return np.array(counts, dtype=np.int64)[nodes.taint_ids]

    def normalize(self, cycle: Cycle, scores: Int64 | int, nodes: Nodes) -> Int64 | int:
        return scaled_to_maximum(scores, reverse=True)

    def _after_node(self, pod: Pod, old: Node | None, new: Node, state: ClusterState) -> Hint:
        """The node is open to the pod, and was not before."""
        return queue_if(not self._refuses(new, pod) and (old is None or self._refuses(old, pod)))

    def _refuses(self, node: Node, pod: Pod) -> bool:
        taints = node.spec.taints
        return bool(taints) and has_untolerated(taints, pod.spec.tolerations, numeric=self._numeric)

    def _intolerable(self, taints: tuple[Taint, ...], tolerations: tuple[Toleration, ...]) -> int:
        soft = (taint for taint in taints if taint.effect == "PreferNoSchedule")
        return sum(not tolerates_any_way(tolerations, taint, numeric=self._numeric) for taint in soft)
