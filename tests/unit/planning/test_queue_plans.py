"""`plan queue`: priority before value before age, gangs as a whole, and the engine has the last word."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from msgspec.structs import replace

from kubesched import config as configuration
from kubesched.api.meta import KubeObject, ObjectMeta
from kubesched.api.pod_groups import (
    GangPolicy,
    PodGroup,
    PodGroupSpec,
    SchedulingConstraints,
    SchedulingPolicy,
    TopologyConstraint,
)
from kubesched.api.well_known import ZONE
from kubesched.config.features import Features
from kubesched.planning.emptying import PlanSearch
from kubesched.planning.plan import Plan, PlanOutcome
from kubesched.planning.queue import plan_queue
from kubesched.simulate.cluster import ClusterModel
from kubesched.testing import NodeBuilder, PodBuilder, make_node, make_pod

pytest.importorskip("highspy", reason="plans need HiGHS")

GPU = "x.io/gpu"
GROUPS = Features(pod_groups=True, gang_scheduling=True, group_topology=True)


def planned(*objects: KubeObject | NodeBuilder | PodBuilder) -> Plan:
    made: Iterable[KubeObject] = (obj if isinstance(obj, KubeObject) else obj.build() for obj in objects)
    cluster = ClusterModel(made, configuration.default(GROUPS))
    return plan_queue(cluster, PlanSearch())


def gpu_nodes(count: int, gpus: int = 4) -> list[NodeBuilder]:
    return [make_node(f"n{i}").capacity({"cpu": 32, GPU: gpus}).zone(f"z{i % 2}") for i in range(count)]


def gpu_pod(name: str, gpus: int, cpu: int = 1) -> PodBuilder:
    return make_pod(name).requests({"cpu": cpu, GPU: gpus})


def gang(name: str, count: int, *, within: str = "") -> PodGroup:
    constraints = SchedulingConstraints(topology=(TopologyConstraint(key=within),)) if within else None
    policy = SchedulingPolicy(gang=GangPolicy(min_count=count))
    spec = PodGroupSpec(scheduling_policy=policy, scheduling_constraints=constraints)
    return PodGroup(metadata=ObjectMeta(name=name, namespace="default"), spec=spec)


def placed(plan: Plan) -> dict[str, str]:
    return {each.pod.removeprefix("default/"): each.node for each in plan.placements}


def test_queue_is_packed_as_a_whole() -> None:
    """In order of arrival the small ones would spread over both nodes, and no large one would fit."""
    small = [gpu_pod(f"s{i}", 1) for i in range(4)]
    plan = planned(*gpu_nodes(2), *small, gpu_pod("large", 4))
    assert plan.outcome is PlanOutcome.FOUND
    assert len(plan.placements) == 5
    assert plan.value == 8
    assert plan.bound is not None
    assert plan.bound.value == 8
    assert plan.bound.scarce[0].what.startswith(GPU)


def test_higher_priority_goes_before_greater_value() -> None:
    plan = planned(*gpu_nodes(1), gpu_pod("vip", 1).priority(100), gpu_pod("large", 4))
    assert set(placed(plan)) == {"vip"}
    assert plan.waiting == ("default/large",)
    assert "x.io/gpu goes to pods of a higher priority" in plan.reason


def test_lower_priority_never_costs_a_higher_one() -> None:
    high = [gpu_pod(f"h{i}", 2).priority(9) for i in range(3)]
    low = [gpu_pod(f"l{i}", 3).priority(1) for i in range(3)]
    plan = planned(*gpu_nodes(3), *high, *low)
    assert {f"h{i}" for i in range(3)} <= set(placed(plan))
    assert len(placed(plan)) == 4, "two of the high ones share a node, so that one low one fits"


def test_of_equal_pods_the_oldest_run() -> None:
    pods = [gpu_pod(f"p{i}", 2).build() for i in range(4)]
    dated = [
        replace(pod, metadata=replace(pod.metadata, creation_timestamp=f"2026-01-0{9 - i}T00:00:00Z"))
        for i, pod in enumerate(pods)
    ]
    assert set(placed(planned(*gpu_nodes(1), *dated))) == {"p2", "p3"}


def test_pods_without_the_valued_resource_run_too() -> None:
    plan = planned(*gpu_nodes(1), gpu_pod("g", 4), make_pod("plain").requests(cpu=2))
    assert set(placed(plan)) == {"g", "plain"}


def test_gang_that_does_not_fit_leaves_its_room_to_others() -> None:
    members = [gpu_pod(f"m{i}", 3).group("train") for i in range(3)]
    plan = planned(*gpu_nodes(2), gang("train", 3), *members, *(gpu_pod(f"s{i}", 1) for i in range(8)))
    assert set(placed(plan)) == {f"s{i}" for i in range(8)}


def test_gang_that_fits_runs_as_a_whole() -> None:
    members = [gpu_pod(f"m{i}", 3).group("train") for i in range(2)]
    plan = planned(*gpu_nodes(2), gang("train", 2), *members, *(gpu_pod(f"s{i}", 1) for i in range(8)))
    assert {"m0", "m1"} <= set(placed(plan)) or not {"m0", "m1"} & set(placed(plan))
    assert plan.value == 8


def test_pods_beyond_the_least_number_of_a_gang_fill_what_is_left() -> None:
    members = [gpu_pod(f"m{i}", 2).group("train") for i in range(4)]
    plan = planned(*gpu_nodes(2, gpus=3), gang("train", 2), *members)
    assert len(placed(plan)) == 2
    assert len(plan.waiting) == 2


def test_group_stays_within_one_domain() -> None:
    members = [gpu_pod(f"m{i}", 4).group("train") for i in range(2)]
    plan = planned(*gpu_nodes(4), gang("train", 2, within=ZONE), *members)
    zones = {node[-1] in "02" for node in placed(plan).values()}
    assert len(placed(plan)) == 2
    assert len(zones) == 1


def test_what_no_node_could_ever_take_is_impossible_and_says_of_what() -> None:
    plan = planned(*gpu_nodes(2), gpu_pod("huge", 16))
    assert plan.outcome is PlanOutcome.IMPOSSIBLE
    assert plan.reason == "1 pod: no node where it may go has 16 x.io/gpu left"


def test_pod_that_selects_no_node_is_told() -> None:
    plan = planned(*gpu_nodes(1), gpu_pod("lost", 1).node_selector(disk="none"))
    assert plan.outcome is PlanOutcome.IMPOSSIBLE
    assert "no node passes the filters that look at nodes" in plan.reason


def test_what_the_engine_refuses_is_placed_elsewhere() -> None:
    """The model knows nothing of affinity between kinds: both pods would go on the fuller node."""
    web = gpu_pod("web", 1).label(app="web").pod_anti_affinity("kubernetes.io/hostname", app="db")
    plan = planned(*gpu_nodes(2), gpu_pod("db", 1, cpu=2).label(app="db"), web)
    assert len(set(placed(plan).values())) == 2
    assert plan.check is not None
    assert plan.check.refused >= 1


def test_empty_queue_changes_nothing() -> None:
    plan = planned(*gpu_nodes(1))
    assert (plan.outcome, plan.reason) == (PlanOutcome.UNCHANGED, "no pod waits for a node")


def test_nothing_is_left_behind_in_the_cluster() -> None:
    cluster = ClusterModel([node.build() for node in gpu_nodes(2)] + [gpu_pod("p", 1).build()], configuration.default())
    plan_queue(cluster, PlanSearch())
    assert [pod.name for pod in cluster.pending()] == ["p"]
    assert not any(cluster.state.nodes.pod_count)


def test_plan_says_whether_the_scheduler_finds_it_by_itself() -> None:
    """Left alone, the small pods spread over both nodes, and the large one finds none."""
    small = [gpu_pod(f"s{i}", 2) for i in range(2)]
    plan = planned(*gpu_nodes(2), *small, gpu_pod("large", 4))
    assert plan.check is not None
    assert plan.check.needs_nominations
    assert plan.check.stuck == 1
    plan = planned(*gpu_nodes(2), *small)
    assert plan.check is not None
    assert not plan.check.needs_nominations
