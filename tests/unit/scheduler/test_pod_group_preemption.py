"""Groups that make room for themselves, and groups that must leave: who is evicted, who may stay, who is nominated."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from tests import virtual_time
from tests.unit.scheduler.group_world import ALL_GATES, ALPHA, BETA, GroupWorld, make_gang, members, nodes
from tests.unit.scheduler.living import living
from tests.unit.scheduler.memory_cluster import Refusal

from kubesched.api.meta import LabelSelector, ObjectMeta
from kubesched.api.pod_groups import PodGroup
from kubesched.api.release import V1_37
from kubesched.api.workloads import BudgetSpec, BudgetStatus, PodDisruptionBudget
from kubesched.config.features import Features
from kubesched.testing import HOSTNAME, PodBuilder, make_node, make_pod

RACK = "topology.kubernetes.io/rack"
AS_ONE: dict[str, Any] = {"all": {}}


def urgent(name: str, min_count: int | None, priority: int = 100, **more: Any) -> PodGroup:
    return make_gang(name, min_count, priority=priority, **more)


def urgent_pods(name: str, count: int, priority: int = 100, cpu: str = "1") -> list[PodBuilder]:
    return [pod.priority(priority) for pod in members(name, count, cpu=cpu)]


def running(name: str, node: str, *, priority: int = 0, cpu: str = "1") -> PodBuilder:
    return make_pod(name).requests(cpu=cpu).priority(priority).on(node)


def settle(world: GroupWorld) -> None:
    """Until nothing more comes of it."""
    for _ in range(8):
        world.try_all()
        world.pass_seconds(4)


def test_gang_evicts_what_is_in_its_way_and_takes_the_room() -> None:
    world = GroupWorld(*nodes(2), running("low-0", "n0"), running("low-1", "n1"), urgent("g", 2), *urgent_pods("g", 2))
    world.try_all()
    assert sorted(world.cluster.evicted) == ["low-0", "low-1"]
    assert {world.cluster.pod(f"g-{i}").status.nominated_node_name for i in range(2)} == {"n0", "n1"}
    settle(world)
    assert world.bound("g") == ["g-0", "g-1"]
    assert sorted(world.cluster.evicted) == ["low-0", "low-1"]


def test_a_group_that_never_preempts_evicts_nobody_where_groups_have_a_say_in_it() -> None:
    by_group = Features.of({"GenericWorkload": True, "PodGroupPreemptionPolicy": True}, V1_37)
    lesser = (running("low-0", "n0"), running("low-1", "n1"))
    pods = [pod.never_preempting() for pod in urgent_pods("g", 2)]
    world = GroupWorld(*nodes(2), *lesser, urgent("g", 2, preemption_policy="Never"), *pods, features=by_group)
    world.try_all()
    assert world.cluster.evicted == []
    condition = world.condition("g")
    assert condition is not None
    assert "not eligible due to preemptionPolicy=Never" in condition.message


def test_no_more_pods_are_evicted_than_are_in_the_way() -> None:
    world = GroupWorld(
        *nodes(4), *[running(f"low-{i}", f"n{i}") for i in range(3)], urgent("g", 2), *urgent_pods("g", 2)
    )
    settle(world)
    assert len(world.cluster.evicted) == 1
    assert world.bound("g") == ["g-0", "g-1"]


def test_the_least_important_pods_are_evicted() -> None:
    lesser = [running(f"low-{i}", f"n{i}", priority=i) for i in range(4)]
    world = GroupWorld(*nodes(4), *lesser, urgent("g", 2, priority=3), *urgent_pods("g", 2, priority=3))
    world.try_all()
    evicted = set(world.cluster.evicted)
    assert "low-3" not in evicted
    assert len(evicted) == 2


def test_nobody_is_evicted_if_it_would_not_help() -> None:
    world = GroupWorld(*nodes(2), running("low", "n0"), running("high", "n1", priority=500), urgent("g", 2))
    world.see(*urgent_pods("g", 2))
    world.try_all()
    assert world.cluster.evicted == []
    condition = world.condition("g")
    assert condition is not None
    assert "pod group preemption: " in condition.message
    assert world.pods_on("n0") == 1


def test_nobody_is_evicted_for_a_group_whose_pods_say_never() -> None:
    pods = [pod.never_preempting() for pod in urgent_pods("g", 1)]
    world = GroupWorld(*nodes(1), running("low", "n0"), urgent("g", 1), *pods)
    world.try_all()
    assert world.cluster.evicted == []
    condition = world.condition("g")
    assert condition is not None
    assert condition.message.endswith("pod group preemption: not eligible due to preemptionPolicy=Never.")


def test_without_lesser_pods_the_reason_is_that_there_are_no_victims() -> None:
    world = GroupWorld(*nodes(1), running("equal", "n0", priority=100), urgent("g", 1), *urgent_pods("g", 1))
    world.try_all()
    condition = world.condition("g")
    assert condition is not None
    assert condition.message.endswith("pod group preemption: No preemption victims found for incoming preemptor")


@pytest.mark.parametrize(("api", "mode"), [(BETA, AS_ONE), (ALPHA, "PodGroup")])
def test_group_that_is_disrupted_as_one_leaves_as_a_whole(api: str, mode: Any) -> None:
    victim = make_gang("v", 3, disruption_mode=mode, api=api)
    theirs = [running(f"v-{i}", f"n{i}").group("v") for i in range(3)]
    world = GroupWorld(*nodes(3), victim, *theirs, urgent("g", 1, api=api), *urgent_pods("g", 1))
    settle(world)
    assert sorted(world.cluster.evicted) == ["v-0", "v-1", "v-2"]
    assert world.bound("g") == ["g-0"]


def test_group_that_is_disrupted_pod_by_pod_loses_only_what_is_needed() -> None:
    theirs = [running(f"v-{i}", f"n{i}").group("v") for i in range(3)]
    world = GroupWorld(*nodes(3), make_gang("v", 1), *theirs, urgent("g", 1), *urgent_pods("g", 1))
    settle(world)
    assert len(world.cluster.evicted) == 1


def test_single_pods_leave_before_groups_of_the_same_priority() -> None:
    victim = make_gang("v", 2, disruption_mode=AS_ONE)
    theirs = [running(f"v-{i}", f"n{i}").group("v") for i in range(2)]
    world = GroupWorld(*nodes(3), victim, *theirs, running("single", "n2"), urgent("g", 1), *urgent_pods("g", 1))
    world.try_all()
    # The group is placed first, where it likes best; whoever is not in the way there stays.
    assert len(world.cluster.evicted) in (1, 2)
    settle(world)
    assert world.bound("g") == ["g-0"]


def test_pods_that_a_budget_guards_are_spared_where_others_can_leave_instead() -> None:
    budget = PodDisruptionBudget(
        metadata=ObjectMeta(name="b", namespace="default"),
        spec=BudgetSpec(selector=LabelSelector(match_labels={"guarded": "yes"})),
        status=BudgetStatus(disruptions_allowed=0),
    )
    world = GroupWorld(
        make_node("n0").capacity(cpu="2"),
        running("guarded", "n0").label(guarded="yes"),
        running("plain", "n0"),
        budget,
        urgent("g", 1),
        *urgent_pods("g", 1),
    )
    world.try_all()
    assert world.cluster.evicted == ["plain"]


def test_state_is_as_before_after_a_search_for_room_in_vain() -> None:
    world = GroupWorld(*nodes(2, cpu="2"), *[running(f"low-{i}", f"n{i % 2}") for i in range(4)])
    state = world.scheduler.state
    before = [[placed.pod.name for placed in state.pods.pods_on(row)] for row in range(2)]
    world.see(urgent("g", 3), *urgent_pods("g", 3, cpu="2"))
    world.try_all()
    assert world.cluster.evicted == []
    assert [[placed.pod.name for placed in state.pods.pods_on(row)] for row in range(2)] == before
    assert state.nodes.pod_count[:2].tolist() == [2, 2]


def test_group_is_not_tried_while_its_victims_are_being_evicted() -> None:
    world = GroupWorld(*nodes(1), running("low", "n0"), urgent("g", 1), *urgent_pods("g", 1))
    attempt = world.decided_group()
    assert [victim.pod.name for each in attempt.attempts for victim in each.victims] == ["low"]
    world.pass_seconds(30)
    assert world.scheduler.pop() is None
    assert world.queue.unschedulable()[0].gating_plugin == "DefaultPreemption"
    world.finish_all(attempt)
    settle(world)
    assert world.bound("g") == ["g-0"]


def test_victims_that_take_their_time_are_waited_for_and_nobody_else_is_evicted() -> None:
    world = GroupWorld(*nodes(3), *[running(f"low-{i}", f"n{i}") for i in range(3)], urgent("g", 1))
    world.cluster.graceful = True
    world.see(*urgent_pods("g", 1))
    settle(world)
    assert len(world.cluster.evicted) == 1
    condition = world.condition("g")
    assert condition is not None
    assert condition.message.endswith("pod group preemption: ongoing preemption on nominated nodes")


def test_eviction_that_fails_is_tried_again() -> None:
    world = GroupWorld(*nodes(1), running("low", "n0"), urgent("g", 1), *urgent_pods("g", 1))
    world.cluster.evict_refusals.append(Refusal("InternalError"))
    settle(world)
    assert world.bound("g") == ["g-0"]


def test_anti_affinity_of_a_lesser_pod_elsewhere_counts_as_being_in_the_way() -> None:
    zone = "topology.kubernetes.io/zone"
    shy = running("shy", "n0", cpu="1").pod_anti_affinity(zone, app="g")
    world = GroupWorld(make_node("n0").zone("z"), make_node("n1").zone("z"), shy, urgent("g", 1))
    world.see(make_pod("g-0").group("g").label(app="g").priority(100).node_selector({HOSTNAME: "n1"}))
    settle(world)
    assert world.cluster.evicted == ["shy"]
    assert world.bound("g") == ["g-0"]


def test_gang_with_a_topology_makes_room_within_one_rack() -> None:
    racks = [make_node(f"{name}{i}").capacity(cpu="1").label({RACK: name}) for name in "ab" for i in range(2)]
    lesser = [running(f"low-{node.node.name}", node.node.name) for node in racks]
    world = GroupWorld(*racks, *lesser, urgent("g", 2, topology=RACK), *urgent_pods("g", 2))
    settle(world)
    assert len(world.cluster.evicted) == 2
    assert len({world.cluster.pod(f"g-{i}").spec.node_name[0] for i in range(2)}) == 1


@pytest.mark.parametrize(("api", "evicted"), [(BETA, ["v-0", "v-1"]), (ALPHA, ["v-0"])])
def test_single_pod_that_preempts_a_member_takes_the_whole_group_only_in_v1_37(api: str, evicted: list[str]) -> None:
    mode: Any = AS_ONE if api == BETA else "PodGroup"
    theirs = [running(f"v-{i}", f"n{i}").group("v") for i in range(2)]
    world = GroupWorld(*nodes(2), make_gang("v", 2, disruption_mode=mode, api=api), *theirs)
    world.see(make_pod("p").requests(cpu="1").priority(5).node_selector({HOSTNAME: "n0"}))
    settle(world)
    assert sorted(world.cluster.evicted) == evicted
    assert world.bound("p") == ["p"]


def test_member_is_nominated_and_others_do_not_take_its_room() -> None:
    world = GroupWorld(*nodes(1), running("low", "n0"), urgent("g", 1), *urgent_pods("g", 1))
    world.try_all()
    world.see(make_pod("thief").requests(cpu="1").priority(50))
    world.try_all()
    assert world.bound("thief") == []
    settle(world)
    assert world.bound("g") == ["g-0"]


def test_victims_are_on_their_way_before_anything_else_is_decided_if_so_configured() -> None:
    async def at_work() -> tuple[list[str], list[str]]:
        features = replace(ALL_GATES, async_preemption=False)
        async with living(features=features) as world:
            world.see(*nodes(2), running("low-0", "n0"), running("low-1", "n1"), urgent("g", 2), *urgent_pods("g", 2))
            world.see(make_pod("other").requests(cpu="1"))
            for _ in range(8):
                await asyncio.sleep(2)
                world.cluster.tell(world.scheduler)
            return sorted(world.cluster.evicted), sorted(
                pod.name for pod in world.cluster.pods.values() if pod.spec.node_name
            )

    evicted, placed = virtual_time.run(at_work())
    assert evicted == ["low-0", "low-1"]
    assert placed == ["g-0", "g-1"]


def test_group_of_higher_priority_than_its_pods_does_not_evict_its_own_members() -> None:
    """In the API of v1.36 pods have a priority of their own: one member would be evicted for the next, for ever."""
    gang = make_gang("g", 1, api=ALPHA, priority=100)
    world = GroupWorld(*nodes(1, cpu="2"), gang, *members("g", 3))
    for _ in range(20):
        world.try_all()
        world.pass_seconds(2)
    assert world.cluster.evicted == []
    assert (world.bound(), world.pending()) == (["g-0", "g-1"], ["g-2"])
