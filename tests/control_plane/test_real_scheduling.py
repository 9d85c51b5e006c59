"""What the daemon does for pods on a real API server, with the rights of kube-scheduler."""

from __future__ import annotations

from tests.control_plane.conftest import StartKubesched
from tests.control_plane.real_cluster import RealCluster
from tests.integration.live_cluster import wait_until

from kubesched.api.kinds import PODS


def test_pods_are_bound_and_told_about(cluster: RealCluster, start_kubesched: StartKubesched) -> None:
    for number in range(3):
        cluster.add_node(f"node-{number}")
    daemon = start_kubesched()
    for number in range(30):
        cluster.add_pod(f"web-{number}")
    nodes = cluster.wait_all_bound()
    assert {list(nodes.values()).count(f"node-{number}") for number in range(3)} == {10}
    wait_until(lambda: "Scheduled" in cluster.reasons("web-0"), "an Event", within=30)
    assert daemon.metric("scheduler_schedule_attempts_total", result="scheduled") == 30
    assert daemon.stop() == 0


def test_pod_that_fits_nowhere_is_told_why_and_bound_when_a_node_comes(
    cluster: RealCluster, start_kubesched: StartKubesched
) -> None:
    start_kubesched()
    cluster.add_node("small", cpu="1")
    cluster.add_pod("large", cpu="2")
    assert "0/1 nodes are available: 1 Insufficient cpu." in cluster.wait_rejected("large")
    cluster.add_node("big", cpu="8")
    assert cluster.wait_bound("large") == "big"


def test_gated_pod_waits_until_its_gate_is_gone(cluster: RealCluster, start_kubesched: StartKubesched) -> None:
    daemon = start_kubesched()
    cluster.add_node("node-1")
    cluster.add_pod("gated", schedulingGates=[{"name": "example.com/hold"}])
    cluster.add_pod("free")
    cluster.wait_bound("free")
    assert cluster.node_of("gated") == ""
    cluster.patch(PODS, "gated", {"spec": {"schedulingGates": []}})
    assert cluster.wait_bound("gated") == "node-1"
    assert daemon.metric("scheduler_schedule_attempts_total", result="unschedulable") == 0


def test_extended_resource_is_given_out_once(cluster: RealCluster, start_kubesched: StartKubesched) -> None:
    start_kubesched()
    cluster.add_node("plain")
    cluster.add_node("with-gpu", offered={"example.com/gpu": "1"})
    gpu = {"example.com/gpu": "1"}
    cluster.add_pod("first", limits=gpu)
    assert cluster.wait_bound("first") == "with-gpu"
    cluster.add_pod("second", limits=gpu)
    assert "2 Insufficient example.com/gpu" in cluster.wait_rejected("second")
    cluster.delete(PODS, "first")
    assert cluster.wait_bound("second") == "with-gpu"


def test_higher_priority_preempts_the_least_of_the_lower(cluster: RealCluster, start_kubesched: StartKubesched) -> None:
    start_kubesched()
    cluster.add_node("cheap", cpu="2", labels={"kind": "cheap"})
    cluster.add_node("dear", cpu="2", labels={"kind": "dear"})
    cluster.add_pod("victim", cpu="1500m", priority=1, nodeSelector={"kind": "cheap"})
    cluster.add_pod("spared", cpu="1500m", priority=5, nodeSelector={"kind": "dear"})
    cluster.wait_all_bound()
    cluster.add_pod("important", cpu="1500m", priority=10)
    assert cluster.wait_bound("important") == "cheap"
    assert cluster.node_of("spared") == "dear"
    assert {pod["metadata"]["name"] for pod in cluster.list(PODS)} == {"spared", "important"}
    assert "Preempted" in cluster.reasons("victim")
