"""How full a part of the cluster would be with a group in it: the fuller the better, so that others stay whole."""

from __future__ import annotations

from collections.abc import Sequence

from kubesched.api.requests import is_scalar
from kubesched.config.args import ResourceSpec
from kubesched.framework.groups import Proposal
from kubesched.framework.status import MAX_NODE_SCORE
from kubesched.state.cluster import ClusterState


def fullness(resources: Sequence[ResourceSpec], proposal: Proposal, state: ClusterState) -> int:
    """The weighted mean of what would be in use, in percent. An extended resource counts if the group asks for it."""
    table, rows = state.nodes, proposal.placement.rows
    total = weights = 0
    for resource in resources:
        i = table.resource_id(resource.name)
        amount = sum(int(facts.scoring[i]) * count for facts, count in proposal.pods if i < len(facts.scoring))
        if not amount and is_scalar(resource.name):
            continue
        offered = int(table.allocatable[i, rows].sum())
        used = int(table.scoring_requested[i, rows].sum()) + amount
        if offered:
            total += min(used, offered) * MAX_NODE_SCORE // offered * resource.weight
            weights += resource.weight
    return total // weights if weights else 0
