"""kube-scheduler and kubesched on one lease: whichever is killed, the other goes on."""

from __future__ import annotations

import signal
from typing import Any

from tests.control_plane.conftest import StartKubesched, StartKubeScheduler
from tests.control_plane.real_cluster import RealCluster
from tests.integration.live_cluster import wait_until

from kubesched.api.kinds import LEASES

TIMES = {"leaseDuration": "8s", "renewDeadline": "6s", "retryPeriod": "1s"}
"""Shorter than usual, long enough for a busy machine."""
SHARED: dict[str, Any] = {"leaderElection": {"leaderElect": True, **TIMES}}


def lease(cluster: RealCluster) -> dict[str, Any]:
    spec: dict[str, Any] = cluster.ask("GET", LEASES.path_of(namespace="kube-system", name="kube-scheduler"))["spec"]
    return spec


def test_mixed_pair_takes_over_from_each_other(
    cluster: RealCluster, start_kubesched: StartKubesched, start_kube_scheduler: StartKubeScheduler
) -> None:
    cluster.add_node("node-1", cpu="32")
    theirs = start_kube_scheduler(**SHARED)
    cluster.add_pod("first")
    cluster.wait_bound("first")
    holder = lease(cluster)["holderIdentity"]
    ours = start_kubesched(**SHARED)
    ours.wait_for_log("Attempting to acquire leader lease")

    theirs.process.kill()
    cluster.add_pod("second")
    cluster.wait_bound("second")
    assert lease(cluster)["holderIdentity"] != holder
    assert lease(cluster)["leaseTransitions"] == 1

    start_kube_scheduler(**SHARED)
    ours.send(signal.SIGKILL)
    cluster.add_pod("third")
    cluster.wait_bound("third")
    assert lease(cluster)["leaseTransitions"] == 2


def test_replica_that_stops_in_peace_hands_over_at_once(cluster: RealCluster, start_kubesched: StartKubesched) -> None:
    cluster.add_node("node-1", cpu="32")
    patient = {"leaderElection": {"leaderElect": True, "resourceName": "patient"}}
    first = start_kubesched(name="first", **patient)
    first.wait_scheduling()
    second = start_kubesched(name="second", **patient)
    second.wait_for_log("Attempting to acquire leader lease")
    assert first.stop() == 0
    cluster.add_pod("only")
    wait_until(lambda: cluster.node_of("only"), "bound before the lease would have run out", within=12)
