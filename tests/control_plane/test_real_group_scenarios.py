"""All scenarios about pod groups on real API servers: v1.36 and, where KUBESCHED_SKEWED_ASSETS has one, v1.37."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from bench.peer.control_plane import ADMIN, ASSETS, SCHEDULER, ControlPlane
from tests.control_plane.group_plane import API, NEWER_FLAG, NEWER_GATES, OLDER_FLAG, OLDER_GATES, RealStage
from tests.control_plane.real_cluster import RealCluster
from tests.group_scenarios import gangs, preemption, topology
from tests.group_scenarios.stage import ALPHA, BETA, Scenario
from tests.integration.daemon_process import Daemon

SKEWED = "KUBESCHED_SKEWED_ASSETS"
EVERYWHERE = [*gangs.SCENARIOS, *preemption.SCENARIOS, *topology.SCENARIOS]
CONFIG = {"leaderElection": {"leaderElect": False}}


def _newer() -> str:
    """The folder with v1.37, if there is one."""
    if API == BETA:
        return os.environ.get(ASSETS, "")
    return next((folder for folder in os.environ.get(SKEWED, "").split(":") if "1.37" in folder), "")


@pytest.fixture(scope="module", params=[ALPHA, BETA], ids=["v1.36", "v1.37"])
def stage(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealStage]:
    """One control plane and one daemon for all scenarios of a release."""
    api: str = request.param
    older = os.environ.get(ASSETS) if API == ALPHA else ""
    assets = older if api == ALPHA else _newer()
    if not assets:
        pytest.skip(f"{ASSETS} names no folder with v1.36" if api == ALPHA else f"{SKEWED} names no folder with v1.37")
    folder: Path = tmp_path_factory.mktemp("scenarios")
    gates, flag = (OLDER_GATES, OLDER_FLAG) if api == ALPHA else (NEWER_GATES, NEWER_FLAG)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(ASSETS, assets)
        with ControlPlane(folder, gates=gates, served=(api,)) as plane:
            user = SCHEDULER if api == ALPHA else ADMIN
            daemon = Daemon(folder, plane.kubeconfig(user), flag, config=CONFIG, token=ADMIN)
            try:
                yield RealStage(RealCluster(plane), api)
                assert "Traceback" not in daemon.log
            finally:
                daemon.close()


@pytest.fixture
def cleared(stage: RealStage) -> Iterator[RealStage]:
    yield stage
    stage.cluster.clear()


@pytest.mark.parametrize("scenario", EVERYWHERE, ids=lambda scenario: scenario.__name__)
def test_scenario(scenario: Scenario, cleared: RealStage) -> None:
    scenario(cleared)


@pytest.mark.parametrize("scenario", gangs.LOWERED, ids=lambda scenario: scenario.__name__)
def test_scenario_of_a_count_that_changes(scenario: Scenario, cleared: RealStage) -> None:
    if cleared.api == ALPHA:
        pytest.skip("v1.36 does not allow it")
    scenario(cleared)
