"""Groups in the middle of things: pods come while others are tried, writes fail, another replica takes over."""

from __future__ import annotations

import pytest
from tests.device_builders import device, make_claim, make_class, make_slice, with_claims
from tests.unit.scheduler.group_world import GroupWorld, make_gang, members, nodes
from tests.unit.scheduler.memory_cluster import Refusal, Running
from tests.unit.scheduler.world import names

from kubesched.scheduler.attempt.attempt import AttemptOutcome
from kubesched.testing import HOSTNAME, make_node, make_pod

GANG_OR_BASIC = pytest.mark.parametrize("min_count", [2, None], ids=["gang", "basic"])


# -- pods that come meanwhile ------------------------------------------------------------------------------------------


@GANG_OR_BASIC
def test_pod_that_comes_while_its_group_is_tried_in_vain_is_tried_with_it_next_time(min_count: int | None) -> None:
    world = GroupWorld(*nodes(3), make_gang("g", min_count), *members("g", 2, cpu="9"))
    attempt = world.decided_group()
    world.see(*members("g", 2, first=2))
    world.finish_all(attempt)
    world.pass_seconds(3)
    world.try_all()
    assert world.bound() == ["g-2", "g-3"]


@GANG_OR_BASIC
def test_pod_that_comes_while_its_group_finds_nodes_is_tried_next(min_count: int | None) -> None:
    world = GroupWorld(*nodes(3), make_gang("g", min_count), *members("g", 2))
    running = [Running(world.scheduler.finish(each)) for each in world.decided_group().attempts]
    world.see(*members("g", 1, first=2))
    world.try_all()
    for each in running:
        each.to_the_end()
    world.cluster.tell(world.scheduler)
    assert world.bound() == ["g-0", "g-1", "g-2"]


def test_group_is_tried_again_without_any_change() -> None:
    world = GroupWorld(*nodes(1), make_gang("g", 2), *members("g", 2), make_gang("b", None), *members("b", 2))
    world.try_all()
    seen = {"g": 0, "b": 0}
    for _ in range(3):
        world.pass_seconds(30)
        for attempt in world.try_all():
            seen[attempt.queued.pod.name[0]] += 1
    assert seen["g"] >= 6
    assert seen["b"] >= 3


# -- whose turn is next ------------------------------------------------------------------------------------------------


def in_order(world: GroupWorld) -> list[str]:
    return [attempt.queued.pod.name for attempt in world.try_all()]


def test_after_a_success_with_a_pod_left_over_a_more_important_pod_goes_first() -> None:
    world = GroupWorld(*nodes(2), make_gang("g", 2), *members("g", 3))
    attempt = world.decided_group()
    world.see(make_pod("urgent").priority(10).requests(cpu="9"))
    world.finish_all(attempt)
    assert in_order(world)[:2] == ["urgent", "g-2"]


def test_pod_left_over_keeps_its_place_among_equals() -> None:
    world = GroupWorld(*nodes(2), make_gang("g", 2), *members("g", 3))
    attempt = world.decided_group()
    world.now += 1
    world.see(make_pod("newer").requests(cpu="9"))
    world.finish_all(attempt)
    assert in_order(world)[:2] == ["g-2", "newer"]


def test_group_with_a_pod_that_came_meanwhile_goes_behind_an_older_pod() -> None:
    world = GroupWorld(*nodes(2), make_gang("g", 2), *members("g", 2))
    attempt = world.scheduler.pop()
    assert attempt is not None
    world.now += 1
    world.see(make_pod("older").requests(cpu="9"))
    world.now += 1
    world.see(*members("g", 1, first=2))
    world.scheduler.decide(attempt)
    world.finish_all(attempt)
    assert in_order(world)[:2] == ["older", "g-2"]


def test_pods_of_a_group_do_not_preempt_one_by_one() -> None:
    """Room for one could be made, but not for both: so nobody is evicted."""
    low, high = make_pod("low").requests(cpu="1").on("n0"), make_pod("high").priority(9).requests(cpu="1").on("n1")
    pods = [pod.priority(5) for pod in members("g", 2)]
    world = GroupWorld(*nodes(2), low, high, make_gang("g", 2, priority=5), *pods)
    world.try_all()
    assert world.cluster.evicted == []


# -- what is written before binding fails ------------------------------------------------------------------------------


def with_devices(count: int) -> list[object]:
    """A device on each of so many nodes of one cpu, and a claim for each."""
    offers = [make_slice(f"n{i}", device(f"d{i}")) for i in range(count)]
    return [*nodes(count), make_class(), *offers, *[make_claim(f"c{i}") for i in range(count)]]


def claiming(count: int) -> list[object]:
    return [with_claims(pod, f"c{i}") for i, pod in enumerate(members("g", count))]


