"""A decision is a function call, so testing a plugin takes no cluster and no time."""

from __future__ import annotations

from example_plugins.cheap_nodes import CheapNodes
from example_plugins.quiet_neighbours import QuietNeighbours

from kubesched.testing import Cluster, NodeBuilder, make_node, make_pod

CRITICAL = make_pod("violin").label(latency="critical")
DRUMMER = make_pod("drummer").label(noise="loud").on("n1")


def priced(price: int) -> NodeBuilder:
    return make_node(f"costs-{price}").label({"example.com/price": str(price)})


def test_a_critical_pod_keeps_away_from_noisy_ones() -> None:
    cluster = Cluster(nodes=[make_node("n1"), make_node("n2")], pods=[DRUMMER], plugins=[QuietNeighbours])
    assert cluster.schedule(CRITICAL).node == "n2"


def test_a_critical_pod_waits_if_there_is_noise_everywhere() -> None:
    cluster = Cluster(nodes=[make_node("n1")], pods=[DRUMMER], plugins=[QuietNeighbours])
    message = cluster.schedule(CRITICAL).message
    assert message.startswith("0/1 nodes are available: 1 node(s) had noisy neighbours.")


def test_cheap_nodes_are_preferred_and_expensive_ones_refused() -> None:
    nodes = [priced(250), priced(20), priced(900)]
    cluster = Cluster(nodes, plugins=[CheapNodes], args={"CheapNodes": {"maxPrice": 300}})
    explained = cluster.explain(make_pod("p"))
    assert explained.node == "costs-20"
    assert [verdict.node for verdict in explained.verdicts if not verdict.fits] == ["costs-900"]
