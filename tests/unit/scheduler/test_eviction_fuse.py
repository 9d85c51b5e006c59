"""The fuse of preemption: nobody evicts in circles."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace
from tests.unit.scheduler.group_world import ALPHA, GroupWorld, make_gang, members
from tests.unit.scheduler.memory_cluster import Refusal
from tests.unit.scheduler.world import World

from kubesched.plugins.default_preemption.fuse import MOST_IN_VAIN, WITHIN
from kubesched.scheduler.listener import SchedulerListener
from kubesched.testing import PodBuilder, make_node, make_pod

NODE = make_node("n").capacity(cpu="1")


class Counted(SchedulerListener):
    """What plugins counted."""

    def __init__(self) -> None:
        self.refused: list[str] = []

    def counted(self, metric: str, labels: Sequence[str]) -> None:
        if metric == "kubesched_preemptions_refused_total":
            self.refused += labels


def world_of(*objects: object, batched: bool = True) -> tuple[World, Counted]:
    world, counted = World(*objects, batched=batched), Counted()  # type: ignore[arg-type]
    world.scheduler.listeners.append(counted)
    return world, counted


def low(i: int) -> PodBuilder:
    return make_pod(f"low-{i}", uid=f"low-{i}").requests(cpu="1").on("n").owned_by("ReplicaSet", "low")


def rob(world: World, rounds: int) -> list[bool]:
    """Another scheduler takes the room that a preemptor makes, again and again: whether each round had a victim."""
    evicted = []
    for i in range(rounds):
        world.see(low(i))
        world.pass_seconds(12)
        world.scheduler.activate(world.cluster.pod("high"))
        evicted.append(bool(world.tried().victims))
    return evicted


def test_pod_that_evicted_in_vain_evicts_no_more() -> None:
    world, counted = world_of(NODE, make_pod("high").requests(cpu="1").priority(10), low(0))
    assert rob(world, MOST_IN_VAIN + 1) == [True] * MOST_IN_VAIN + [False]
    assert counted.refused == ["in vain"]
    condition = world.cluster.pod("high").status.conditions[0]
    assert condition.message.endswith("preemption: refused after 5 in vain for the same pod, owner or group.")
    assert world.scheduler.state.nominated.node_of(world.cluster.pod("high")) == ""


def test_fuse_is_mended_by_time() -> None:
    world, counted = world_of(NODE, make_pod("high").requests(cpu="1").priority(10), low(0))
    rob(world, MOST_IN_VAIN + 1)
    world.pass_seconds(WITHIN)
    world.scheduler.activate(world.cluster.pod("high"))
    assert world.tried().victims
    assert counted.refused == ["in vain"]


def test_kube_scheduler_has_no_fuse() -> None:
    world, counted = world_of(NODE, make_pod("high").requests(cpu="1").priority(10), low(0), batched=False)
    assert rob(world, MOST_IN_VAIN + 2) == [True] * (MOST_IN_VAIN + 2)
    assert counted.refused == []


def test_evictions_that_failed_do_not_count() -> None:
    world, _ = world_of(NODE, make_pod("high").requests(cpu="1").priority(10), low(0))
    world.cluster.evict_refusals += [Refusal("InternalError")] * (MOST_IN_VAIN + 1)
    assert rob(world, MOST_IN_VAIN + 2) == [True] * (MOST_IN_VAIN + 2)


def test_pods_of_one_owner_that_all_find_room_by_preemption_are_not_refused() -> None:
    count = 3 * MOST_IN_VAIN
    victims = [make_pod(f"low-{i}").requests(cpu="1").on("n") for i in range(count)]
    preemptors = [
        make_pod(f"high-{i}").requests(cpu="1").priority(10).owned_by("ReplicaSet", "high") for i in range(count)
    ]
    world, counted = world_of(make_node("n").capacity(cpu=str(count)), *victims, *preemptors)
    for _ in range(15):
        while world.queue.has_next:
            world.tried()
        world.pass_seconds(1)
    assert len([pod for pod in world.cluster.pods.values() if pod.spec.node_name]) == count
    assert counted.refused == []


def test_owner_evicts_only_so_many_of_its_own_pods() -> None:
    count = 2 * MOST_IN_VAIN
    mine = [make_pod(f"old-{i}").requests(cpu="1").on("n").owned_by("ReplicaSet", "mine") for i in range(count)]
    new = [make_pod(f"new-{i}").requests(cpu="1").priority(10).owned_by("ReplicaSet", "mine") for i in range(count)]
    world, counted = world_of(make_node("n").capacity(cpu=str(count)), *mine, *new)
    for _ in range(15):
        while world.queue.has_next:
            world.tried()
        world.pass_seconds(1)
    assert len(world.cluster.evicted) == MOST_IN_VAIN
    assert set(counted.refused) == {"in vain"}


def test_group_and_single_pod_do_not_evict_each_other_without_end() -> None:
    """In v1alpha2 a group preempts by its own priority, and is preempted by that of its pods."""
    world = GroupWorld(NODE, make_gang("g", 1, api=ALPHA, priority=20), batched=True)
    single = make_pod("single").requests(cpu="1").priority(10).owned_by("ReplicaSet", "r")
    for i in range(4 * MOST_IN_VAIN):
        for pod in (*members("g", 1), single):
            if f"default/{pod.build().name}" not in world.cluster.pods:
                built = pod.build()
                world.see(replace(built, metadata=replace(built.metadata, uid=f"{built.name}-{i}")))
        world.try_all()
        world.pass_seconds(20)
        world.try_all()
    assert 0 < len(world.cluster.evicted) <= 2 * MOST_IN_VAIN + 2


def test_evictions_that_are_denied_end() -> None:
    """By a webhook, for one. The preemptor is tried again at once each time, as in kube-scheduler."""
    world, counted = world_of(NODE, make_pod("high").requests(cpu="1").priority(10), low(0))
    world.cluster.evict_refusals += [Refusal("Forbidden")] * 100
    tries = 0
    while world.queue.active():
        world.tried()
        tries += 1
    assert tries == MOST_IN_VAIN + 1
    assert counted.refused == ["in vain"]
