"""For tests of plugins and of placement: builders of pods and nodes, and a cluster without a server or threads.

    def test_a_critical_pod_keeps_away_from_noisy_ones() -> None:
        cluster = Cluster(nodes=[make_node("n1"), make_node("n2")], plugins=[QuietNeighbours])
        cluster.schedule(make_pod("drummer").label(noise="loud").on("n1"))
        assert cluster.schedule(make_pod("p").label(latency="critical")).node == "n2"

    def test_web_survives_the_loss_of_a_zone() -> None:
        placement = Placement(files=["cluster.json.gz"], manifests=["web.yaml"])
        placement.pods(app="web").survive_loss_of("zone")

Every method of a builder returns a new one, so several objects may begin with the same builder. The names in `__all__`
stay, as those of `kubesched.plugin` do.
"""

from __future__ import annotations

from kubesched.api.well_known import HOSTNAME as HOSTNAME
from kubesched.api.well_known import ZONE as ZONE
from kubesched.library.builders import NodeBuilder, PodBuilder, make_node, make_pod, node_term, pod_term
from kubesched.library.cluster import Cluster
from kubesched.testing.placement import Placement, check_placement_tests

__all__ = [
    "Cluster",
    "NodeBuilder",
    "Placement",
    "PodBuilder",
    "check_placement_tests",
    "make_node",
    "make_pod",
    "node_term",
    "pod_term",
]
