"""Every plan executes, on random clusters: nothing that ran waits in the end, no budget breaks, all is as planned."""

from __future__ import annotations

import random

import pytest
from msgspec.structs import replace
from tests.random_clusters import ZONES, random_cluster

from kubesched.api.pod import Pod
from kubesched.api.well_known import ZONE
from kubesched.planning.consolidate import ConsolidateGoal, plan_consolidate
from kubesched.planning.emptying import PlanSearch
from kubesched.planning.execution import execute
from kubesched.planning.fit import plan_fit
from kubesched.planning.free import FreeGoal, plan_free
from kubesched.planning.movable import Movable, MovingRules
from kubesched.planning.offers import NodeOffers
from kubesched.planning.plan import NodeFate, Plan, PlanOutcome
from kubesched.planning.pool import plan_pool
from kubesched.planning.prices import InstanceType, PriceList
from kubesched.planning.queue import plan_queue
from kubesched.simulate.cluster import ClusterModel
from kubesched.simulate.nodes import INSTANCE_TYPE
from kubesched.testing import make_pod

PRICES = {"type-0": 1.0, "type-1": 2.0, "type-2": 0.7}
RULES = MovingRules()


def search() -> PlanSearch:
    return PlanSearch(effort=3)


def assert_executes(plan: Plan, cluster: ClusterModel) -> None:
    """Carried out once more, with budgets watched and the end compared pod by pod."""
    done = execute(cluster, plan, nominate=True)
    assert done.is_as_planned, done
    assert done.waves == plan.waves
    at = {obj.key: obj.spec.node_name for obj in done.objects if isinstance(obj, Pod)}
    freed = {node.name for node in plan.nodes_that_are(NodeFate.FREED)}
    movable = Movable(cluster, RULES)
    for name in freed:
        left = {pod.key for pod in movable.pods[name]} & {key for key, node in at.items() if node == name}
        assert not left
        assert not movable.staying[name]
    assert not freed & {move.to_node for move in plan.moves}
    if plan.check is not None and not plan.check.needs_nominations:
        free = execute(cluster, plan, nominate=False)
        assert not free.stuck
        assert not free.violations


def untouched(cluster: ClusterModel) -> list[tuple[str, str]]:
    return [(pod.key, pod.spec.node_name) for pod in cluster.pods.values()]


@pytest.mark.parametrize("seed", range(90))
def test_nodes_are_freed_as_planned(seed: int) -> None:
    cluster = random_cluster(seed)
    before = untouched(cluster)
    plan = plan_free(cluster, FreeGoal(1 + seed % 3), RULES, search())
    assert untouched(cluster) == before
    if plan.outcome in (PlanOutcome.FOUND, PlanOutcome.PARTIAL):
        assert_executes(plan, cluster)
    if plan.outcome is PlanOutcome.FOUND:
        assert plan.bound is not None
        assert plan.bound.value <= plan.value


@pytest.mark.parametrize("seed", range(200, 250))
def test_pending_pods_fit_as_planned(seed: int) -> None:
    pods = [
        make_pod(f"large-{i}").owned_by("ReplicaSet", "large").requests(cpu=str(3 + seed % 5)).build()
        for i in range(1 + seed % 2)
    ]
    cluster = random_cluster(seed, more=pods)
    plan = plan_fit(cluster, cluster.pending(), "large ones", RULES, search())
    if plan.outcome is PlanOutcome.FOUND:
        assert_executes(plan, cluster)
        assert {placement.pod for placement in plan.placements} == {pod.key for pod in pods}
        assert plan.bound is not None
        assert plan.bound.value <= plan.value


