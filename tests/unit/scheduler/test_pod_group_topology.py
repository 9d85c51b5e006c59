"""Groups that must stay within one rack: which racks are tried, which is best, what is said if there is none."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.scheduler.group_world import ALPHA, BETA, GroupWorld, make_gang, members

from kubesched.api.pod_groups import PodGroup
from kubesched.scheduler.groups.profile import GroupProfile
from kubesched.testing import NodeBuilder, PodBuilder, make_node, make_pod

RACK = "topology.kubernetes.io/rack"


def rack(name: str, nodes: int, *, cpu: str = "1") -> list[NodeBuilder]:
    return [make_node(f"{name}{i}").capacity(cpu=cpu).label({RACK: name}) for i in range(nodes)]


def in_rack(name: str, min_count: int | None, *, api: str = BETA) -> PodGroup:
    return make_gang(name, min_count, topology=RACK, api=api)


def racks_of(world: GroupWorld, prefix: str) -> set[str]:
    return {world.cluster.pod(name).spec.node_name[0] for name in world.bound(prefix)}


def test_gang_goes_to_the_only_rack_that_has_room_for_all() -> None:
    world = GroupWorld(*rack("a", 2), *rack("b", 3), make_node("none").capacity(cpu="9"), in_rack("g", 3))
    world.see(*members("g", 3))
    world.try_all()
    assert len(world.bound("g")) == 3
    assert racks_of(world, "g") == {"b"}


@pytest.mark.parametrize(
    ("api", "said"),
    [
        (
            BETA,
            "pod group is unschedulable, 0/2 placements are available, first placement status: "
            "minCount (3) cannot be satisfied: 2 scheduled, 0 remaining",
        ),
        (ALPHA, "0/2 placements are available, first placement status: pod group is unschedulable"),
    ],
)
def test_gang_waits_if_no_rack_has_room_for_all(api: str, said: str) -> None:
    world = GroupWorld(*rack("a", 2), *rack("b", 2), in_rack("g", 3, api=api), *members("g", 3))
    world.try_all()
    assert world.bound("g") == []
    assert [world.pods_on(node) for node in ("a0", "a1", "b0", "b1")] == [0] * 4
    condition = world.condition("g")
    assert condition is not None
    assert condition.message.startswith(said)
    assert world.message("g-2") == "0/2 nodes are available: 2 Insufficient cpu."


def test_gang_that_names_a_label_no_node_has_waits() -> None:
    world = GroupWorld(make_node("n"), in_rack("g", 1), *members("g", 1))
    world.try_all()
    assert world.message("g-0").startswith("no feasible placements found")


def test_rack_that_will_be_fuller_is_better() -> None:
    world = GroupWorld(*rack("a", 4), *rack("b", 2), in_rack("g", 2), *members("g", 2))
    world.try_all()
    assert racks_of(world, "g") == {"b"}


def test_rack_with_pods_already_there_is_better() -> None:
    taken = make_pod("taken").requests(cpu="2").on("b0")
    world = GroupWorld(*rack("a", 2, cpu="4"), *rack("b", 2, cpu="4"), taken, in_rack("g", 2), *members("g", 2))
    world.try_all()
    assert racks_of(world, "g") == {"b"}


def test_rack_with_room_for_more_pods_is_better() -> None:
    world = GroupWorld(*rack("a", 2), *rack("b", 3), in_rack("g", 2), *members("g", 3))
    world.try_all()
    assert racks_of(world, "g") == {"b"}
    assert len(world.bound("g")) == 3


def test_two_gangs_go_to_a_rack_each() -> None:
    world = GroupWorld(*rack("a", 2), *rack("b", 2), in_rack("g", 2), in_rack("h", 2))
    world.see(*members("g", 2), *members("h", 2))
    world.try_all()
    assert {frozenset(racks_of(world, "g")), frozenset(racks_of(world, "h"))} == {frozenset("a"), frozenset("b")}


def test_basic_group_places_in_one_rack_what_fits_there_and_no_more() -> None:
    world = GroupWorld(*rack("a", 2), *rack("b", 1), in_rack("g", None), *members("g", 3))
    world.try_all()
    assert len(world.bound("g")) == 2
    assert racks_of(world, "g") == {"a"}
    world.see(*rack("c", 5))
    world.pass_seconds(5)
    world.try_all()
    assert len(world.bound("g")) == 2


def test_later_members_follow_the_earlier_ones() -> None:
    world = GroupWorld(*rack("a", 3), *rack("b", 3), in_rack("g", 2), *members("g", 2))
    world.try_all()
    world.see(*members("g", 1, first=2))
    world.try_all()
    assert len(world.bound("g")) == 3
    assert len(racks_of(world, "g")) == 1


def test_group_that_is_in_two_racks_already_is_an_error() -> None:
    strays: list[PodBuilder] = [make_pod(f"g-{rack_name}").group("g").on(f"{rack_name}0") for rack_name in "ab"]
    world = GroupWorld(*rack("a", 1), *rack("b", 1), in_rack("g", 1), *strays, *members("g", 1))
    world.try_all()
    assert world.message("g-0") == (
        "cannot determine domain for already scheduled pods: more than 1 domain found for pod group: a, b"
    )


def test_anti_affinity_sees_the_nodes_of_other_racks_too() -> None:
    zoned = [node.zone("z") for node in (*rack("a", 1), *rack("b", 1))]
    loner = make_pod("loner").label(app="loner").on("a0")
    shy = make_pod("g-0").group("g").pod_anti_affinity("topology.kubernetes.io/zone", app="loner")
    world = GroupWorld(*zoned, loner, in_rack("g", 1), shy)
    world.try_all()
    assert world.bound("g") == []


@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_the_best_rack_is_the_same_whether_or_not_all_are_tried(data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=3), min_size=2, max_size=4))
    min_count, more = data.draw(st.integers(1, 4)), data.draw(st.integers(0, 2))
    cordoned = data.draw(st.integers(0, 3))

    def outcome() -> tuple[list[str], str]:
        world = GroupWorld(in_rack("g", min_count))
        for i, cpus in enumerate(sizes):
            for j, cpu in enumerate(cpus):
                node = make_node(f"{'abcd'[i]}{j}").capacity(cpu=str(cpu), pods=3).label({RACK: "abcd"[i]})
                world.see(node.cordoned() if i == cordoned else node)
        world.see(*members("g", min_count + more))
        world.try_all()
        placed = [f"{pod} {world.cluster.pod(pod).spec.node_name}" for pod in world.bound("g")]
        condition = world.condition("g")
        return placed, "" if condition is None else condition.message

    estimated = outcome()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(GroupProfile, "_place_by_estimate", lambda *about: None)
        assert outcome() == estimated
