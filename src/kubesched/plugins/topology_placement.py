"""TopologyPlacementGenerator: the domains of a topology, racks or zones, of which a group must stay within one."""

from __future__ import annotations

from collections.abc import Sequence

from kubesched.api.pod_groups import PodGroup
from kubesched.framework.groups import CandidatePlacement, PlacementGeneratePlugin
from kubesched.framework.status import Status, error, unschedulable
from kubesched.state.cluster import ClusterState
from kubesched.state.columns import ABSENT

NOWHERE = unschedulable("no feasible placements found")
_UNCLEAR = "cannot determine domain for already scheduled pods"


class TopologyPlacementGenerator(PlacementGeneratePlugin):
    """A placement for each value of the label that the group names; nodes without it are in none."""

    name = "TopologyPlacementGenerator"

    def placements(self, group: PodGroup, state: ClusterState) -> Sequence[CandidatePlacement] | Status:
        table = state.nodes
        live = table.live[: table.size]
        if not group.topology_key:
            return (CandidatePlacement("", live.copy()),)
        column = table.label(group.topology_key)
        ids = column.ids[: table.size]
        scheduled_domains = self._domains_of_scheduled(group, state)
        if isinstance(scheduled_domains, Status):
            return scheduled_domains
        names = column.values.values
        domains = sorted(set(ids[live & (ids != ABSENT)].tolist()), key=lambda domain: str(names[domain]))
        placements = [
            CandidatePlacement(str(names[domain]), live & (ids == domain))
            for domain in domains
            if not scheduled_domains or domain in scheduled_domains
        ]
        return placements or NOWHERE.by(self.name)

    def _domains_of_scheduled(self, group: PodGroup, state: ClusterState) -> set[int] | Status:
        """Where the group is already, if it is anywhere: its other pods have to follow."""
        column = state.nodes.label(group.topology_key)
        domains: set[int] = set()
        for pod in state.groups.placed(group.key):
            placed = state.placed(pod)
            assert placed is not None
            if not state.nodes.live[placed.row]:
                return error(f"{_UNCLEAR}: getting node for pod")
            domains.add(int(column.ids[placed.row]))
        if ABSENT in domains:
            return error(f"{_UNCLEAR}: no topology domain found for pod")
        if len(domains) > 1:
            names = ", ".join(sorted(str(column.values.values[domain]) for domain in domains))
            return error(f"{_UNCLEAR}: more than 1 domain found for pod group: {names}")
        return domains