@pytest.mark.parametrize("seed", range(300, 340))
def test_queues_are_placed_as_planned(seed: int) -> None:
    """Half of what runs waits, and some more."""
    filled = random_cluster(seed)
    rng = random.Random(seed)
    objects = [
        replace(obj, spec=replace(obj.spec, node_name=""))
        if isinstance(obj, Pod) and not obj.spec.volumes and not obj.spec.resource_claims and rng.random() < 0.5
        else obj
        for obj in filled.objects()
    ]
    more = [make_pod(f"more-{i}").requests(cpu=str(rng.randint(1, 4))).build() for i in range(6)]
    cluster = ClusterModel([*objects, *more], filled.configuration, seed=seed)
    waiting = {pod.key for pod in cluster.pending()}
    plan = plan_queue(cluster, search())
    assert {each.pod for each in plan.placements} <= waiting
    if plan.check is not None:
        done = execute(cluster, plan, nominate=True)
        assert done.is_as_planned, done
    assert plan.bound is None or plan.value <= plan.bound.value + 1e-6


@pytest.mark.parametrize("seed", range(340, 360))
def test_nodes_that_are_bought_run_what_waits(seed: int) -> None:
    rng = random.Random(seed)
    pods = [make_pod(f"more-{i}").requests(cpu=str(rng.randint(1, 6))).build() for i in range(8)]
    cluster = random_cluster(seed, more=pods)
    amounts = {"cpu": "7", "memory": "16Gi", "pods": "20"}
    types = InstanceType("a", amounts, 1.0, {}), InstanceType("b", {**amounts, "cpu": "16"}, 2.0, {})
    plan = plan_pool(cluster, cluster.pending(), PriceList(types), search())
    assert plan.outcome is PlanOutcome.FOUND
    assert {each.pod for each in plan.placements} == {pod.key for pod in pods}
    assert plan.bound is not None
    assert plan.bound.value <= plan.value + 1e-6


@pytest.mark.parametrize("seed", range(90, 110))
def test_search_that_is_interrupted_ends_with_what_executes(seed: int) -> None:
    cluster, left = random_cluster(seed), iter(range(1 + seed % 3))
    cut = PlanSearch(is_over=lambda: next(left, None) is None)
    plan = plan_consolidate(cluster, ConsolidateGoal(), PRICES, RULES, cut)
    if plan.outcome is PlanOutcome.PARTIAL:
        assert "the search was interrupted" in plan.reason
        assert_executes(plan, cluster)


@pytest.mark.parametrize("seed", range(400, 460))
def test_clusters_are_consolidated_as_planned(seed: int) -> None:
    cluster = random_cluster(seed)
    goal = ConsolidateGoal(None if seed % 2 else 20.0)
    plan = plan_consolidate(cluster, goal, PRICES, RULES, search())
    if plan.outcome in (PlanOutcome.FOUND, PlanOutcome.PARTIAL):
        assert_executes(plan, cluster)
        assert plan.cost_before is not None
        assert plan.cost_after is not None
        assert plan.cost_after < plan.cost_before
    if plan.outcome is PlanOutcome.FOUND and plan.bound is not None:
        is_saving = goal.save is None
        assert plan.value <= plan.bound.value + 1e-6 if is_saving else plan.value >= plan.bound.value


@pytest.mark.parametrize("seed", range(460, 485))
def test_nodes_are_replaced_as_planned(seed: int) -> None:
    cluster = random_cluster(seed)
    amounts = {"cpu": "5", "memory": "16Gi", "pods": "20"}
    types = tuple(InstanceType(f"new-{zone}", amounts, 0.4, {ZONE: zone, INSTANCE_TYPE: "new"}) for zone in ZONES)
    plan = plan_consolidate(cluster, ConsolidateGoal(None, types), PRICES, RULES, search())
    if plan.outcome not in (PlanOutcome.FOUND, PlanOutcome.PARTIAL):
        return
    offers, zone_of = NodeOffers.to(cluster, types), {each.name: i for i, each in enumerate(types)}
    added = [each.name for each in plan.nodes_that_are(NodeFate.ADDED)]
    new = [obj for name in added for obj in offers.objects(zone_of[name.rpartition("-")[0]], name)]
    done = execute(cluster, plan, nominate=True, new=new)
    assert done.is_as_planned, done
    assert plan.bound is not None
    assert 0 < plan.value <= plan.bound.value + 1e-6
