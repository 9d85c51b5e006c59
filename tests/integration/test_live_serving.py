"""The secure port of a daemon at work: who may read what, and what the numbers say afterwards."""

from __future__ import annotations

import json

import pytest
from tests.integration.conftest import StartCluster, StartDaemon
from tests.integration.daemon_process import Daemon
from tests.integration.live_cluster import LiveCluster, wait_until

SECRET = "the-token-of-the-cluster"


@pytest.fixture
def guarded(start_cluster: StartCluster) -> LiveCluster:
    """A cluster with TLS that asks for tokens."""
    return start_cluster(tls=True, token=SECRET)


def _guarded_daemon(cluster: LiveCluster, start_daemon: StartDaemon, **options: object) -> Daemon:
    """A daemon that asks the cluster who may read, and is read with the token of a service account."""
    file = str(cluster.kubeconfig())
    token = cluster.token_of_service_account()
    flags = ("--authentication-kubeconfig", file, "--authorization-kubeconfig", file)
    return start_daemon(cluster, *flags, token=token, **options)


def test_health_is_open_to_everybody_and_the_rest_only_to_those_the_cluster_allows(
    guarded: LiveCluster, start_daemon: StartDaemon
) -> None:
    daemon = _guarded_daemon(guarded, start_daemon)
    daemon.wait_scheduling()
    for path in ("/healthz", "/livez", "/readyz"):
        assert daemon.get(path, token="").status == 200, path
    for path in ("/metrics", "/configz", "/flagz", "/statusz", "/metrics/resources", "/debug/queue"):
        assert daemon.get(path, token="").status == 403, path
        assert daemon.get(path, token="made-up").status == 401, path
        assert daemon.get(path).status == 200, path
        assert daemon.get(path, token=SECRET).status == 200, path


def test_readiness_names_its_checks(guarded: LiveCluster, start_daemon: StartDaemon) -> None:
    daemon = _guarded_daemon(guarded, start_daemon)
    daemon.wait_scheduling()
    ready = daemon.get("/readyz?verbose")
    assert ready.status == 200
    for check in ("leaderElection", "informer-sync", "sched-handler-sync", "shutdown"):
        assert f"[+]{check} ok" in ready.text
    assert daemon.get("/readyz/informer-sync").status == 200


def test_pages_show_the_configuration_and_the_flags(guarded: LiveCluster, start_daemon: StartDaemon) -> None:
    daemon = _guarded_daemon(guarded, start_daemon, config={"podMaxBackoffSeconds": 7})
    daemon.wait_scheduling()
    shown = json.loads(daemon.get("/configz").text)
    assert shown["componentconfig"]["podMaxBackoffSeconds"] == 7
    assert f"secure-port={daemon.port}" in daemon.get("/flagz").text
    assert "/readyz" in daemon.get("/statusz").text


def test_metrics_tell_what_was_done(guarded: LiveCluster, start_daemon: StartDaemon) -> None:
    guarded.add_nodes(2, cpu="2")
    daemon = _guarded_daemon(guarded, start_daemon)
    daemon.wait_scheduling()
    guarded.add_pods(10)
    guarded.add_pod("too-large", cpu="100")
    guarded.add_pod("gated", schedulingGates=[{"name": "example.com/quota"}])
    wait_until(lambda: guarded.bound == 10 and guarded.condition("too-large"), "all that fits bound")
    wait_until(lambda: len(guarded.events("Scheduled")) == 10, "all events written")

    metric = daemon.metric
    assert metric("scheduler_schedule_attempts_total", result="scheduled", profile="default-scheduler") == 10
    assert metric("scheduler_schedule_attempts_total", result="unschedulable") == 1
    assert metric("scheduler_schedule_attempts_total", result="error") == 0
    assert metric("scheduler_pending_pods", queue="unschedulable") == 1
    assert metric("scheduler_pending_pods", queue="gated") == 1
    assert metric("scheduler_pending_pods", queue="active") == 0
    assert metric("scheduler_unschedulable_pods", plugin="NodeResourcesFit") == 1
    assert metric("scheduler_scheduling_attempt_duration_seconds_count") == 11
    assert 0 < metric("scheduler_scheduling_attempt_duration_seconds_sum", result="scheduled") < 30
    assert metric("scheduler_pod_scheduling_sli_duration_seconds_count") == 10
    assert metric("scheduler_pod_scheduling_attempts_count") == 10
    assert metric("scheduler_framework_extension_point_duration_seconds_count", extension_point="Bind") == 10
    assert metric("scheduler_queue_incoming_pods_total", event="UnschedulablePodAdd", queue="active") == 11
    assert metric("scheduler_cache_size", type="nodes") == 2
    assert metric("scheduler_cache_size", type="pods") == 10
    assert metric("leader_election_master_status", name="kube-scheduler") == 1
    assert metric("rest_client_requests_total", code="201", method="POST") >= 20  # a binding and an event for each
    assert metric("process_cpu_seconds_total") > 0
    resources = daemon.get("/metrics/resources").text
    assert "kube_pod_resource_request{" in resources
    assert resources.count('resource="cpu"') == 12


def test_dumps_show_queue_cache_and_nominations(guarded: LiveCluster, start_daemon: StartDaemon) -> None:
    guarded.add_node("node", cpu="1")
    guarded.add_pod("small")
    guarded.add_pod("large", cpu="3")
    daemon = _guarded_daemon(guarded, start_daemon)
    wait_until(lambda: guarded.node_of("small") and guarded.condition("large"), "both pods tried")
    (waiting,) = wait_until(lambda: json.loads(daemon.get("/debug/queue").text)["unschedulable"], "a pod that waits")
    assert (waiting["pod"], waiting["rejectedBy"]) == ("default/large", ["NodeResourcesFit"])
    confirmed = lambda: json.loads(daemon.get("/debug/state").text)["node"]["pods"]  # noqa: E731
    assert wait_until(confirmed, "the pod confirmed") == ["default/small"]
    assert json.loads(daemon.get("/debug/nominated").text) == {}


def test_replica_without_a_server_is_alive_but_not_ready(
    start_cluster: StartCluster, start_daemon: StartDaemon
) -> None:
    cluster = start_cluster()
    kubeconfig = cluster.kubeconfig()
    cluster.stop()
    daemon = start_daemon(cluster, kubeconfig=kubeconfig)
    daemon.wait_for_log("Serving securely on")
    assert daemon.get("/livez").status == 200
    assert daemon.get("/healthz").status == 200
    assert daemon.get("/readyz").status == 500
    cluster.start(cluster.api)
    wait_until(lambda: daemon.get("/readyz").status == 200, "ready once there is a server")
