"""The API server is killed while pods are being bound."""

from __future__ import annotations

from collections import Counter

from tests.control_plane.conftest import StartKubesched
from tests.control_plane.real_cluster import RealCluster
from tests.integration.live_cluster import wait_until

from kubesched.api.kinds import PODS

NODES, PODS_OF_A_NODE = 10, 20


def bound(cluster: RealCluster) -> Counter[str]:
    """Pods by node."""
    return Counter(pod["spec"]["nodeName"] for pod in cluster.list(PODS) if pod["spec"].get("nodeName"))


def test_bindings_go_on_after_the_api_server_was_killed_and_none_is_lost_or_counted_twice(
    cluster: RealCluster, start_kubesched: StartKubesched
) -> None:
    for number in range(NODES):
        cluster.add_node(f"node-{number}", cpu="2")
    half = NODES * PODS_OF_A_NODE // 2
    for number in range(half):
        cluster.add_pod(f"early-{number}")
    daemon = start_kubesched()
    wait_until(lambda: bound(cluster), "the first bindings")
    cluster.plane.api_server.process.kill()
    cluster.plane.api_server.process.wait()
    cluster.plane.start_api_server_again()
    cluster.wait_all_bound()

    # Every node can be filled to the last millicore: nothing is assumed to be there that is not.
    for number in range(half):
        cluster.add_pod(f"late-{number}")
    cluster.wait_all_bound()
    assert bound(cluster) == {f"node-{number}": PODS_OF_A_NODE for number in range(NODES)}
    assert daemon.stop() == 0
