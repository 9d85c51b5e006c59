"""The daemon on a live API server: pods are bound, and whoever looks is told why others are not."""

from __future__ import annotations

import signal

import pytest
from tests.integration.conftest import StartCluster, StartDaemon
from tests.integration.live_cluster import LiveCluster, wait_until

from kubesched.api.kinds import NODES, PODS

TOKEN = "the-token-of-the-cluster"


def test_every_pod_is_bound_once_and_nowhere_is_more_than_fits(cluster: LiveCluster, start_daemon: StartDaemon) -> None:
    cluster.add_nodes(5, cpu="1")
    cluster.add_pods(50)
    daemon = start_daemon(cluster)
    wait_until(lambda: cluster.all_bound, "all pods bound")
    assert set(cluster.bindings.values()) == {1}
    assert len(cluster.bindings) == 50
    assert not cluster.overcommitted
    assert daemon.stop() == 0


def test_pods_are_bound_over_tls_with_a_token(start_cluster: StartCluster, start_daemon: StartDaemon) -> None:
    cluster = start_cluster(tls=True, token=TOKEN)
    cluster.add_nodes(2)
    daemon = start_daemon(cluster)
    daemon.wait_scheduling()
    cluster.add_pods(10)
    wait_until(lambda: cluster.all_bound, "all pods bound")
    assert daemon.stop() == 0


def test_event_tells_where_a_pod_went(cluster: LiveCluster, start_daemon: StartDaemon) -> None:
    cluster.add_node("only")
    pod = cluster.add_pod("pod")
    start_daemon(cluster)
    (event,) = wait_until(lambda: cluster.events("Scheduled"), "an event")
    assert event["note"] == "Successfully assigned default/pod to only"
    assert event["type"] == "Normal"
    assert event["action"] == "Binding"
    assert event["regarding"]["uid"] == pod["metadata"]["uid"]
    assert event["reportingController"] == "default-scheduler"


def test_pod_that_fits_nowhere_says_so_and_is_bound_when_a_node_comes(
    cluster: LiveCluster, start_daemon: StartDaemon
) -> None:
    cluster.add_node("small", cpu="1")
    cluster.add_pod("large", cpu="3")
    start_daemon(cluster)
    condition = wait_until(lambda: cluster.condition("large"), "a condition")
    assert (condition["status"], condition["reason"]) == ("False", "Unschedulable")
    assert condition["message"].startswith("0/1 nodes are available: 1 Insufficient cpu.")
    (event,) = wait_until(lambda: cluster.events("FailedScheduling"), "an event")
    assert event["note"] == condition["message"]
    cluster.add_node("large-node", cpu="4")
    wait_until(lambda: cluster.node_of("large") == "large-node", "the pod on the new node")
    assert cluster.condition("large")["status"] == "True"


def test_pod_waits_for_a_cordoned_node_and_is_bound_when_that_is_uncordoned(
    cluster: LiveCluster, start_daemon: StartDaemon
) -> None:
    cluster.add_node("node")
    cluster.patch(NODES, "", "node", {"spec": {"unschedulable": True}})
    cluster.add_pod("pod")
    start_daemon(cluster)
    wait_until(lambda: "unschedulable" in cluster.condition("pod").get("message", ""), "a condition")
    cluster.patch(NODES, "", "node", {"spec": {"unschedulable": None}})
    wait_until(lambda: cluster.node_of("pod") == "node", "the pod on its node")


def test_pod_with_a_scheduling_gate_is_bound_only_once_the_gate_is_gone(
    cluster: LiveCluster, start_daemon: StartDaemon
) -> None:
    cluster.add_node("node")
    cluster.add_pod("gated", schedulingGates=[{"name": "example.com/quota"}])
    cluster.add_pod("free")
    start_daemon(cluster)
    wait_until(lambda: cluster.node_of("free"), "the other pod bound")
    assert cluster.node_of("gated") == ""
    cluster.patch(PODS, "default", "gated", {"spec": {"schedulingGates": None}})
    wait_until(lambda: cluster.node_of("gated"), "the pod bound")


def test_room_of_a_deleted_pod_goes_to_one_that_waits(cluster: LiveCluster, start_daemon: StartDaemon) -> None:
    cluster.add_node("node", cpu="1")
    cluster.add_pod("first", cpu="800m")
    start_daemon(cluster)
    wait_until(lambda: cluster.node_of("first"), "the first pod bound")
    cluster.add_pod("second", cpu="800m")
    wait_until(lambda: cluster.condition("second"), "the second waiting")
    cluster.delete(PODS, "default", "first", grace=0)
    wait_until(lambda: cluster.node_of("second"), "the second pod bound")


def test_pod_made_anew_under_its_name_is_another_pod(cluster: LiveCluster, start_daemon: StartDaemon) -> None:
    cluster.add_node("node", cpu="1")
    cluster.add_pod("pod", cpu="800m")
    start_daemon(cluster)
    wait_until(lambda: cluster.node_of("pod"), "the pod bound")
    cluster.delete(PODS, "default", "pod", grace=0)
    cluster.add_pod("pod", cpu="800m")
    wait_until(lambda: cluster.node_of("pod"), "its successor bound")
    assert sorted(cluster.bindings.values()) == [1, 1]


def test_pods_of_other_schedulers_are_left_alone_but_counted(cluster: LiveCluster, start_daemon: StartDaemon) -> None:
    cluster.add_node("node", cpu="1")
    cluster.add_pod("foreign", cpu="800m", schedulerName="somebody-else")
    daemon = start_daemon(cluster)
    daemon.wait_scheduling()
    cluster.bind("foreign", "node")
    cluster.add_pod("ours", cpu="800m")
    assert "Insufficient cpu" in wait_until(lambda: cluster.condition("ours"), "a condition")["message"]


def test_two_profiles_are_told_apart_by_name(cluster: LiveCluster, start_daemon: StartDaemon) -> None:
    cluster.add_node("node")
    cluster.add_pod("first", schedulerName="first")
    cluster.add_pod("second", schedulerName="second")
    start_daemon(cluster, config={"profiles": [{"schedulerName": "first"}, {"schedulerName": "second"}]})
    wait_until(lambda: cluster.all_bound, "both pods bound")
    events = wait_until(lambda: len(found := cluster.events("Scheduled")) == 2 and found, "both events")
    assert {event["reportingController"] for event in events} == {"first", "second"}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_ends_it_cleanly(cluster: LiveCluster, start_daemon: StartDaemon, number: signal.Signals) -> None:
    daemon = start_daemon(cluster)
    daemon.wait_scheduling()
    daemon.send(number)
    assert daemon.wait_exit() == 0
    assert daemon.log_lines("Stopping", number.name)
