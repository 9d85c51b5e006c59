"""A preemptor is tried again whenever its preemption ends, however it ends."""

from __future__ import annotations

import pytest
from tests.unit.scheduler.memory_cluster import Refusal, Running
from tests.unit.scheduler.world import World, names

from kubesched.scheduler.attempt.attempt import Attempt
from kubesched.testing import make_node, make_pod


def preempting(*victims: str, graceful: bool = False) -> tuple[World, Attempt]:
    """A full node, and an attempt of a more important pod that has decided who must go."""
    cpu = str(4 // len(victims))
    placed = [
        make_pod(name).requests(cpu=cpu).on("node").started(f"2026-01-01T00:00:0{i}Z") for i, name in enumerate(victims)
    ]
    world = World(make_node("node"), *placed, make_pod("vip").requests(cpu="4").priority(10))
    world.cluster.graceful = graceful
    attempt = world.decided()
    assert {victim.pod.name for victim in attempt.victims} == {*victims}
    return world, attempt


def is_bound_soon(world: World, name: str) -> bool:
    """Without waiting for the leftovers to be flushed."""
    for _ in range(15):
        world.now += 1
        world.scheduler.flush_backoff()
        while (attempt := world.scheduler.pop()) is not None:
            world.scheduler.decide(attempt)
            world.finish(attempt)
    return bool(world.cluster.pod(name).spec.node_name)


@pytest.mark.parametrize("watch", ["at once", "late"])
def test_preemptor_is_tried_again_when_its_victims_are_gone(watch: str) -> None:
    world, attempt = preempting("a", "b")
    writing = Running(world.scheduler.finish(attempt))
    while not writing.is_over:
        writing.go_on()
        if watch == "at once":
            world.cluster.tell(world.scheduler)
    world.cluster.tell(world.scheduler)
    assert is_bound_soon(world, "vip")


@pytest.mark.parametrize("victims", [("a",), ("a", "b")])
def test_preemptor_is_tried_again_at_once_when_an_eviction_fails(victims: tuple[str, ...]) -> None:
    world, attempt = preempting(*victims)
    world.cluster.evict_refusals.append(Refusal("InternalError"))
    world.finish(attempt)
    assert names(world.queue.active()) == ["vip"]


def test_victim_that_is_gone_already_counts_as_evicted() -> None:
    world, attempt = preempting("a", "b")
    world.cluster.evict_refusals.append(Refusal("NotFound"))
    world.finish(attempt)
    assert len(world.cluster.evicted) == 1


@pytest.mark.parametrize("victims", [("a", "b"), ("a", "b", "c", "d")])
def test_preemptor_is_tried_again_when_all_its_victims_left_by_themselves_meanwhile(victims: tuple[str, ...]) -> None:
    """Their departure was told while the preemptor was held back, so nothing else will wake it."""
    world, attempt = preempting(*victims)
    writing = Running(world.scheduler.finish(attempt))
    writing.go_on()
    for name in victims:
        world.lose(make_pod(name))
    writing.to_the_end()
    world.cluster.tell(world.scheduler)
    assert world.cluster.evicted == []
    assert is_bound_soon(world, "vip")


def test_preemptor_is_tried_again_when_the_last_victim_leaves_by_itself_before_its_turn() -> None:
    world, attempt = preempting("a", "b")
    last = attempt.victims[-1].pod.name
    writing = Running(world.scheduler.finish(attempt))
    while not world.cluster.evicted:
        writing.go_on()
        world.cluster.tell(world.scheduler)
    world.lose(make_pod(last))
    writing.to_the_end()
    assert is_bound_soon(world, "vip")


def test_preemptor_waits_until_its_victims_have_terminated() -> None:
    world, attempt = preempting("a", graceful=True)
    world.finish(attempt)
    world.pass_seconds(301)
    assert world.tried().victims == ()
    assert world.cluster.evicted == ["a"]
    world.lose(make_pod("a"))
    assert is_bound_soon(world, "vip")


def test_preemptor_deleted_during_its_preemption_is_forgotten() -> None:
    world, attempt = preempting("a", "b")
    world.lose(make_pod("vip"))
    world.finish(attempt)
    assert world.nothing_is_in_flight()
    assert world.queue.unschedulable() == []
    assert world.scheduler.pop() is None


def test_preemptor_waits_for_the_others_when_the_last_victim_left_by_itself() -> None:
    world, attempt = preempting("a", "b", graceful=True)
    last = attempt.victims[-1].pod.name
    world.lose(make_pod(last))
    world.finish(attempt)
    assert names(world.queue.unschedulable()) == ["vip"]
    world.lose(make_pod("a"))
    assert is_bound_soon(world, "vip")


def test_victims_go_although_a_promise_could_not_be_taken_back() -> None:
    world, attempt = preempting("a")
    promised = make_pod("promised").priority(1).nominated("node")
    world.see(promised)
    world.cluster.remove(promised.build())
    world.finish(attempt, tell=False)
    assert world.cluster.evicted == ["a"]
    assert names(world.queue.active()) == ["vip", "promised"]
