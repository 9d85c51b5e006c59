"""A preemptor is tried again whenever its preemption ends, however it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from tests.unit.scheduler.memory_cluster import Refusal, Running
from tests.unit.scheduler.world import World, names, pop_pod

from kubesched.api.pod import Pod, PodCondition
from kubesched.api.well_known import HOSTNAME
from kubesched.framework.client import ClientError
from kubesched.framework.events import ClusterEvent
from kubesched.scheduler.attempt.attempt import Attempt
from kubesched.scheduler.attempt.binding_cycle import PreBinding
from kubesched.scheduler.handle import SchedulerHandle
from kubesched.scheduler.listener import Listeners, SchedulerListener
from kubesched.scheduler.queue.queued_pod import QueuedPod
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
        while (attempt := pop_pod(world.scheduler)) is not None:
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


def test_victim_whose_name_another_pod_has_counts_as_evicted() -> None:
    """Its uid does not fit. Trying again before the watch shows that would end the same."""
    world, attempt = preempting("a")
    world.cluster.remove(world.cluster.pod("a"))
    world.cluster.put(make_pod("a", uid="made anew").build())
    world.finish(attempt, tell=False)
    assert world.cluster.evicted == []
    assert world.queue.active() == []
    world.cluster.tell(world.scheduler)
    assert is_bound_soon(world, "vip")


def test_conflict_over_a_victim_that_is_still_there_is_no_eviction() -> None:
    world, attempt = preempting("a")
    world.cluster.evict_refusals.append(Refusal("Conflict"))
    world.finish(attempt)
    assert names(world.queue.active()) == ["vip"]


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
    assert pop_pod(world.scheduler) is None


def test_preemptor_waits_for_the_others_when_the_last_victim_left_by_itself() -> None:
    world, attempt = preempting("a", "b", graceful=True)
    last = attempt.victims[-1].pod.name
    world.lose(make_pod(last))
    world.finish(attempt)
    assert names(world.queue.unschedulable()) == ["vip"]
    world.lose(make_pod("a"))
    assert is_bound_soon(world, "vip")


@pytest.mark.parametrize("batched", [True, False])
def test_preemptor_is_tried_again_when_its_victim_changed_while_it_was_held_back(batched: bool) -> None:
    """The departure of a pod that it does not avoid any longer is no help. kube-scheduler overlooks that."""
    avoided = make_pod("avoided").label(app="web").on("node")
    vip = make_pod("vip").pod_anti_affinity(HOSTNAME, app="web").priority(10)
    world = World(make_node("node"), avoided, vip, batched=batched)
    world.cluster.graceful = True
    writing = Running(world.scheduler.finish(world.decided()))
    writing.go_on()
    world.see(avoided.label(app="db"))
    writing.to_the_end()
    world.cluster.tell(world.scheduler)
    assert is_bound_soon(world, "vip") is batched


def test_victims_go_although_a_promise_could_not_be_taken_back() -> None:
    world, attempt = preempting("a")
    promised = make_pod("promised").priority(1).nominated("node")
    world.see(promised)
    world.cluster.remove(promised.build())
    world.finish(attempt, tell=False)
    assert world.cluster.evicted == ["a"]
    assert names(world.queue.active()) == ["vip", "promised"]


class Counting(SchedulerListener):
    """Notes who was woken for nothing, and who came to a place of the queue."""

    def __init__(self) -> None:
        self.held: list[list[str]] = []
        self.moves: list[tuple[str, str]] = []
        self.hinted_about: list[str] = []

    def held_back(self, pods: Sequence[QueuedPod], event: str, seconds: float) -> None:
        self.held.append(names([*pods]))

    def moved(self, queued: QueuedPod, event: str, place: str) -> None:
        self.moves.append((queued.pod.name, place))

    def hinted(self, queued: QueuedPod, plugin: str, event: ClusterEvent, hint: str, seconds: float) -> None:
        self.hinted_about.append(queued.pod.name)


def test_preemptors_whose_victims_are_being_evicted_are_not_moved_about_when_other_pods_leave() -> None:
    """Or every victim of a storm of preemptors would cost a walk of all of them through the queue."""
    strangers = [make_pod(f"stranger-{i}").requests(cpu="1").priority(20).on("elsewhere") for i in range(4)]
    nodes = [make_node(f"n{i}") for i in range(3)]
    fillers = [make_pod(f"on-n{i}-{j}").requests(cpu="2").on(f"n{i}") for i in range(3) for j in range(2)]
    vips = [make_pod(f"vip-{i}").label(each=str(i)).requests(cpu="4").priority(10) for i in range(3)]
    world = World(*nodes, make_node("elsewhere"), *strangers, *fillers, *vips, batched=True)
    writing = [Running(world.scheduler.finish(world.decided())) for _ in vips]
    for each in writing:
        each.go_on()
    assert names(world.queue.unschedulable()) == ["vip-0", "vip-1", "vip-2"]
    world.lose(strangers[0])
    counting = Counting()
    world.scheduler.listeners.append(counting)
    world.lose(strangers[1])
    assert (counting.hinted_about, counting.held, counting.moves) == ([], [], [])
    assert names(world.queue.unschedulable()) == ["vip-0", "vip-1", "vip-2"]
    for each in writing:
        each.to_the_end()
    world.cluster.tell(world.scheduler)
    assert all(is_bound_soon(world, f"vip-{i}") for i in range(3))


async def a_while() -> None:
    for _ in range(100):
        await asyncio.sleep(0)


def test_preemptor_is_held_back_until_the_watch_shows_that_its_last_victim_leaves() -> None:
    """The API server has long said so: but to the cache the victim is there, and an attempt would be in vain."""

    async def run() -> None:
        world, attempt = preempting("a", "b")
        finishing = asyncio.create_task(world.scheduler.finish(attempt))
        await a_while()
        assert sorted(world.cluster.evicted) == ["a", "b"]
        world.cluster.tell(world.scheduler, most=len(world.cluster.unseen) - 1)
        await a_while()
        assert names(world.queue.unschedulable()) == ["vip"]
        assert not finishing.done()
        world.cluster.tell(world.scheduler)
        await finishing
        assert names(world.queue.backoff()) == ["vip"]

    asyncio.run(run())


def test_victims_are_evicted_side_by_side_and_the_last_one_after_the_others() -> None:
    async def run() -> list[set[str]]:
        world, attempt = preempting("a", "b", "c", "d")
        going: set[str] = set()
        together: list[set[str]] = []
        evict = world.cluster.evict

        async def noted(pod: Pod, condition: PodCondition) -> None:
            going.add(pod.name)
            together.append(set(going))
            await evict(pod, condition)
            going.discard(pod.name)

        world.cluster.evict = noted  # type: ignore[method-assign]
        finishing = asyncio.create_task(world.scheduler.finish(attempt))
        await a_while()
        world.cluster.tell(world.scheduler)
        await finishing
        return together

    together = asyncio.run(run())
    assert [len(each) for each in together] == [1, 2, 3, 1]


def test_after_a_write_that_failed_no_other_is_begun_and_those_under_way_are_waited_for() -> None:
    begun, ended = [], []

    async def write(item: int) -> None:
        begun.append(item)
        await a_while()
        if item == 3:
            raise ClientError("InternalError", "refused")
        ended.append(item)

    async def run() -> None:
        handle = SchedulerHandle(PreBinding(), Listeners())
        await handle.for_each(range(100), write)

    with pytest.raises(ClientError):
        asyncio.run(run())
    assert len(begun) < 40
    assert len(ended) == len(begun) - 1
