"""Several replicas: one leads at a time, another takes over, and nobody binds what has been bound."""

from __future__ import annotations

import signal
import time

import pytest
from tests.integration.conftest import StartDaemon
from tests.integration.daemon_process import Daemon
from tests.integration.live_cluster import LiveCluster, wait_until

from kubesched.api.kinds import LEASES
from kubesched_sandbox.http import Rule

LEASE_SECONDS, RENEW_SECONDS, RETRY_SECONDS = 3, 2, 0.5
SLACK = 10.0
"""Seconds for a machine that has other things to do."""
SHORT = {
    "leaderElection": {
        "leaderElect": True,
        "leaseDuration": f"{LEASE_SECONDS}s",
        "renewDeadline": f"{RENEW_SECONDS}s",
        "retryPeriod": f"{RETRY_SECONDS}s",
    }
}


@pytest.fixture
def replicas(cluster: LiveCluster, start_daemon: StartDaemon) -> tuple[Daemon, Daemon]:
    """One that leads, slowly, and one that waits."""
    leader = start_daemon(cluster, config=SHORT, name="leader", qps=50)
    leader.wait_scheduling()
    standby = start_daemon(cluster, config=SHORT, name="standby")
    standby.wait_for_log("New leader elected")
    return leader, standby


def test_leader_killed_at_work_is_replaced_in_time_and_no_pod_is_bound_twice(
    cluster: LiveCluster, replicas: tuple[Daemon, Daemon]
) -> None:
    leader, standby = replicas
    cluster.add_nodes(10, cpu="2")
    cluster.add_pods(200)
    wait_until(lambda: cluster.bound > 20, "some pods bound")
    leader.send(signal.SIGKILL)
    killed = time.monotonic()
    leader.wait_exit()
    assert not cluster.all_bound
    standby.wait_scheduling()
    assert time.monotonic() - killed < LEASE_SECONDS + RETRY_SECONDS + SLACK
    wait_until(lambda: cluster.all_bound, "all pods bound")
    assert len(cluster.bindings) == 200
    assert set(cluster.bindings.values()) == {1}
    assert not cluster.overcommitted
    assert cluster.lease()["leaseTransitions"] == 1


def test_standby_binds_nothing_and_stops_at_once(cluster: LiveCluster, replicas: tuple[Daemon, Daemon]) -> None:
    _, standby = replicas
    cluster.add_nodes(1)
    cluster.add_pods(5)
    wait_until(lambda: cluster.all_bound, "all pods bound by the leader")
    standby.send(signal.SIGTERM)
    assert standby.wait_exit() == 0
    assert not standby.log_lines("Successfully bound pod")


def test_leader_that_is_told_to_stop_hands_over_at_once(cluster: LiveCluster, replicas: tuple[Daemon, Daemon]) -> None:
    leader, standby = replicas
    assert leader.stop() == 0
    released = time.monotonic()
    wait_until(lambda: standby.log_lines("Starting to schedule"), "the other leading")
    assert time.monotonic() - released < RETRY_SECONDS + SLACK
    assert cluster.lease()["holderIdentity"]


def test_released_lease_has_no_holder(cluster: LiveCluster, start_daemon: StartDaemon) -> None:
    daemon = start_daemon(cluster, config=SHORT)
    daemon.wait_scheduling()
    holder = cluster.lease()["holderIdentity"]
    assert daemon.stop() == 0
    assert cluster.lease()["holderIdentity"] == ""
    events = cluster.events("LeaderElection")
    assert {event["note"] for event in events} == {f"{holder} became leader", f"{holder} stopped leading"}
    lease = cluster.call(lambda: cluster.api.get(LEASES, "kube-system", "kube-scheduler"))
    for event in events:
        assert (event["regarding"]["kind"], event["regarding"]["uid"]) == ("Lease", lease["metadata"]["uid"])


def test_lease_taken_by_another_ends_the_daemon_with_one_line(cluster: LiveCluster, start_daemon: StartDaemon) -> None:
    daemon = start_daemon(cluster, config=SHORT)
    daemon.wait_scheduling()
    usurper = {"spec": {"holderIdentity": "usurper", "leaseDurationSeconds": 600}}
    cluster.patch(LEASES, "kube-system", "kube-scheduler", usurper)
    assert daemon.wait_exit() == 1
    (line,) = daemon.log_lines("Leaderelection lost")
    assert "usurper holds it" in line
    assert cluster.lease()["holderIdentity"] == "usurper"


