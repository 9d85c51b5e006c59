"""PodGroupPodsCount: of several placements for a group, those are better where more of its pods find room."""

from __future__ import annotations

from kubesched.api.pod_groups import PodGroup
from kubesched.framework.groups import PlacementScorePlugin, Proposal
from kubesched.framework.status import MAX_NODE_SCORE
from kubesched.state.cluster import ClusterState


class PodGroupPodsCount(PlacementScorePlugin):
    """Counts the pods of the group that would run: those that are placed already, and those that find a node."""

    name = "PodGroupPodsCount"

    def score_placement(self, group: PodGroup, proposal: Proposal, state: ClusterState) -> int:
        return len(state.groups.placed(group.key)) + proposal.count

    def normalize_placements(self, scores: list[int]) -> list[int]:
        most = max(scores)
        if not most:
            raise ValueError("no pods from pod group are assigned to any of the candidate placements")
        return [score * MAX_NODE_SCORE // most for score in scores]