@pytest.mark.parametrize(("min_count", "count"), [(2, 2), (None, 2), (1, 1), (None, 1)])
def test_pods_that_fail_before_binding_are_tried_again_and_bound(min_count: int | None, count: int) -> None:
    world = GroupWorld(*with_devices(count), make_gang("g", min_count), *claiming(count))  # type: ignore[arg-type]
    world.cluster.claim_refusals.append(Refusal("InternalError"))
    attempts = world.try_all()
    assert [each.outcome for each in attempts].count(AttemptOutcome.BIND_ERROR) == 1
    world.pass_seconds(3)
    world.try_all()
    assert len(world.bound("g")) == count
    assert world.nothing_is_in_flight()


@pytest.mark.parametrize("min_count", [1, None], ids=["gang", "basic"])
def test_pod_that_fails_before_binding_while_another_has_no_room_is_bound_in_the_end(min_count: int | None) -> None:
    things = with_devices(2)
    world = GroupWorld(*things, make_gang("g", min_count), *claiming(2))  # type: ignore[arg-type]
    blocker = make_pod("x").requests(cpu="1").on("n1")
    world.see(blocker)
    world.cluster.claim_refusals.append(Refusal("InternalError"))
    world.try_all()
    world.pass_seconds(3)
    world.try_all()
    assert len(world.bound("g")) == 1
    world.lose(blocker)
    world.pass_seconds(5)
    world.try_all()
    assert len(world.bound("g")) == 2


def test_all_bindings_of_a_gang_fail_and_it_is_tried_as_a_whole_again() -> None:
    world = GroupWorld(*nodes(3), make_gang("g", 3), *members("g", 3))
    world.cluster.bind_refusals.extend([Refusal("InternalError")] * 3)
    world.try_all()
    assert world.bound() == []
    assert not world.scheduler.state.groups.placed("default/g")
    world.pass_seconds(3)
    world.try_all()
    assert len(world.bound()) == 3


def test_bindings_that_were_made_though_they_seemed_to_fail_count() -> None:
    world = GroupWorld(*nodes(3), make_gang("g", 3), *members("g", 3))
    world.cluster.bind_refusals.extend([Refusal("Timeout", after_commit=True)] * 2)
    world.try_all()
    world.pass_seconds(3)
    world.try_all()
    assert len(world.bound()) == 3
    assert len({world.cluster.pod(name).spec.node_name for name in world.bound()}) == 3


# -- devices -----------------------------------------------------------------------------------------------------------


def test_each_pod_of_a_gang_gets_a_device_of_its_own_or_none_does() -> None:
    things = with_devices(2)
    world = GroupWorld(*things, make_claim("c2"), make_gang("g", 3), *claiming(3))  # type: ignore[arg-type]
    world.try_all()
    assert world.bound() == []
    world.see(make_node("n2").capacity(cpu="1"), make_slice("n2", device("d2")))
    world.pass_seconds(3)
    world.try_all()
    assert len(world.bound()) == 3


def test_members_that_cannot_both_reach_a_shared_claim_wait() -> None:
    pods = [with_claims(pod, "c0").node_selector({HOSTNAME: f"n{i}"}) for i, pod in enumerate(members("g", 2))]
    one = [make_class(), make_slice("n0", device("d")), make_claim("c0")]
    world = GroupWorld(*nodes(2), *one, make_gang("g", 2), *pods)
    world.try_all()
    assert world.bound() == []
    assert "minCount (2) cannot be satisfied" in world.message("g-0")
    assert "1 resourceclaim not available on the node" in world.message("g-1")


# -- another replica takes over ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("written", [0, 1, 2, 3])
def test_gang_that_was_half_bound_when_its_scheduler_died_is_completed_by_the_next(written: int) -> None:
    world = GroupWorld(*nodes(4), make_gang("g", 4), *members("g", 4))
    attempts = world.decided_group().attempts
    for each in attempts[:written]:
        Running(world.scheduler.finish(each)).to_the_end()
    successor = world.taken_over()
    assert len(successor.bound()) == written
    successor.try_all()
    assert len(successor.bound()) == 4
    assert successor.nothing_is_in_flight()


def test_what_is_left_of_a_half_bound_gang_waits_if_its_room_is_gone_and_says_so() -> None:
    world = GroupWorld(*nodes(4), make_gang("g", 4), *members("g", 4))
    for each in world.decided_group().attempts[:2]:
        Running(world.scheduler.finish(each)).to_the_end()
    successor = world.taken_over()
    stranger = make_pod("stranger").requests(cpu="1").on("n2")
    successor.see(stranger)
    successor.try_all()
    assert len(successor.bound("g")) == 2
    waiting = successor.pending("g")
    assert any("3 scheduled, 0 remaining" in successor.message(name) for name in waiting)
    successor.lose(stranger)
    successor.pass_seconds(5)
    successor.try_all()
    assert len(successor.bound("g")) == 4
    assert names(successor.queue.unschedulable()) == []
