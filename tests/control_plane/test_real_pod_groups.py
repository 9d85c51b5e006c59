"""Pod groups on a real API server, with the rights of kube-scheduler; also with a scheduler that dies."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest
from bench.peer.control_plane import ASSETS, ControlPlane
from tests.control_plane.conftest import StartKubesched
from tests.control_plane.group_plane import API, AS_ONE, FLAG, GATES, POD_GROUPS, RealStage
from tests.control_plane.real_cluster import RealCluster
from tests.integration.live_cluster import wait_until

from kubesched.api.kinds import PODS

RACK = "example.com/rack"
CONDITIONS = ("PodGroupScheduled", "PodGroupInitiallyScheduled")
"""As v1.36 and v1.37 call it."""


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    if not os.environ.get(ASSETS):
        pytest.skip(f"{ASSETS} is not set")
    with ControlPlane(tmp_path_factory.mktemp("groups"), gates=GATES, served=(API,)) as plane:
        yield plane


def add_gang(cluster: RealCluster, name: str, min_count: int, **spec: Any) -> None:
    policy = {"gang": {"minCount": min_count}}
    cluster.create(API, "PodGroup", name, spec={"schedulingPolicy": policy, **spec})


def add_members(cluster: RealCluster, name: str, count: int, **spec: Any) -> None:
    for i in range(count):
        cluster.add_pod(f"{name}-{i}", "1", schedulingGroup={"podGroupName": name}, **spec)


def condition(cluster: RealCluster, name: str) -> tuple[str, str]:
    """The status and the message, once there is one."""

    def found() -> tuple[str, str] | None:
        conditions = cluster.get(POD_GROUPS, name).get("status", {}).get("conditions", [])
        return next(((c["status"], c["message"]) for c in conditions if c["type"] in CONDITIONS), None)

    result: tuple[str, str] = wait_until(found, f"a condition of {name}", within=60)
    return result


def bound(cluster: RealCluster, name: str) -> list[str]:
    pods = (pod for pod in cluster.list(PODS) if pod["metadata"]["name"].startswith(f"{name}-"))
    return [pod["metadata"]["name"] for pod in pods if pod["spec"].get("nodeName")]


def test_gang_waits_as_a_whole_and_is_bound_as_a_whole(cluster: RealCluster, start_kubesched: StartKubesched) -> None:
    for i in range(2):
        cluster.add_node(f"n{i}", cpu="1")
    start_kubesched(FLAG)
    add_members(cluster, "g", 3)
    add_gang(cluster, "g", 3)
    status, message = condition(cluster, "g")
    assert status == "False"
    assert "pod group is unschedulable" in message
    assert bound(cluster, "g") == []
    cluster.add_node("n2", cpu="1")
    for i in range(3):
        cluster.wait_bound(f"g-{i}")
    wait_until(lambda: condition(cluster, "g")[0] == "True", "the condition", within=30)


def test_gang_goes_to_one_rack_and_preempts_a_whole_group(
    cluster: RealCluster, start_kubesched: StartKubesched
) -> None:
    for rack in "ab":
        for i in range(2):
            cluster.add_node(f"{rack}{i}", cpu="1", labels={RACK: rack})
    start_kubesched(FLAG)
    add_gang(cluster, "low", 4, disruptionMode=AS_ONE, priority=1)
    add_members(cluster, "low", 4, priority=1)
    for i in range(4):
        cluster.wait_bound(f"low-{i}")
    constraints = {"topology": [{"key": RACK}]}
    add_gang(cluster, "high", 2, schedulingConstraints=constraints, priority=100)
    add_members(cluster, "high", 2, priority=100)
    racks = {cluster.wait_bound(f"high-{i}")[0] for i in range(2)}
    assert len(racks) == 1
    assert bound(cluster, "low") == []


def test_gang_is_completed_by_the_next_scheduler_when_the_first_is_killed(
    cluster: RealCluster, start_kubesched: StartKubesched
) -> None:
    """Wherever it was in the middle of its bindings."""
    stage = RealStage(cluster, API)
    stage.nodes(60, cpu="1")
    first = start_kubesched(FLAG)
    stage.group("g", 60)
    stage.members("g", 60)
    wait_until(lambda: stage.where("g"), "a pod bound", within=60)
    first.send(signal.SIGKILL)
    bound_by_the_first = len(stage.where("g"))
    start_kubesched(FLAG, name="successor")
    stage.settles(g=60)
    assert len(set(stage.where("g").values())) == 60
    assert bound_by_the_first
