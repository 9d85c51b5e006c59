"""Older and newer API servers: what the daemon does for pods there, as far as Kubernetes lets versions differ."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from bench.peer.control_plane import ADMIN, ASSETS, ControlPlane
from tests.control_plane.real_cluster import RealCluster
from tests.integration.daemon_process import Daemon
from tests.integration.live_cluster import wait_until

from kubesched.api.kinds import PODS, RESOURCE_CLAIMS

SKEWED = "KUBESCHED_SKEWED_ASSETS"
"""Folders with etcd and kube-apiserver of other releases, separated by colons."""
FOLDERS: list[Path | None] = [Path(folder) for folder in os.environ.get(SKEWED, "").split(":") if folder]


LEADING = {"leaderElection": {"leaderElect": True}}


@pytest.fixture(params=FOLDERS or [None], ids=lambda folder: folder.parent.name if folder else "none")
def other(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[RealCluster]:
    """A cluster of another release."""
    if request.param is None:
        pytest.skip(f"{SKEWED} is not set")
    monkeypatch.setenv(ASSETS, str(request.param))
    with ControlPlane(tmp_path) as plane:
        cluster = RealCluster(plane)
        yield cluster
        cluster.clear()


@pytest.fixture
def daemon(other: RealCluster, tmp_path: Path) -> Iterator[Daemon]:
    """It ends as it should, and has nothing to complain of."""
    daemon = Daemon(tmp_path, other.plane.kubeconfig(ADMIN), config=LEADING, token=ADMIN)
    try:
        yield daemon
        assert daemon.stop() == 0
        assert "Traceback" not in daemon.log
    finally:
        daemon.close()


def test_pods_are_bound_rejected_and_preempted_on_api_servers_of_other_releases(
    other: RealCluster, daemon: Daemon
) -> None:
    other.add_node("node-1", cpu="2", labels={"topology.kubernetes.io/zone": "a"})
    other.add_node("node-2", cpu="2", labels={"topology.kubernetes.io/zone": "b"})
    zone = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "topology.kubernetes.io/zone"}
    spread = [zone | {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}]
    for number in range(4):
        other.add_pod(f"web-{number}", cpu="800m", topologySpreadConstraints=spread)
    assert sorted(other.wait_all_bound().values()) == ["node-1", "node-1", "node-2", "node-2"]
    other.add_pod("low", cpu="2")
    assert "0/2 nodes are available: 2 Insufficient cpu." in other.wait_rejected("low")
    other.add_pod("high", cpu="800m", priority=10)
    other.wait_bound("high")
    wait_until(lambda: "Scheduled" in other.reasons("high"), "an Event", within=30)
    assert len(other.list(PODS)) == 5


def test_devices_are_allocated_on_api_servers_of_other_releases(other: RealCluster, daemon: Daemon) -> None:
    other.add_node("with-gpu")
    other.add_node("without-gpu")
    other.add_gpu_class()
    other.offer_gpus("with-gpu", "gpu-0")
    request = {"name": "one", "exactly": {"deviceClassName": "gpu"}}
    for name in ("first", "second"):
        other.create("resource.k8s.io/v1", "ResourceClaim", name, spec={"devices": {"requests": [request]}})
    claims = [{"name": "gpu", "resourceClaimName": "first"}]
    other.add_pod("train", resourceClaims=claims, resources={"claims": [{"name": "gpu"}]})
    assert other.wait_bound("train") == "with-gpu"
    allocation = other.get(RESOURCE_CLAIMS, "first")["status"]["allocation"]
    assert [each["device"] for each in allocation["devices"]["results"]] == ["gpu-0"]
    claims = [{"name": "gpu", "resourceClaimName": "second"}]
    other.add_pod("wait", resourceClaims=claims, resources={"claims": [{"name": "gpu"}]})
    assert "cannot allocate all claims" in other.wait_rejected("wait")
