"""`plan consolidate` with new nodes: many come in the place of many, and the bound is never below what is possible."""

from __future__ import annotations

import random
from itertools import combinations_with_replacement, product

import pytest

from kubesched import config
from kubesched.api.meta import KubeObject, ObjectMeta
from kubesched.planning.consolidate import ConsolidateGoal, plan_consolidate
from kubesched.planning.emptying import PlanSearch
from kubesched.planning.execution import execute
from kubesched.planning.movable import MovingRules
from kubesched.planning.plan import NodeFate, Plan, PlanOutcome
from kubesched.planning.prices import InstanceType
from kubesched.simulate.cluster import ClusterModel
from kubesched.simulate.kinds import DaemonSet, PodTemplate, PodWorkloadSpec
from kubesched.simulate.nodes import INSTANCE_TYPE
from kubesched.testing import NodeBuilder, PodBuilder, make_node, make_pod

pytest.importorskip("highspy", reason="plans need HiGHS")


def offer(name: str, cpu: int, price: float, most: int | None = None) -> InstanceType:
    return InstanceType(
        name, {"cpu": str(cpu), "memory": "64Gi", "pods": "110"}, price, {INSTANCE_TYPE: name}, (), most
    )


def node(name: str, cpu: int, kind: str) -> NodeBuilder:
    return make_node(name).capacity(cpu=cpu, memory="64Gi", pods=110).label({INSTANCE_TYPE: kind})


def pod(name: str, cpu: int, at: str) -> PodBuilder:
    return make_pod(name).requests(cpu=cpu).owned_by("ReplicaSet", "app").on(at)


def planned(
    types: list[InstanceType], *objects: KubeObject | NodeBuilder | PodBuilder, save: float | None = None
) -> tuple[Plan, ClusterModel]:
    made = [obj if isinstance(obj, KubeObject) else obj.build() for obj in objects]
    cluster = ClusterModel(made, config.default())
    prices = {each.name: each.price for each in types}
    goal = ConsolidateGoal(save, tuple(types))
    return plan_consolidate(cluster, goal, prices, MovingRules(), PlanSearch(effort=5)), cluster


def fates(plan: Plan) -> dict[str, str]:
    return {each.name: each.fate.value for each in plan.nodes}


LARGE, SMALL = offer("large", 16, 4.0), offer("small", 4, 0.9)


def test_two_large_nodes_are_replaced_by_two_small_ones() -> None:
    plan, _ = planned(
        [LARGE, SMALL], node("a", 16, "large"), node("b", 16, "large"), pod("p", 3, "a"), pod("q", 3, "b")
    )
    assert plan.outcome is PlanOutcome.FOUND
    assert sorted((each.type, each.fate.value) for each in plan.nodes) == [
        ("large", "replaced"),
        ("large", "replaced"),
        ("small", "added"),
        ("small", "added"),
    ]
    assert plan.cost_before == 8.0
    assert plan.cost_after == pytest.approx(1.8)
    assert plan.value == pytest.approx(6.2)
    assert plan.bound is not None
    assert plan.bound.value >= plan.value


def test_nothing_is_bought_where_others_have_room() -> None:
    plan, _ = planned([LARGE, SMALL], node("a", 16, "large"), node("b", 4, "small"), pod("p", 3, "a"))
    assert fates(plan) == {"a": "freed"}


def test_no_more_are_bought_than_there_are() -> None:
    few = offer("small", 4, 0.9, most=1)
    plan, _ = planned([LARGE, few], *(node(n, 16, "large") for n in "abc"), *(pod(f"p-{n}", 3, n) for n in "abc"))
    assert sum(each.fate is NodeFate.ADDED for each in plan.nodes) <= 1


