"""A group whose decision cannot be made at once: extenders have to be asked first, or it takes long."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pytest
from tests import virtual_time
from tests.device_builders import DRIVER, device, make_claim, make_class, make_slice, request, with_claims
from tests.unit.scheduler.group_world import GroupWorld, make_gang, members, nodes

from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.framework.budget import Budget, Expense
from kubesched.framework.extender import ExtenderError, Filtered, NodeVictims, SparedVictims
from kubesched.scheduler.attempt.attempt import Asking, Paused
from kubesched.scheduler.groups.group_attempt import NotedDraws
from kubesched.scheduler.loop import SchedulingLoop
from kubesched.testing import make_node, make_pod

RACK = "topology.kubernetes.io/rack"


@dataclass
class MemoryExtender:
    """Lets pods go where it is told to, and notes what it was asked."""

    name: str = "memory"
    refuses: set[str] = field(default_factory=set)
    prefers: str = ""
    fails_for: set[str] = field(default_factory=set)
    refuses_to_bind: set[str] = field(default_factory=set)
    ignorable: bool = False
    weight: int = 100
    filters: bool = True
    prioritizes: bool = True
    preempts: bool = False
    binds: bool = False
    keeps_accounts: bool = False
    asked: list[tuple[str, str, tuple[str, ...]]] = field(default_factory=list)

    def is_interested(self, pod: Pod) -> bool:
        return True

    async def filter(self, pod: Pod, nodes: Sequence[Node]) -> Filtered:
        names = self._note("filter", pod, nodes)
        if pod.name in self.fails_for:
            raise ExtenderError("it broke")
        refused = {name: "not here" for name in names if name in self.refuses}
        return Filtered(frozenset(names) - refused.keys(), refused, {})

    async def prioritize(self, pod: Pod, nodes: Sequence[Node]) -> Mapping[str, int]:
        names = self._note("prioritize", pod, nodes)
        return {name: 10 for name in names if name == self.prefers}

    async def process_preemption(self, pod: Pod, victims: Mapping[str, NodeVictims]) -> Mapping[str, SparedVictims]:
        raise NotImplementedError

    async def bind(self, pod: Pod, node_name: str) -> None:
        if pod.name in self.refuses_to_bind:
            self.refuses_to_bind.remove(pod.name)
            raise ExtenderError("not today")
        self.bound_by_it.append(pod.name)

    bound_by_it: list[str] = field(default_factory=list)

    def _note(self, verb: str, pod: Pod, nodes: Sequence[Node]) -> tuple[str, ...]:
        names = tuple(node.name for node in nodes)
        self.asked.append((verb, pod.name, names))
        return names

    def verbs(self, pod: str) -> list[str]:
        return [verb for verb, name, _ in self.asked if name == pod]


def placed(world: GroupWorld, prefix: str = "g") -> dict[str, str]:
    return {name: world.cluster.pod(name).spec.node_name for name in world.bound(prefix)}


# -- extenders ---------------------------------------------------------------------------------------------------------


def test_all_pods_of_a_gang_are_asked_about_at_once_and_nothing_is_assumed_meanwhile() -> None:
    extender = MemoryExtender()
    world = GroupWorld(*nodes(4), make_gang("g", 4), *members("g", 4), extenders=[extender])
    attempt = world.decided_group()
    assert isinstance(attempt.state, Asking)
    assert len(attempt.state.questions) == 4
    assert not world.scheduler.state.groups.placed("default/g")
    world.answer(attempt)
    world.scheduler.decide(attempt)
    assert world.answer(attempt) == 4, "of scores"
    world.scheduler.decide(attempt)
    world.finish_all(attempt)
    assert len(world.bound()) == 4
    assert all(extender.verbs(f"g-{i}") == ["filter", "prioritize"] for i in range(4))


def test_a_gang_goes_only_where_extenders_let_its_pods_go_or_nowhere() -> None:
    extender = MemoryExtender(refuses={"n3"})
    world = GroupWorld(*nodes(4), make_gang("g", 4), *members("g", 4), extenders=[extender])
    world.try_all()
    assert world.bound() == []
    assert not world.scheduler.state.groups.placed("default/g")
    extender.refuses.clear()
    world.pass_seconds(3)
    world.try_all()
    assert len(world.bound()) == 4


def test_the_first_pod_gets_what_an_extender_prefers_and_the_next_something_else() -> None:
    world = GroupWorld(*nodes(3), make_gang("g", 3), *members("g", 3), extenders=[MemoryExtender(prefers="n2")])
    world.try_all()
    assert placed(world)["g-0"] == "n2"
    assert len(set(placed(world).values())) == 3


def test_every_rack_is_asked_about_and_the_one_taken_where_the_gang_may_go() -> None:
    racks = [make_node(f"{rack}{i}").capacity(cpu="1").label({RACK: rack}) for rack in "abc" for i in range(2)]
    extender = MemoryExtender(refuses={"a0", "c1"})
    world = GroupWorld(*racks, make_gang("g", 2, topology=RACK), *members("g", 2), extenders=[extender])
    world.try_all()
    assert sorted(placed(world).values()) == ["b0", "b1"]


def test_an_extender_that_fails_for_one_pod_fails_the_group_and_one_that_may_be_ignored_does_not() -> None:
    for ignorable in (False, True):
        extender = MemoryExtender(fails_for={"g-1"}, ignorable=ignorable)
        world = GroupWorld(*nodes(2), make_gang("g", 2), *members("g", 2), extenders=[extender])
        world.try_all()
        assert len(world.bound()) == (2 if ignorable else 0)
        condition = world.condition("g")
        assert condition is not None
        assert condition.reason == ("Scheduled" if ignorable else "SchedulerError")


def test_what_was_said_of_nodes_holds_though_others_came_while_extenders_were_asked() -> None:
    extender = MemoryExtender()
    world = GroupWorld(*nodes(2), make_gang("g", 2), *members("g", 2), extenders=[extender])
    attempt = world.decided_group()
    world.answer(attempt)
    world.see(make_node("late").capacity(cpu="1"))
    world.scheduler.decide(attempt)
    world.answer(attempt)
    world.scheduler.decide(attempt)
    assert not isinstance(attempt.state, Asking)
    assert {each.node for each in attempt.attempts} == {"n0", "n1"}


def test_nodes_taken_while_extenders_were_asked_are_made_up_for_by_others() -> None:
    extender = MemoryExtender()
    world = GroupWorld(*nodes(2), make_gang("g", 2), *members("g", 2), extenders=[extender])
    attempt = world.decided_group()
    world.answer(attempt)
    world.see(make_pod("x").requests(cpu="1").on("n0"), *[make_node(f"late{i}").capacity(cpu="1") for i in range(2)])
    for _ in range(6):
        world.scheduler.decide(attempt)
        if not isinstance(attempt.state, Asking):
            break
        world.answer(attempt)
    nodes_taken = {each.node for each in attempt.attempts}
    assert len(nodes_taken) == 2
    assert "n0" not in nodes_taken
    assert "" not in nodes_taken


def test_a_gang_preempts_only_where_extenders_let_its_pods_go() -> None:
    extender = MemoryExtender(refuses={"n0"})
    low = [make_pod(f"low-{i}").requests(cpu="1").on(f"n{i}") for i in range(3)]
    gang = make_gang("g", 2, priority=5)
    pods = [pod.priority(5) for pod in members("g", 2)]
    world = GroupWorld(*nodes(3), *low, gang, *pods, extenders=[extender])
    world.try_all()
    assert sorted(world.cluster.evicted) == ["low-1", "low-2"]
    world.pass_seconds(5)
    world.try_all()
    assert sorted(placed(world).values()) == ["n1", "n2"]


def test_pod_deleted_while_extenders_are_asked_is_left_out_once() -> None:
    leaving, *others = members("g", 3)
    world = GroupWorld(*nodes(3), make_gang("g", 2), leaving, *others, extenders=[MemoryExtender()])
    attempt = world.decided_group()
    world.cluster.terminate(world.cluster.pod("g-0"))
    world.cluster.tell(world.scheduler)
    while isinstance(attempt.state, Asking):
        world.answer(attempt)
        world.scheduler.decide(attempt)
    world.finish_all(attempt)
    assert world.bound() == ["g-1", "g-2"]
    assert world.cluster.notes.count("FailedScheduling g-0") == 1
    assert world.nothing_is_in_flight()


def test_group_deleted_while_extenders_are_asked_parks_its_pods() -> None:
    gang = make_gang("g", 2)
    world = GroupWorld(*nodes(2), gang, *members("g", 2), extenders=[MemoryExtender()])
    attempt = world.decided_group()
    world.cluster.remove(gang)
    world.cluster.tell(world.scheduler)
    world.answer(attempt)
    world.scheduler.decide(attempt)
    world.finish_all(attempt)
    assert world.bound() == []
    assert len(world.groups.incomplete()) == 2


def test_pod_that_an_extender_refuses_to_bind_comes_back_and_is_bound_alone() -> None:
    extender = MemoryExtender(binds=True, refuses_to_bind={"g-1"})
    world = GroupWorld(*nodes(2), make_gang("g", 2), *members("g", 2), extenders=[extender])
    world.try_all()
    assert extender.bound_by_it == ["g-0"]
    world.pass_seconds(3)
    world.try_all()
    assert extender.bound_by_it == ["g-0", "g-1"]


def test_groups_and_single_pods_take_turns_while_an_extender_is_slow() -> None:
    """On the loop that runs them live: each question takes a second, and outcomes come in the order of the queue."""

    class Slow(MemoryExtender):
        async def filter(self, pod: Pod, nodes: Sequence[Node]) -> Filtered:
            await asyncio.sleep(1)
            return await super().filter(pod, nodes)

    async def story() -> None:
        extender = Slow()
        world = GroupWorld(*nodes(7), extenders=[extender])
        world.see(make_gang("g", 3), *members("g", 3))
        world.see(make_pod("alone").requests(cpu="1"))
        world.see(make_gang("h", 3), *members("h", 3))
        loop = SchedulingLoop(world.scheduler)
        running = asyncio.create_task(loop.run())
        before = asyncio.get_running_loop().time()
        while len(world.bound()) < 7:
            await asyncio.sleep(0.1)
            world.cluster.tell(world.scheduler)
            assert asyncio.get_running_loop().time() < before + 10, "questions about a group are asked side by side"
        await loop.stop(within=1)
        await running
        assert loop.unfinished == 0
        assert world.nothing_is_in_flight()

    virtual_time.run(story())


# -- long decisions ----------------------------------------------------------------------------------------------------

UNIQUE = f'device.attributes["{DRIVER}"].serial >= 0'
SLOW = f"lists.range(60).all(x, lists.range(60).all(y, x + y >= 0)) && {UNIQUE}"


class SlowWorld(GroupWorld):
    """A little time passes with every look at the budget; four nodes have devices that take long to judge."""

    def __init__(self, count: int) -> None:
        self.looks = 0
        budget = Budget(self._look, turn=0.05, limit=1.0)
        super().__init__(make_class(), budget=budget)
        for i in range(4):
            judged = [device(f"d{i}-{j}", serial=10 * i + j) for j in range(2)]
            self.see(make_node(f"n{i}").capacity(cpu="1"), make_slice(f"n{i}", *judged))
        self.see(*[make_claim(f"c{i}", request("r", 1, SLOW)) for i in range(count)])
        self.see(make_gang("g", count), *[with_claims(pod, f"c{i}") for i, pod in enumerate(members("g", count))])

    def _look(self) -> float:
        self.looks += 1
        return self.looks * 0.02


def test_group_that_takes_long_pauses_with_nothing_assumed_and_is_decided_in_the_end() -> None:
    world = SlowWorld(4)
    attempt = world.decided_group()
    turns = 0
    while isinstance(attempt.state, Paused):
        assert not world.scheduler.state.groups.placed("default/g")
        turns += 1
        assert turns < 200, "it never ends"
        world.scheduler.decide(attempt)
    world.finish_all(attempt)
    assert turns > 1
    assert len(world.bound("g")) == 4


def test_others_are_decided_while_a_group_is_paused() -> None:
    world = SlowWorld(3)
    attempt = world.decided_group()
    assert isinstance(attempt.state, Paused)
    world.see(make_pod("quick").requests(cpu="1"))
    assert world.tried().node == "n0"
    while isinstance(attempt.state, Paused):
        world.scheduler.decide(attempt)
    world.finish_all(attempt)
    assert len(world.bound("g")) == 3


def test_draws_of_a_turn_that_was_interrupted_are_made_again() -> None:
    numbers = iter(range(100))
    draws = NotedDraws(lambda among: next(numbers) % among)
    first = draws.begin()
    assert [draws(5) for _ in range(3)] == [0, 1, 2]
    draws.end()
    draws.begin(first)
    assert [draws(5) for _ in range(4)] == [0, 1, 2, 3]
    draws.end()
    assert draws(10) == 4


@pytest.mark.parametrize("parts", [1, 4])
def test_limit_of_a_plugin_holds_for_all_pods_of_a_group_together(parts: int) -> None:
    now = 0.0
    budget = Budget(lambda: now, turn=100.0)
    with budget.together(0.0, parts):
        for _ in range(parts):
            budget.begin(0.0)
            assert not budget.is_exceeded(1.0, Expense("p", "x"))
            now += 0.9
        now += 0.2 * parts
        assert budget.is_exceeded(1.0, Expense("p", "x"))
