"""A pod whose decision takes long: others get their turn, and it goes on, until it is decided or given up."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Sequence

import numpy as np
from tests import virtual_time
from tests.device_builders import DRIVER, device, make_claim, make_class, make_slice, request, with_claims
from tests.unit.scheduler.memory_cluster import MemoryCluster, Running
from tests.unit.scheduler.world import pop_pod

from kubesched import config
from kubesched.api.meta import KubeObject
from kubesched.framework.budget import Budget, Expense
from kubesched.framework.cycle import Cycle
from kubesched.framework.nodes import Nodes
from kubesched.framework.plugin import FilterPlugin, Plugin
from kubesched.framework.registry import Registry
from kubesched.plugins.registry import IN_TREE
from kubesched.scheduler.assembly import SchedulerSettings, build_scheduler
from kubesched.scheduler.attempt.attempt import Attempt, Paused
from kubesched.scheduler.attempt.waiting_attempts import PausedAttempts
from kubesched.scheduler.listener import SchedulerListener
from kubesched.scheduler.loop import SchedulingLoop
from kubesched.scheduler.recording import Recording, RecordingClient
from kubesched.scheduler.replay import Replay
from kubesched.state.columns import Int32
from kubesched.testing import NodeBuilder, PodBuilder, make_node, make_pod

UNIQUE = f'device.attributes["{DRIVER}"].serial >= 0'
SLOW = f"lists.range(60).all(x, lists.range(60).all(y, x + y >= 0)) && {UNIQUE}"
"""Some thirty thousand units of cost for each device, all of which are different to it: seven looks at the clock."""
EXCEEDED = "kubesched_decision_budget_exceeded_total"
A_LOOK = 0.02


class World(SchedulerListener):
    """A scheduler to which a little time passes with every look at the budget."""

    def __init__(self, *plugins: type[Plugin], limit: float = 1.0, record: io.StringIO | None = None) -> None:
        self.cluster = MemoryCluster()
        self.looks = 0
        self.turns: list[str] = []
        self.decided_pods: list[str] = []
        self.counts: list[tuple[str, Sequence[str]]] = []
        enabled = {"enabled": [{"name": plugin.name} for plugin in plugins]}
        plain = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
        configuration = config.from_plain({**plain, "profiles": [{"plugins": {"multiPoint": enabled}}]})
        recording = None if record is None else Recording(record, configuration, lambda: 0.0)
        self.registry = Registry((*IN_TREE, *plugins))
        self.scheduler = build_scheduler(
            SchedulerSettings(
                clock=lambda: 0.0, draw=lambda among: 0, budget=Budget(self._look, turn=0.05, limit=limit)
            ),
            configuration,
            self.cluster if recording is None else RecordingClient(self.cluster, recording),
            self.registry,
            listeners=(self,) if recording is None else (self, recording),
        )

    def _look(self) -> float:
        self.looks += 1
        return self.looks * A_LOOK

    def decided(self, attempt: Attempt) -> None:
        self.decided_pods.append(attempt.queued.pod.name)

    def counted(self, metric: str, labels: Sequence[str]) -> None:
        self.counts.append((metric, labels))

    def see(self, *objects: NodeBuilder | PodBuilder | KubeObject) -> None:
        for each in objects:
            self.cluster.put(each if isinstance(each, KubeObject) else each.build())
        self.cluster.tell(self.scheduler)

    def decide_in_turns(self) -> tuple[Attempt, int]:
        """One attempt to its decision, and how often it was paused."""
        attempt = pop_pod(self.scheduler)
        assert attempt is not None
        pauses = 0
        self.scheduler.decide(attempt)
        while isinstance(attempt.state, Paused):
            pauses += 1
            assert pauses < 1000
            self.scheduler.decide(attempt)
        Running(self.scheduler.finish(attempt)).to_the_end()
        return attempt, pauses


def devices(number: int, first: int = 0) -> tuple[object, ...]:
    return tuple(device(f"d{i}", serial=i) for i in range(first, first + number))


def slow_cluster(world: World, nodes: int = 2, per_node: int = 4) -> None:
    world.see(make_class())
    for i in range(nodes):
        world.see(make_node(f"n{i}"), make_slice(f"n{i}", *devices(per_node, i * per_node)))  # type: ignore[arg-type]


def test_an_expensive_selector_is_evaluated_in_many_turns_and_then_the_pod_is_bound() -> None:
    world = World()
    slow_cluster(world)
    world.see(make_claim("c", request("r", 4, SLOW)), with_claims(make_pod("p"), "c"))
    attempt, pauses = world.decide_in_turns()
    assert attempt.outcome == "bound"
    assert pauses >= 4
    assert world.counts == [(EXCEEDED, ("DynamicResources", "the devices of its claims", "paused"))] * pauses


def test_after_the_filter_timeout_the_pod_fails_in_kube_schedulers_words() -> None:
    world = World()
    slow_cluster(world, nodes=1, per_node=100)
    world.see(make_claim("c", request("r", 32, f"!({SLOW})")), with_claims(make_pod("p"), "c"))
    attempt, _ = world.decide_in_turns()
    assert attempt.failure is not None
    assert attempt.failure.message == (
        'running "DynamicResources" filter plugin: node n0: timed out trying to allocate devices'
    )
    assert attempt.outcome == "error"
    assert attempt.spent < 10.1
    assert world.counts[-1] == (EXCEEDED, ("DynamicResources", "the devices of its claims", "given up"))


def test_what_was_found_out_before_the_timeout_helps_the_next_attempt() -> None:
    world = World()
    slow_cluster(world, nodes=1, per_node=100)
    world.see(make_claim("c", request("r", 32, f"!({SLOW})")), with_claims(make_pod("p"), "c"))
    world.decide_in_turns()
    first = world.looks
    world.see(with_claims(make_pod("q"), "c"))
    attempt, _ = world.decide_in_turns()
    assert attempt.outcome == "unschedulable"
    assert world.looks - first < first


def test_other_pods_are_decided_while_a_search_goes_on() -> None:
    async def story() -> None:
        world = World()
        slow_cluster(world)
        world.see(make_claim("c", request("r", 4, SLOW)), with_claims(make_pod("hostile"), "c").priority(100))
        world.see(*(make_pod(f"p{i}") for i in range(20)))
        loop = SchedulingLoop(world.scheduler)
        running = asyncio.create_task(loop.run())
        await asyncio.sleep(1)
        await loop.stop(within=1)
        await running
        assert world.decided_pods == [*(f"p{i}" for i in range(20)), "hostile"]
        assert loop.unfinished == 0

    virtual_time.run(story())


def test_pods_that_ask_for_the_same_do_not_each_keep_others_waiting() -> None:
    world = World()
    slow_cluster(world)
    for i in range(10):
        world.see(make_claim(f"c{i}", request("r", 4, SLOW)), with_claims(make_pod(f"p{i}"), f"c{i}"))
    looks = []
    for _ in range(10):
        attempt = pop_pod(world.scheduler)
        assert attempt is not None
        before = world.looks
        world.scheduler.decide(attempt)
        assert isinstance(attempt.state, Paused)
        looks.append(world.looks - before)
    assert looks[0] > 2
    assert max(looks[1:]) <= 1


def test_a_pod_that_is_deleted_while_it_is_paused_is_skipped() -> None:
    world = World()
    slow_cluster(world)
    pod = with_claims(make_pod("p"), "c").build()
    world.see(make_claim("c", request("r", 4, SLOW)), pod)
    attempt = pop_pod(world.scheduler)
    assert attempt is not None
    world.scheduler.decide(attempt)
    assert isinstance(attempt.state, Paused)
    world.cluster.remove(pod)
    world.cluster.tell(world.scheduler)
    world.scheduler.decide(attempt)
    assert attempt.outcome == "skipped"


class Endless(FilterPlugin):
    """Looks at its budget, and keeps nothing."""

    name = "Endless"

    def filter(self, cycle: Cycle, nodes: Nodes) -> Int32:
        if "endless" in cycle.pod.metadata.labels:
            while True:
                cycle.budget.check(Expense(self.name, "its labels"))
        return np.zeros(len(nodes), dtype=np.int32)


def test_a_decision_that_cannot_go_on_later_is_given_up_and_the_pod_says_why() -> None:
    world = World(Endless)
    world.see(make_node("n"), make_pod("p").label(endless="yes"))
    attempt, pauses = world.decide_in_turns()
    assert pauses == 0
    assert attempt.outcome == "error"
    condition = world.cluster.pod("p").status.conditions[0]
    assert condition.message == "gave up after 1s: Endless takes too long for its labels"
    assert world.counts == [(EXCEEDED, ("Endless", "its labels", "given up"))]
    assert not world.scheduler.queue.unschedulable()


def test_a_recording_of_a_decision_that_was_paused_or_given_up_replays_the_same() -> None:
    stream = io.StringIO()
    world = World(Endless, record=stream)
    slow_cluster(world, nodes=1, per_node=100)
    world.see(make_claim("c", request("r", 32, f"!({SLOW})")), with_claims(make_pod("p"), "c"))
    assert world.decide_in_turns()[0].outcome == "error"
    world.see(make_pod("q").label(endless="yes"))
    assert world.decide_in_turns()[0].outcome == "error"
    world.see(make_claim("d", request("r", 4, SLOW)), with_claims(make_pod("r"), "d"))
    attempt, pauses = world.decide_in_turns()
    assert (attempt.outcome, pauses > 0) == ("bound", True)
    assert Replay(stream.getvalue().splitlines(), world.registry).run() == []


# -- whose turn it is -------------------------------------------------------------------------------------------------


def test_paused_attempts_take_turns_and_half_of_the_time() -> None:
    world = World()
    world.see(make_node("n"), make_pod("a"), make_pod("b"))
    a, b = pop_pod(world.scheduler), pop_pod(world.scheduler)
    assert a is not None
    assert b is not None
    paused = PausedAttempts()
    paused.add(a, now=10.0, took=0.05)
    assert not paused.is_due(10.04)
    assert paused.is_due(10.06)
    paused.add(b, now=10.06, took=0.2)
    assert not paused.is_due(10.2)
    assert paused.is_due(10.27)
    assert (paused.take(), paused.take(), paused.take()) == (a, b, None)