def test_a_share_is_saved_with_the_fewest_moves() -> None:
    nodes = [node(n, 16, "large") for n in "ab"]
    pods = [pod("p", 3, "a"), *(pod(f"q{i}", 3, "b") for i in range(5))]
    plan, _ = planned([LARGE, SMALL], *nodes, *pods, save=35)
    assert [move.pod for move in plan.moves] == ["default/p"]
    assert fates(plan) == {"a": "replaced", "small-0": "added"}
    assert plan.bound is not None
    assert plan.bound.value == plan.value == 1


def test_daemons_take_their_part_of_new_nodes() -> None:
    template = make_pod("log").requests(cpu=2).build()
    daemons = DaemonSet(
        metadata=ObjectMeta(name="log", namespace="default"),
        spec=PodWorkloadSpec(template=PodTemplate(spec=template.spec)),
    )
    plan, _ = planned([LARGE, SMALL], daemons, node("a", 16, "large"), pod("p", 3, "a"))
    assert plan.outcome is PlanOutcome.UNCHANGED, "three and two are more than four"


class Small:
    """Two nodes with up to five pods, and two types to buy."""

    def __init__(self, seed: int) -> None:
        rng = random.Random(seed)
        self.types = [
            offer(f"t{i}", cpu, round(0.3 + cpu ** rng.choice((0.8, 1.0)), 2)) for i, cpu in enumerate((4, 9))
        ]
        self.rooms = {f"n{i}": rng.choice(((4, "t0"), (9, "t1"))) for i in range(2)}
        self.sizes: dict[str, tuple[int, str]] = {}
        left = {name: cpu for name, (cpu, _) in self.rooms.items()}
        for i in range(5):
            size, name = rng.randint(1, 4), rng.choice(list(self.rooms))
            if size <= left[name]:
                left[name] -= size
                self.sizes[f"p{i}"] = (size, name)

    def objects(self) -> list[NodeBuilder | PodBuilder]:
        nodes = [node(name, cpu, kind) for name, (cpu, kind) in self.rooms.items()]
        return [*nodes, *(pod(name, size, at) for name, (size, at) in self.sizes.items())]

    def least(self) -> float:
        """What the pods cost at least, over all nodes that stay or are bought and all ways to use them."""
        price = {each.name: each.price for each in self.types}
        cpus = {each.name: int(each.allocatable["cpu"]) for each in self.types}
        sizes = sorted((size for size, _ in self.sizes.values()), reverse=True)
        every = [
            [*(kind for stays, (_, kind) in zip(kept, self.rooms.values()) if stays), *bought]
            for kept in product((False, True), repeat=len(self.rooms))
            for count in range(len(sizes) + 1)
            for bought in combinations_with_replacement(price, count)
        ]
        return min(sum(map(price.__getitem__, kinds)) for kinds in every if fit(sizes, [cpus[k] for k in kinds]))


def fit(sizes: list[int], rooms: list[int]) -> bool:
    if not sizes:
        return True
    return any(
        fit(sizes[1:], [*rooms[:i], rooms[i] - sizes[0], *rooms[i + 1 :]])
        for i in {room: i for i, room in enumerate(rooms) if room >= sizes[0]}.values()
    )


@pytest.mark.parametrize("seed", range(40))
def test_no_replacement_beats_the_bound_and_all_execute(seed: int) -> None:
    small = Small(seed)
    plan, cluster = planned(small.types, *small.objects())
    assert plan.bound is not None
    assert plan.cost_before is not None
    assert plan.cost_before - plan.bound.value <= small.least() + 1e-6
    if plan.outcome is PlanOutcome.FOUND:
        assert plan.cost_after is not None
        assert plan.cost_after >= small.least() - 1e-6
        names = {each.name for each in plan.nodes if each.fate is NodeFate.ADDED}
        assert names == {move.to_node for move in plan.moves} - set(small.rooms)
        types = {each.name: each.type for each in plan.nodes}
        new = [node(name, 4 if types[name] == "t0" else 9, types[name]).build() for name in names]
        assert execute(cluster, plan, nominate=True, new=new).is_as_planned
