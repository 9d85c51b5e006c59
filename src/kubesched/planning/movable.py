"""Which pods a plan may move, and which must stay where they are, each with the reason.

The rules are those that Karpenter, Cluster Autoscaler, descheduler and `kubectl drain` keep.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.api.pod_groups import PodGroup, group_key
from kubesched.api.selectors import Selector
from kubesched.api.well_known import (
    DO_NOT_DISRUPT,
    PREFER_NO_EVICTION,
    SAFE_TO_EVICT,
    SCALE_DOWN_DISABLED,
    SYSTEM_PRIORITY_CLASSES,
)
from kubesched.api.workloads import PodDisruptionBudget
from kubesched.simulate.cluster import ClusterModel
from kubesched.simulate.nodes import leaves
from kubesched.simulate.rolling_upgrade import BudgetTracker

CRITICAL = min(SYSTEM_PRIORITY_CLASSES.values())


@dataclass(frozen=True, slots=True)
class MovingRules:
    """What else must stay where it is."""

    exempt: tuple[Selector, ...] = ()
    """Pods with these labels stay."""
    priority: int = CRITICAL
    """Pods of this priority, or a higher one, stay."""
    delete_local_data: bool = False
    """Whether pods may move that lose data in an emptyDir or leave some behind in a hostPath."""


class Movable:
    """The pods of a cluster: those that may move, and those that stay."""

    def __init__(self, cluster: ClusterModel, rules: MovingRules | None = None) -> None:
        self._cluster = cluster
        self._rules = rules or MovingRules()
        pods = [pod for pod in cluster.pods.values() if not pod.is_finished]
        self.budgets = BudgetTracker(cluster.all(PodDisruptionBudget), pods)
        self._gangs = {group.key for group in cluster.all(PodGroup) if group.is_gang}
        self.pods: dict[str, list[Pod]] = {node.name: [] for node in cluster.all(Node)}
        """By node: the pods that may move."""
        self.staying: dict[str, list[tuple[Pod, str]]] = {name: [] for name in self.pods}
        """By node: the pods that keep it from being emptied, and why."""
        for pod in pods:
            if pod.spec.node_name in self.pods and leaves(pod):
                why = self.why_not(pod)
                if why:
                    self.staying[pod.spec.node_name].append((pod, why))
                else:
                    self.pods[pod.spec.node_name].append(pod)

    def why_not(self, pod: Pod) -> str:
        """Why a placed pod must stay; nothing if it may move."""
        marks, rules = pod.metadata.annotations, self._rules
        if marks.get(DO_NOT_DISRUPT) == "true":
            return f"annotation {DO_NOT_DISRUPT}"
        if marks.get(SAFE_TO_EVICT) == "false":
            return f"annotation {SAFE_TO_EVICT}: false"
        if PREFER_NO_EVICTION in marks:
            return f"annotation {PREFER_NO_EVICTION}"
        if pod.metadata.controller is None:
            return "no controller would make it anew"
        if pod.spec.has_local_data and not rules.delete_local_data and marks.get(SAFE_TO_EVICT) != "true":
            return "local data"
        if pod.priority >= rules.priority:
            return f"priority {pod.priority}"
        if any(selector.matches(pod.metadata.labels) for selector in rules.exempt):
            return "exempt"
        if group_key(pod) in self._gangs:
            return "member of a gang"
        if not self._cluster.engine.knows(pod.spec.scheduler_name):
            return f"another scheduler ({pod.spec.scheduler_name}) places it"
        forbidding = self.budgets.forbid(pod)
        return f"disruption budget {forbidding[0]} allows none" if forbidding else ""

    def keeps(self, node: Node) -> str:
        """Why a node cannot be emptied; nothing if it can."""
        marks = node.metadata.annotations
        if marks.get(DO_NOT_DISRUPT) == "true":
            return f"annotation {DO_NOT_DISRUPT}"
        if marks.get(SCALE_DOWN_DISABLED) == "true":
            return f"annotation {SCALE_DOWN_DISABLED}"
        staying = self.staying[node.name]
        return f"{staying[0][0].key}: {staying[0][1]}" if staying else ""

    def reasons(self, nodes: Iterable[str]) -> list[tuple[str, int]]:
        """Why pods of these nodes must stay, with their number, the most frequent first."""
        return Counter(why for name in nodes for _, why in self.staying[name]).most_common()
