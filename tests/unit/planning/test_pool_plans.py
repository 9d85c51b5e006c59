"""`plan pool`: the cheapest nodes for pods that wait, as the engine accepts them."""

from __future__ import annotations

from itertools import combinations_with_replacement

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubesched import config as configuration
from kubesched.api.meta import KubeObject, ObjectMeta
from kubesched.api.node import Taint
from kubesched.api.well_known import HOSTNAME
from kubesched.planning.emptying import PlanSearch
from kubesched.planning.plan import Plan, PlanOutcome
from kubesched.planning.pool import plan_pool
from kubesched.planning.prices import InstanceType, PriceList
from kubesched.simulate.cluster import ClusterModel
from kubesched.simulate.kinds import DaemonSet, PodTemplate, PodWorkloadSpec
from kubesched.testing import NodeBuilder, PodBuilder, make_node, make_pod

pytest.importorskip("highspy", reason="plans need HiGHS")


def offer(name: str, cpu: int, price: float, *, most: int | None = None, tainted: bool = False) -> InstanceType:
    taints = (Taint(key="dedicated", effect="NoSchedule"),) if tainted else ()
    amounts = {"cpu": str(cpu), "memory": "64Gi", "pods": "110"}
    return InstanceType(name, amounts, price, {"size": name}, taints, most)


def bought(plan: Plan) -> dict[str, int]:
    return {node.type: node.count for node in plan.nodes}


def planned(types: list[InstanceType], *objects: KubeObject | PodBuilder | NodeBuilder) -> Plan:
    made = [obj if isinstance(obj, KubeObject) else obj.build() for obj in objects]
    cluster = ClusterModel(made, configuration.default())
    return plan_pool(cluster, cluster.pending(), PriceList(tuple(types)), PlanSearch())


def pods(count: int, cpu: str = "1") -> list[PodBuilder]:
    return [make_pod(f"p{i}-{cpu}").requests(cpu=cpu) for i in range(count)]


def test_mix_of_types_is_cheaper_than_one() -> None:
    plan = planned([offer("small", 2, 1.0), offer("large", 8, 3.0)], *pods(10))
    assert bought(plan) == {"small": 1, "large": 1}
    assert plan.value == plan.cost_after == 4.0
    assert plan.outcome is PlanOutcome.FOUND
    assert "first fit decreasing into small alone costs 5.000" in plan.reason
    assert plan.bound is not None
    assert plan.bound.value <= 4.0


def test_prices_say_what_is_paid_for() -> None:
    plan = planned([offer("small", 2, 1.0)], *pods(10))
    assert plan.bound is not None
    assert [(each.what, each.share) for each in plan.bound.scarce] == [("cpu on small", 1.0)]


def test_room_that_there_is_costs_nothing() -> None:
    plan = planned([offer("small", 2, 1.0)], make_node("there").capacity(cpu=4), *pods(6))
    assert bought(plan) == {"small": 1}
    assert sum(each.node == "there" for each in plan.placements) == 4


def test_new_nodes_do_not_take_names_that_nodes_have() -> None:
    full = [make_node(name).capacity(cpu=1) for name in ("large-0", "large-1", "offer-0")]
    plan = planned([offer("large", 8, 3.0)], *full, *pods(3, cpu="6"))
    assert plan.outcome is PlanOutcome.FOUND
    assert {each.node for each in plan.placements} == {"large-2", "large-3", "large-4"}


def test_selectors_taints_and_anti_affinity_are_heard() -> None:
    apart = [make_pod(f"a{i}").requests(cpu=1).label(app="a").pod_anti_affinity(HOSTNAME, app="a") for i in range(3)]
    cheap_but_tainted = offer("tainted", 8, 0.1, tainted=True)
    chosen = make_pod("chosen").requests(cpu=1).node_selector(size="large")
    plan = planned([cheap_but_tainted, offer("small", 2, 1.0), offer("large", 8, 3.0)], *apart, chosen)
    assert bought(plan) == {"large": 1, "small": 2}


def test_daemons_take_their_share_of_every_new_node() -> None:
    template = make_pod("log").requests(cpu=1).build()
    spec = PodWorkloadSpec(template=PodTemplate(spec=template.spec))
    daemons = DaemonSet(metadata=ObjectMeta(name="log", namespace="default"), spec=spec)
    plan = planned([offer("small", 4, 1.0)], daemons, *pods(6))
    assert bought(plan) == {"small": 2}


def test_types_of_which_there_are_few_are_not_bought_more_often() -> None:
    plan = planned([offer("deal", 8, 0.5, most=1), offer("small", 2, 1.0)], *pods(10))
    assert bought(plan) == {"deal": 1, "small": 1}


def test_pod_that_fits_no_type_is_impossible() -> None:
    plan = planned([offer("small", 2, 1.0)], *pods(1, "3"))
    assert plan.outcome is PlanOutcome.IMPOSSIBLE
    assert plan.reason == "default/p0-3: no type of node that it may go to has 3 cpu"


def test_what_the_engine_refuses_gets_a_node_of_its_own() -> None:
    """The model does not know that these two do not go together."""
    web = make_pod("web").requests(cpu=1).label(app="web").pod_anti_affinity(HOSTNAME, app="db")
    plan = planned([offer("small", 4, 1.0)], make_pod("db").requests(cpu="1100m").label(app="db"), web)
    assert bought(plan) == {"small": 2}
    assert len(plan.placements) == 2


def test_nothing_waits_nothing_is_bought() -> None:
    assert planned([offer("small", 4, 1.0)]).outcome is PlanOutcome.UNCHANGED


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=6), st.lists(st.integers(6, 12), min_size=1, max_size=3))
def test_bound_is_never_above_the_cheapest_of_all_choices(sizes: list[int], cpus: list[int]) -> None:
    types = [offer(f"t{i}", cpu, 0.5 + cpu**0.9) for i, cpu in enumerate(cpus)]
    plan = planned(types, *(make_pod(f"p{i}").requests(cpu=size) for i, size in enumerate(sizes)))
    least = min(
        sum(types[t].price for t in chosen)
        for count in range(1, len(sizes) + 1)
        for chosen in combinations_with_replacement(range(len(types)), count)
        if _fit(sorted(sizes, reverse=True), [cpus[t] for t in chosen])
    )
    assert plan.bound is not None
    assert plan.bound.value <= least + 1e-6 <= plan.value + 2e-6


def _fit(sizes: list[int], rooms: list[int]) -> bool:
    if not sizes:
        return True
    for i in {room: i for i, room in enumerate(rooms) if room >= sizes[0]}.values():
        if _fit(sizes[1:], [*rooms[:i], rooms[i] - sizes[0], *rooms[i + 1 :]]):
            return True
    return False
