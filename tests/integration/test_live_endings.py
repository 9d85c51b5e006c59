"""How a daemon ends, and what it lives through: nothing half done, nothing done twice, nothing forgotten."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import Literal, get_args

import pytest
import yaml
from tests.integration.conftest import StartCluster, StartDaemon
from tests.integration.live_cluster import LiveCluster, wait_until

from kubesched.api.kinds import LEASES, PODS, PRIORITY_CLASSES
from kubesched_sandbox.http import Rule

Refusal = Literal["500-before", "500-after", "409", "429"]
SHORT_LEASE = {"leaderElection": {"leaseDuration": "3s", "renewDeadline": "2s", "retryPeriod": "500ms"}}


def test_daemon_told_to_stop_finishes_its_bindings_and_writes_their_events(
    cluster: LiveCluster, start_daemon: StartDaemon
) -> None:
    cluster.add_nodes(4)
    daemon = start_daemon(cluster)
    daemon.wait_scheduling()
    cluster.misbehave(Rule("delay", verb="create", resource="pods/binding", seconds=0.5))
    cluster.add_pods(100)
    wait_until(lambda: sum(cluster.happened()) >= 10, "bindings on their way")
    assert daemon.stop() == 0
    assert cluster.bound >= 10
    assert len(cluster.events("Scheduled")) == cluster.bound
    assert cluster.lease()["holderIdentity"] == ""


def test_bindings_on_their_way_are_cut_off_when_the_lease_is_lost(
    cluster: LiveCluster, start_daemon: StartDaemon
) -> None:
    cluster.add_nodes(1)
    daemon = start_daemon(cluster, config=SHORT_LEASE)
    daemon.wait_scheduling()
    cluster.misbehave(Rule("delay", verb="create", resource="pods/binding", seconds=600))
    cluster.add_pods(5)
    wait_until(lambda: sum(cluster.happened()) == 5, "bindings on their way")
    usurper = {"spec": {"holderIdentity": "usurper", "leaseDurationSeconds": 600}}
    cluster.patch(LEASES, "kube-system", "kube-scheduler", usurper)
    lost = time.monotonic()
    assert daemon.wait_exit() == 1
    assert time.monotonic() - lost < 20  # far less than a binding would have been waited for
    assert cluster.bound == 0


def test_second_signal_ends_a_daemon_that_takes_its_time(cluster: LiveCluster, start_daemon: StartDaemon) -> None:
    cluster.add_nodes(1)
    daemon = start_daemon(cluster)
    daemon.wait_scheduling()
    cluster.misbehave(Rule("freeze", verb="create", resource="pods/binding"))
    cluster.add_pod("pod")
    wait_until(lambda: sum(cluster.happened()) == 1, "a binding that hangs")
    daemon.send(signal.SIGTERM)
    daemon.wait_for_log("Stopping", "SIGTERM")
    daemon.send(signal.SIGTERM)
    assert daemon.wait_exit(within=20) == 1


def test_token_that_was_exchanged_in_its_file_is_used_without_a_restart(
    start_cluster: StartCluster, start_daemon: StartDaemon, tmp_path: Path
) -> None:
    cluster = start_cluster(tls=True, token="of-the-administrator")
    cluster.add_nodes(1)
    token_file = tmp_path / "token"
    token_file.write_text(cluster.token_of_service_account())
    kubeconfig = cluster.kubeconfig()
    document = yaml.safe_load(kubeconfig.read_text())
    document["users"][0]["user"] = {"tokenFile": str(token_file)}
    kubeconfig.write_text(yaml.safe_dump(document))
    daemon = start_daemon(cluster, kubeconfig=kubeconfig)
    daemon.wait_scheduling()
    cluster.start(cluster.stop())  # it has forgotten all tokens of service accounts
    token_file.write_text(cluster.token_of_service_account())
    cluster.add_pod("pod")
    wait_until(lambda: cluster.all_bound, "the pod bound")
    assert daemon.stop() == 0


def test_pod_that_has_finished_makes_room(cluster: LiveCluster, start_daemon: StartDaemon) -> None:
    cluster.add_node("node", cpu="1")
    cluster.add_pod("job", cpu="800m")
    start_daemon(cluster)
    wait_until(lambda: cluster.node_of("job"), "the first pod bound")
    cluster.add_pod("next", cpu="800m")
    wait_until(lambda: cluster.condition("next"), "the second waiting")
    cluster.patch(PODS, "default", "job", {"status": {"phase": "Succeeded"}}, "status")
    wait_until(lambda: cluster.node_of("next"), "the second pod bound")


def test_pod_of_a_megabyte_is_bound_like_any_other(cluster: LiveCluster, start_daemon: StartDaemon) -> None:
    cluster.add_node("node")
    daemon = start_daemon(cluster)
    daemon.wait_scheduling()
    large = {"name": "large", "image": "app", "env": [{"name": "CONTENT", "value": "x" * 2**20}]}
    cluster.create(PODS, {"metadata": {"name": "pod"}, "spec": {"containers": [large]}}, "default")
    wait_until(lambda: cluster.node_of("pod"), "the pod bound")


@pytest.mark.parametrize("what", get_args(Refusal))
def test_preemption_comes_about_though_the_server_refuses_at_first(
    cluster: LiveCluster, start_daemon: StartDaemon, what: Refusal
) -> None:
    for name, value in (("low", 10), ("high", 1000)):
        cluster.create(PRIORITY_CLASSES, {"metadata": {"name": name}, "value": value})
    cluster.add_node("node", cpu="1")
    cluster.add_pod("victim", cpu="800m", priorityClassName="low")
    daemon = start_daemon(cluster, config={"podMaxBackoffSeconds": 1})
    wait_until(lambda: cluster.node_of("victim"), "the victim bound")
    cluster.misbehave(
        Rule(what, verb="delete", resource="pods", count=1),
        Rule(what, verb="patch", resource="pods/status", count=2),
    )
    cluster.add_pod("preemptor", cpu="800m", priorityClassName="high")
    wait_until(lambda: cluster.node_of("preemptor"), "the preemptor bound")
    assert not cluster.overcommitted
    assert daemon.stop() == 0


def test_full_disk_under_a_recording_ends_the_recording_alone(cluster: LiveCluster, start_daemon: StartDaemon) -> None:
    cluster.add_nodes(2)
    daemon = start_daemon(cluster, "--record=/dev/full", "--authorization-always-allow-paths=/metrics")
    daemon.wait_scheduling()
    cluster.add_pods(40)
    wait_until(lambda: cluster.bound == 40, "pods bound though nothing can be recorded")
    daemon.wait_for_log("The recording ends here", "No space left on device")
    assert daemon.metrics()["kubesched_recording_errors_total"] == 1
    assert daemon.stop() == 0
