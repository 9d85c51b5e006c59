"""Preemption on a live API server: the lesser pod is told why it goes, and the greater one takes its place."""

from __future__ import annotations

from tests.integration.conftest import StartDaemon
from tests.integration.live_cluster import LiveCluster, wait_until

from kubesched.api.kinds import POD_DISRUPTION_BUDGETS, PODS, PRIORITY_CLASSES


def _arrange(cluster: LiveCluster) -> None:
    for name, value in (("low", 10), ("high", 1000)):
        cluster.create(PRIORITY_CLASSES, {"metadata": {"name": name}, "value": value})


def test_victim_is_marked_and_deleted_and_the_preemptor_is_nominated_and_then_bound(
    cluster: LiveCluster, start_daemon: StartDaemon
) -> None:
    _arrange(cluster)
    cluster.add_node("node", cpu="1")
    # With a grace period the victim stays in sight, as it would until its kubelet has ended it.
    cluster.add_pod("victim", cpu="800m", priorityClassName="low", terminationGracePeriodSeconds=600)
    start_daemon(cluster)
    wait_until(lambda: cluster.node_of("victim"), "the victim bound")

    preemptor = cluster.add_pod("preemptor", cpu="800m", priorityClassName="high")
    wait_until(lambda: cluster.pod("victim")["metadata"].get("deletionTimestamp"), "the victim going")
    condition = cluster.condition("victim", "DisruptionTarget")
    assert (condition["status"], condition["reason"]) == ("True", "PreemptionByScheduler")
    assert condition["message"] == "default-scheduler: preempting to accommodate a higher priority pod"
    wait_until(lambda: cluster.pod("preemptor")["status"].get("nominatedNodeName") == "node", "the nomination")
    assert cluster.node_of("preemptor") == ""
    (event,) = wait_until(lambda: cluster.events("Preempted"), "an event")
    assert event["note"] == f"Preempted by pod {preemptor['metadata']['uid']} on node node"
    assert event["regarding"]["name"] == "victim"
    assert event["related"]["name"] == "preemptor"

    cluster.delete(PODS, "default", "victim", grace=0)
    wait_until(lambda: cluster.node_of("preemptor") == "node", "the preemptor bound")
    assert not cluster.overcommitted


def test_eviction_is_reported_by_the_scheduler_of_the_preemptor(
    cluster: LiveCluster, start_daemon: StartDaemon
) -> None:
    _arrange(cluster)
    cluster.add_node("node", cpu="1")
    cluster.add_pod("victim", cpu="800m", priorityClassName="low", schedulerName="another")
    cluster.bind("victim", "node")
    start_daemon(cluster)
    cluster.add_pod("preemptor", cpu="800m", priorityClassName="high")
    (event,) = wait_until(lambda: cluster.events("Preempted"), "an event")
    assert event["reportingController"] == "default-scheduler"
    assert event["reportingInstance"].startswith("default-scheduler-")


def test_pod_that_never_preempts_waits(cluster: LiveCluster, start_daemon: StartDaemon) -> None:
    _arrange(cluster)
    polite = {"metadata": {"name": "polite"}, "value": 500, "preemptionPolicy": "Never"}
    cluster.create(PRIORITY_CLASSES, polite)
    cluster.add_node("node", cpu="1")
    cluster.add_pod("low", cpu="800m", priorityClassName="low")
    start_daemon(cluster)
    wait_until(lambda: cluster.node_of("low"), "the pod bound")
    cluster.add_pod("polite", cpu="800m", priorityClassName="polite")
    message = wait_until(lambda: cluster.condition("polite").get("message"), "a condition")
    assert "preemption: not eligible due to preemptionPolicy=Never." in message
    assert cluster.has_pod("low")


def test_of_two_nodes_the_one_without_a_disruption_budget_gives_way(
    cluster: LiveCluster, start_daemon: StartDaemon
) -> None:
    _arrange(cluster)
    for name in ("guarded", "free"):
        cluster.add_node(f"node-of-{name}", cpu="1")
        cluster.add_pod(
            name,
            cpu="800m",
            priorityClassName="low",
            metadata={"labels": {"app": name}},
            nodeSelector={"kubernetes.io/hostname": f"node-of-{name}"},
        )
    budget = {
        "metadata": {"name": "guard"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "guarded"}}},
    }
    cluster.create(POD_DISRUPTION_BUDGETS, budget, "default")
    start_daemon(cluster)
    wait_until(lambda: cluster.all_bound, "both pods bound")
    cluster.add_pod("preemptor", cpu="800m", priorityClassName="high")
    wait_until(lambda: cluster.node_of("preemptor") == "node-of-free", "the preemptor bound")
    assert cluster.has_pod("guarded")
    assert not cluster.has_pod("free")


def test_preemptor_is_bound_though_its_victim_left_by_itself(cluster: LiveCluster, start_daemon: StartDaemon) -> None:
    _arrange(cluster)
    cluster.add_node("node", cpu="1")
    cluster.add_pod("victim", cpu="800m", priorityClassName="low", terminationGracePeriodSeconds=600)
    start_daemon(cluster)
    wait_until(lambda: cluster.node_of("victim"), "the victim bound")
    cluster.add_pod("preemptor", cpu="800m", priorityClassName="high")
    cluster.delete(PODS, "default", "victim", grace=0)
    wait_until(lambda: cluster.node_of("preemptor"), "the preemptor bound")
