"""A real control plane for each file of tests, where KUBEBUILDER_ASSETS names the binaries; skipped elsewhere."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from bench.peer.control_plane import ADMIN, ASSETS, SCHEDULER, ControlPlane, MissingBinaryError, binary
from bench.peer.schedulers import KUBE_SCHEDULER, Scheduler
from tests.control_plane.real_cluster import RealCluster
from tests.integration.daemon_process import Daemon

CONTROLLERS = ("resourceclaim-controller", "garbage-collector-controller", "persistentvolume-binder-controller")

StartKubesched = Callable[..., Daemon]
StartKubeScheduler = Callable[..., Scheduler]


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    if not os.environ.get(ASSETS):
        pytest.skip(f"{ASSETS} is not set")
    try:
        binary("kube-controller-manager")
    except MissingBinaryError as error:
        pytest.skip(str(error))
    with ControlPlane(tmp_path_factory.mktemp("control-plane"), controllers=CONTROLLERS) as plane:
        yield plane


@pytest.fixture
def cluster(plane: ControlPlane) -> Iterator[RealCluster]:
    cluster = RealCluster(plane)
    yield cluster
    cluster.clear()


@pytest.fixture
def start_kubesched(plane: ControlPlane, tmp_path: Path) -> Iterator[StartKubesched]:
    """With the rights of kube-scheduler and nothing more, unless another kubeconfig is given."""
    started: list[Daemon] = []

    def start(*flags: str, kubeconfig: Path | None = None, name: str = "kubesched", **config: Any) -> Daemon:
        config = {"leaderElection": {"leaderElect": False}, **config}
        file = kubeconfig or plane.kubeconfig(SCHEDULER)
        who_may_ask = (f"--authentication-kubeconfig={file}", f"--authorization-kubeconfig={file}")
        daemon = Daemon(tmp_path, file, *who_may_ask, *flags, config=config, token=ADMIN, name=name)
        started.append(daemon)
        return daemon

    yield start
    for daemon in started:
        daemon.close()
        assert daemon.may_show_tracebacks or "Traceback" not in daemon.log


@pytest.fixture
def start_kube_scheduler(plane: ControlPlane) -> Iterator[StartKubeScheduler]:
    started: list[Scheduler] = []

    def start(**settings: Any) -> Scheduler:
        try:
            scheduler = Scheduler(KUBE_SCHEDULER, plane, settings=settings)
        except MissingBinaryError as error:
            pytest.skip(str(error))
        started.append(scheduler)
        scheduler.wait_until_ready()
        return scheduler

    yield start
    for scheduler in started:
        scheduler.end()