def test_lease_that_cannot_be_renewed_ends_the_daemon_in_time(cluster: LiveCluster, start_daemon: StartDaemon) -> None:
    cluster.add_nodes(1)
    daemon = start_daemon(cluster, config=SHORT)
    daemon.wait_scheduling()
    cluster.misbehave(Rule("500-before", resource="leases"))
    started = time.monotonic()
    assert daemon.wait_exit() == 1
    assert time.monotonic() - started < RETRY_SECONDS + RENEW_SECONDS + SLACK
    (line,) = daemon.log_lines("Leaderelection lost")
    assert f"not renewed within {RENEW_SECONDS} s" in line
    bound = cluster.bound
    cluster.add_pod("late")
    assert cluster.bound == bound


def test_leader_cut_off_from_the_server_ends_before_another_may_act(
    cluster: LiveCluster, start_daemon: StartDaemon
) -> None:
    daemon = start_daemon(cluster, config=SHORT)
    daemon.wait_scheduling()
    cluster.misbehave(Rule("freeze", resource="leases"))
    started = time.monotonic()
    assert daemon.wait_exit() == 1
    assert time.monotonic() - started < LEASE_SECONDS + SLACK
    assert daemon.log_lines("Leaderelection lost")


def test_without_leader_election_there_is_no_lease(cluster: LiveCluster, start_daemon: StartDaemon) -> None:
    cluster.add_nodes(1)
    cluster.add_pod("pod")
    daemon = start_daemon(cluster, "--leader-elect=false")
    wait_until(lambda: cluster.all_bound, "the pod bound")
    assert cluster.lease() == {}
    assert daemon.stop() == 0


def test_leader_that_reads_the_cluster_only_when_it_leads_binds_as_well(
    cluster: LiveCluster, start_daemon: StartDaemon
) -> None:
    cluster.add_nodes(2)
    leader = start_daemon(cluster, config=SHORT, name="leader")
    leader.wait_scheduling()
    watchers = cluster.watchers
    standby = start_daemon(cluster, config={**SHORT, "delayCacheUntilActive": True}, name="standby")
    standby.wait_for_log("New leader elected")
    assert cluster.watchers == watchers
    assert leader.stop() == 0
    cluster.add_pods(5)
    wait_until(lambda: cluster.all_bound, "all pods bound by the other")
    assert standby.stop() == 0


@pytest.mark.parametrize("elects", [True, False])
def test_leader_from_the_start_reads_everything_once(
    cluster: LiveCluster, start_daemon: StartDaemon, elects: bool
) -> None:
    """Nothing was read before it led, so nothing can be behind."""
    cluster.misbehave(*(Rule("delay", verb="watch", resource=resource, seconds=0) for resource in ("nodes", "pods")))
    cluster.add_nodes(1)
    cluster.add_pod("pod")
    daemon = start_daemon(cluster, config=SHORT if elects else {"leaderElection": {"leaderElect": False}})
    wait_until(lambda: cluster.all_bound, "the pod bound")
    assert cluster.happened() == [1, 1]
    assert daemon.stop() == 0


def test_standby_reads_the_cluster_and_is_ready(replicas: tuple[Daemon, Daemon]) -> None:
    _, standby = replicas
    wait_until(lambda: standby.get("/readyz").status == 200, "the standby ready")
    assert not standby.log_lines("Starting to schedule")


def test_new_leader_reads_everything_anew_before_its_first_decision(
    cluster: LiveCluster, start_daemon: StartDaemon
) -> None:
    """Its watches may be behind: here they have been silent since the last leader bound a pod."""
    other = {"holderIdentity": "other", "leaseDurationSeconds": 600, "renewTime": "2026-01-01T00:00:00.000000Z"}
    cluster.create(LEASES, {"metadata": {"name": "kube-scheduler"}, "spec": other}, "kube-system")
    cluster.add_nodes(1, cpu="1")
    cluster.add_pod("seen")
    standby = start_daemon(cluster, "-v", "3")
    standby.wait_for_log("Add event for unscheduled pod", "seen")
    cluster.misbehave(Rule("freeze", verb="watch", resource="pods"))
    cluster.add_pod("unseen", cpu="1")
    cluster.bind("unseen", "node-0")
    wait_until(lambda: sum(cluster.happened()) > 0, "a watch that froze")
    cluster.misbehave()
    cluster.patch(LEASES, "kube-system", "kube-scheduler", {"spec": {"holderIdentity": ""}})
    assert "pods=2" in standby.wait_for_log("Starting to schedule")
