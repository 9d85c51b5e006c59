"""Whoever has had enough gets the best so far: it is whole, it was checked, and it says that it was interrupted."""

from __future__ import annotations

import pytest

from kubesched import config
from kubesched.planning.emptying import PlanSearch
from kubesched.planning.plan import PlanOutcome
from kubesched.planning.pool import plan_pool
from kubesched.planning.prices import InstanceType, PriceList
from kubesched.planning.queue import plan_queue
from kubesched.simulate.cluster import ClusterModel
from kubesched.testing import make_node, make_pod

pytest.importorskip("highspy", reason="plans need HiGHS")


def at_once() -> PlanSearch:
    return PlanSearch(is_over=lambda: True)


def test_pool_is_the_cheapest_single_type() -> None:
    pods = [make_pod(f"p{i}").requests(cpu="1").build() for i in range(10)]
    cluster = ClusterModel(pods, config.default())
    amounts = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    types = InstanceType("four", amounts, 1.0, {}), InstanceType("two", {**amounts, "cpu": "2"}, 0.4, {})
    plan = plan_pool(cluster, pods, PriceList(types), at_once())
    assert plan.outcome is PlanOutcome.FOUND
    assert plan.reason.startswith("the search was interrupted")
    assert plan.value == pytest.approx(2.0)
    assert plan.check is not None


def test_queue_is_placed_as_far_as_it_was_found() -> None:
    nodes = [make_node(f"n{i}").capacity(cpu=4).build() for i in range(2)]
    pods = [make_pod(f"p{i}").requests(cpu="3").build() for i in range(3)]
    plan = plan_queue(ClusterModel([*nodes, *pods], config.default()), at_once())
    assert len(plan.placements) == 2
    assert plan.reason.startswith("the search was interrupted")
    assert plan.check is not None


def test_bound_is_told_beside_the_best_so_far() -> None:
    told: list[str] = []
    nodes = [make_node(f"n{i}").capacity(cpu=4).build() for i in range(2)]
    pods = [make_pod(f"p{i}").requests(cpu="3").build() for i in range(3)]
    plan_queue(ClusterModel([*nodes, *pods], config.default()), PlanSearch(tell=told.append))
    assert told[0] == "6 cpu found, asking the engine; at most 6 cpu"
