"""QuietNeighbours: pods that are sensitive to latency keep away from noisy ones."""

from __future__ import annotations

from kubesched.plugin import Cycle, FilterPlugin, NodeView, ScorePlugin, Status, unschedulable

NOISY = unschedulable("node(s) had noisy neighbours")


class QuietNeighbours(FilterPlugin, ScorePlugin):
    """Rejects nodes with a noisy pod, and prefers nodes with few pods, for pods labelled `latency: critical`."""

    name = "QuietNeighbours"

    def filter_node(self, cycle: Cycle, node: NodeView) -> Status | None:
        if cycle.pod.metadata.labels.get("latency") != "critical":
            return None
        noisy = any(placed.pod.metadata.labels.get("noise") == "loud" for placed in node.pods)
        return NOISY if noisy else None

    def score_node(self, cycle: Cycle, node: NodeView) -> int:
        if cycle.pod.metadata.labels.get("latency") != "critical":
            return 0
        return max(0, 100 - 10 * len(node.pods))
