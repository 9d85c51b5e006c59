"""While an extender answers, the scheduler goes on: other pods, the order of outcomes, a cluster that moves on."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence

import pytest
from tests import virtual_time
from tests.builders import Json
from tests.unit.extenders.extender_server import ExtenderServer, filtering, settings
from tests.unit.scheduler.memory_cluster import MemoryCluster

from kubesched import config
from kubesched.api.meta import KubeObject
from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.extenders.http_extender import close_all, extenders_of
from kubesched.framework.extender import Extender, ExtenderError, Filtered, NodeVictims, SparedVictims
from kubesched.plugins.registry import in_tree
from kubesched.scheduler.assembly import SchedulerSettings, build_scheduler
from kubesched.scheduler.attempt.attempt import Attempt
from kubesched.scheduler.attempt.waiting_attempts import AT_MOST
from kubesched.scheduler.listener import SchedulerListener
from kubesched.scheduler.loop import SchedulingLoop
from kubesched.testing import NodeBuilder, PodBuilder, make_node, make_pod

A_MOMENT = 0.1
"""In virtual time: enough for all that does not wait for an extender."""


class Thinking:
    """An extender that answers about a pod when a test says so. It cares only for pods with the label `ask`."""

    def __init__(self, *verbs: str, keeps_accounts: bool = False, ignorable: bool = False) -> None:
        self.name = "thinking"
        self.ignorable = ignorable
        self.weight = 1
        self.filters = "filter" in verbs
        self.prioritizes = "prioritize" in verbs
        self.preempts = "preempt" in verbs
        self.binds = False
        self.keeps_accounts = keeps_accounts
        self.asked: list[tuple[str, str, list[str]]] = []
        """The verb, the pod, and the nodes of every question."""
        self.passes: dict[str, set[str]] = {}
        """Which nodes a pod may go to, if not all."""
        self.breaks = False
        self._thoughts: dict[str, asyncio.Event] = {}

    def answer(self, *pods: str) -> None:
        """Whatever is asked, or will be, about these pods."""
        for pod in pods:
            self._thought(pod).set()

    def answer_once(self, pod: str) -> None:
        """Only what is asked about it now."""
        self._thoughts.pop(pod).set()

    def is_interested(self, pod: Pod) -> bool:
        return "ask" in pod.metadata.labels

    async def filter(self, pod: Pod, nodes: Sequence[Node]) -> Filtered:
        names = await self._asked("filter", pod, [node.name for node in nodes])
        passed = self.passes.get(pod.name, names)
        return Filtered(frozenset(passed) & set(names), {name: "too noisy" for name in names if name not in passed}, {})

    async def prioritize(self, pod: Pod, nodes: Sequence[Node]) -> Mapping[str, int]:
        names = await self._asked("prioritize", pod, [node.name for node in nodes])
        return {max(names): 10}

    async def process_preemption(self, pod: Pod, victims: Mapping[str, NodeVictims]) -> Mapping[str, SparedVictims]:
        await self._asked("preempt", pod, list(victims))
        return {name: SparedVictims(tuple(p.uid for p in there.pods), 0) for name, there in victims.items()}

    async def bind(self, pod: Pod, node_name: str) -> None:
        raise AssertionError("it does not bind")

    async def _asked(self, verb: str, pod: Pod, nodes: list[str]) -> list[str]:
        self.asked.append((verb, pod.name, nodes))
        await self._thought(pod.name).wait()
        if self.breaks:
            raise RuntimeError("out of ideas")
        return nodes

    def _thought(self, pod: str) -> asyncio.Event:
        return self._thoughts.setdefault(pod, asyncio.Event())


class Living(SchedulerListener):
    """A scheduler with extenders at work, and the order in which it decides."""

    def __init__(self, configuration: config.SchedulerConfiguration, extenders: Sequence[Extender]) -> None:
        self.cluster = MemoryCluster()
        self.decided_pods: list[str] = []
        self.outcomes: dict[str, str] = {}
        self.draws: list[int] = []
        self.scheduler = build_scheduler(
            SchedulerSettings(clock=virtual_time.now, draw=self._draw),
            configuration,
            self.cluster,
            in_tree(),
            extenders=extenders,
            listeners=[self],
        )
        self.loop = SchedulingLoop(self.scheduler, slice_seconds=1.0)

    def _draw(self, among: int) -> int:
        self.draws.append(among)
        return 0

    def decided(self, attempt: Attempt) -> None:
        self.decided_pods.append(attempt.queued.pod.name)
        self.outcomes[attempt.queued.pod.name] = attempt.outcome or ""

    def finished(self, attempt: Attempt) -> None:
        self.outcomes[attempt.queued.pod.name] = attempt.outcome or ""

    async def see(self, *objects: NodeBuilder | PodBuilder | KubeObject) -> None:
        for each in objects:
            self.cluster.put(each if isinstance(each, KubeObject) else each.build())
        await self.pause()

    async def delete(self, obj: KubeObject) -> None:
        self.cluster.remove(obj)
        await self.pause()

    async def pause(self) -> None:
        """Everything happens that needs no word of an extender; the watch has told of it."""
        self.cluster.tell(self.scheduler)
        await asyncio.sleep(A_MOMENT)
        self.cluster.tell(self.scheduler)

    def node_of(self, name: str) -> str:
        return self.cluster.pod(name).spec.node_name


@contextlib.asynccontextmanager
async def living(
    *extenders: Extender, configuration: config.SchedulerConfiguration | None = None
) -> AsyncIterator[Living]:
    world = Living(configuration or settings(), extenders)
    running = asyncio.create_task(world.loop.run())
    try:
        yield world
    finally:
        await world.loop.stop(within=60)
        await running


def asking(name: str) -> PodBuilder:
    return make_pod(name).label(ask="yes")


# -- other pods -------------------------------------------------------------------------------------------------------


def test_other_pods_are_bound_while_an_extender_answers() -> None:
    async def story() -> None:
        extender = Thinking("filter")
        async with living(extender) as world:
            await world.see(make_node("n1"), asking("slow"))
            await world.see(make_pod("quick"))
            assert (world.node_of("quick"), world.node_of("slow")) == ("n1", "")
            extender.answer("slow")
            await world.pause()
            assert world.node_of("slow") == "n1"

    virtual_time.run(story())


def test_other_pods_are_bound_while_a_server_takes_its_time(server: ExtenderServer) -> None:
    async def story() -> None:
        asked = asyncio.Event()
        loop = asyncio.get_running_loop()

        def think(question: Json) -> Json:
            loop.call_soon_threadsafe(asked.set)
            server.released.wait(30)
            return {"NodeNames": question["NodeNames"]}

        server.answers["filter"] = think
        gpus = filtering(server, managedResources=[{"name": "example.com/gpu", "ignoredByScheduler": True}])
        configuration = settings(gpus)
        extenders = extenders_of(configuration)
        async with living(*extenders, configuration=configuration) as world:
            await world.see(make_node("n1"), make_pod("slow").requests({"example.com/gpu": 1}))
            await asked.wait()
            await world.see(make_pod("quick"))
            assert (world.node_of("quick"), world.node_of("slow")) == ("n1", "")
            server.released.set()
            async with asyncio.timeout(30):
                while not world.node_of("slow"):
                    await world.pause()
        await close_all(extenders)

    asyncio.run(story())


# -- order ------------------------------------------------------------------------------------------------------------


def test_outcomes_come_in_the_order_of_the_queue_whichever_answer_comes_first() -> None:
    async def story() -> None:
        extender = Thinking("filter", "prioritize")
        async with living(extender) as world:
            await world.see(make_node("n1"), make_node("n2"), asking("first"), asking("second"))
            assert [pod for _, pod, _ in extender.asked] == ["first", "second"]
            extender.answer("second")
            await world.pause()
            assert extender.asked[-1] == ("prioritize", "second", ["n1", "n2"])
            assert world.decided_pods == []
            extender.answer("first")
            await world.pause()
            assert world.decided_pods == ["first", "second"]
            assert set(world.outcomes.values()) == {"bound"}

    virtual_time.run(story())


def test_last_place_goes_to_the_pod_that_came_first() -> None:
    async def story() -> None:
        extender = Thinking("filter")
        async with living(extender) as world:
            one = make_node("n1").capacity(pods=1)
            await world.see(one, asking("first"), asking("second"))
            for pod in ("second", "first"):
                extender.answer(pod)
                await world.pause()
            assert (world.node_of("first"), world.node_of("second")) == ("n1", "")
            assert world.outcomes == {"first": "bound", "second": "unschedulable"}

    virtual_time.run(story())


def test_extender_that_keeps_accounts_is_asked_about_one_pod_at_a_time() -> None:
    async def story() -> None:
        extender = Thinking("filter", keeps_accounts=True)
        async with living(extender) as world:
            await world.see(make_node("n1"), asking("first"), asking("second"))
            assert [pod for _, pod, _ in extender.asked] == ["first"]
            extender.answer("first")
            await world.pause()
            assert [pod for _, pod, _ in extender.asked] == ["first", "second"]

    virtual_time.run(story())


def test_only_so_many_pods_wait_for_extenders_at_a_time() -> None:
    async def story() -> None:
        extender = Thinking("filter")
        async with living(extender) as world:
            await world.see(make_node("n1"), *(asking(f"p{number:02}") for number in range(AT_MOST + 2)))
            assert (len(extender.asked), world.loop.unfinished) == (AT_MOST, AT_MOST)
            extender.answer("p00")
            await world.pause()
            assert len(extender.asked) == AT_MOST + 1

    virtual_time.run(story())


# -- a cluster that moves on ------------------------------------------------------------------------------------------


def test_node_that_filled_up_meanwhile_is_not_taken() -> None:
    async def story() -> None:
        extender = Thinking("filter")
        async with living(extender) as world:
            await world.see(make_node("n1").capacity(cpu="1"), make_node("n2").capacity(cpu="1"))
            await world.see(asking("slow").requests(cpu="1"))
            await world.see(make_pod("quick").requests(cpu="1"))
            extender.answer("slow")
            await world.pause()
            assert {world.node_of("quick"), world.node_of("slow")} == {"n1", "n2"}
            assert len(extender.asked) == 1

    virtual_time.run(story())


def test_node_that_came_meanwhile_is_not_taken() -> None:
    async def story() -> None:
        extender = Thinking("filter")
        async with living(extender) as world:
            await world.see(make_node("n1"), make_pod("there").requests(cpu="2").on("n1"), asking("slow"))
            await world.see(make_node("n2"))
            extender.answer("slow")
            await world.pause()
            assert world.node_of("slow") == "n1"
            assert extender.asked == [("filter", "slow", ["n1"])]

    virtual_time.run(story())


def test_extender_is_asked_anew_when_nothing_is_left_of_what_it_let_pass() -> None:
    async def story() -> None:
        extender = Thinking("filter")
        extender.passes["slow"] = {"n1", "n3"}
        async with living(extender) as world:
            await world.see(make_node("n1"), make_node("n2"), asking("slow").requests(cpu="4"))
            await world.see(make_pod("quick").requests(cpu="1").node_selector({"kubernetes.io/hostname": "n1"}))
            await world.see(make_node("n3"))
            extender.answer("slow")
            await world.pause()
            assert [nodes for _, _, nodes in extender.asked] == [["n1", "n2"], ["n2", "n3"]]
            assert world.node_of("slow") == "n3"

    virtual_time.run(story())


def test_extender_is_asked_anew_about_nodes_that_were_not_looked_at_before() -> None:
    async def story() -> None:
        extender = Thinking("filter")
        extender.passes["slow"] = {"n000", "n100"}
        async with living(extender, configuration=looking_at_half()) as world:
            await world.see(*(make_node(f"n{number:03}") for number in range(200)))
            await world.see(asking("slow").requests(cpu="4"))
            await world.see(make_pod("quick").requests(cpu="1").node_selector({"kubernetes.io/hostname": "n000"}))
            extender.answer_once("slow")
            await world.pause()
            assert "slow" not in world.decided_pods
            extender.answer_once("slow")
            await world.pause()
            assert world.node_of("slow") == "n100"

    virtual_time.run(story())


def looking_at_half() -> config.SchedulerConfiguration:
    header = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    return config.from_plain({**header, "percentageOfNodesToScore": 50})


def test_extender_is_not_asked_anew_about_nodes_that_it_rejected() -> None:
    async def story() -> None:
        extender = Thinking("filter")
        extender.passes["slow"] = set()
        async with living(extender) as world:
            await world.see(make_node("n1"), make_node("n2"), asking("slow"))
            await world.delete(world.cluster.objects["Node n2"])
            extender.answer_once("slow")
            await world.pause()
            assert world.outcomes == {"slow": "unschedulable"}

    virtual_time.run(story())


def test_pod_fails_if_nothing_is_left_of_the_second_answer_either() -> None:
    async def story() -> None:
        extender = Thinking("filter")
        async with living(extender) as world:
            await world.see(make_node("n1"), asking("slow").requests(cpu="4"))
            await world.see(make_pod("quick").requests(cpu="4"), make_node("n2"))
            extender.answer_once("slow")
            await world.pause()
            assert [nodes for _, _, nodes in extender.asked] == [["n1"], ["n2"]]
            await world.see(make_pod("quicker").requests(cpu="4"))
            await world.see(make_node("n3"))
            extender.answer_once("slow")
            await world.pause()
            assert world.outcomes == {"quick": "bound", "quicker": "bound", "slow": "unschedulable"}

    virtual_time.run(story())


def test_no_pod_is_evicted_if_there_is_room_by_the_time_the_extender_agrees() -> None:
    async def story() -> None:
        extender = Thinking("preempt")
        async with living(extender) as world:
            lesser = make_pod("lesser").requests(cpu="4").on("n1").build()
            await world.see(make_node("n1"), lesser, asking("greater").requests(cpu="4").priority(10))
            assert extender.asked == [("preempt", "greater", ["n1"])]
            await world.delete(lesser)
            extender.answer("greater")
            await world.pause()
            assert world.node_of("greater") == "n1"
            assert world.cluster.evicted == []

    virtual_time.run(story())


def test_extender_agrees_to_victims() -> None:
    async def story() -> None:
        extender = Thinking("preempt")
        async with living(extender) as world:
            lesser = make_pod("lesser").requests(cpu="4").on("n1").build()
            await world.see(make_node("n1"), lesser, asking("greater").requests(cpu="4").priority(10))
            extender.answer("greater")
            await world.pause()
            assert world.cluster.evicted == ["lesser"]

    virtual_time.run(story())


def test_extender_is_asked_anew_when_other_victims_would_have_to_go() -> None:
    async def story() -> None:
        extender = Thinking("preempt")
        async with living(extender) as world:
            lesser = make_pod("lesser").requests(cpu="3").on("n1").build()
            await world.see(make_node("n1"), lesser, asking("greater").requests(cpu="4").priority(10))
            await world.see(make_pod("quick").requests(cpu="1"))
            assert world.node_of("quick") == "n1"
            extender.answer("greater")
            await world.pause()
            assert len(extender.asked) == 2
            assert set(world.cluster.evicted) == {"lesser", "quick"}

    virtual_time.run(story())


# -- a pod that changes -----------------------------------------------------------------------------------------------


def test_pod_that_is_deleted_meanwhile_is_forgotten() -> None:
    async def story() -> None:
        extender = Thinking("filter")
        async with living(extender) as world:
            await world.see(make_node("n1"), asking("slow"))
            await world.delete(world.cluster.pod("slow"))
            extender.answer("slow")
            await world.pause()
            assert world.outcomes == {"slow": "skipped"}
            assert (world.cluster.bindings, world.loop.unfinished) == ([], 0)
            assert (
                not world.scheduler.queue.in_flight_pods() if hasattr(world.scheduler.queue, "in_flight_pods") else True
            )

    virtual_time.run(story())


def test_pod_that_fails_is_tried_again_if_what_it_needs_came_while_it_was_in_flight() -> None:
    async def story() -> None:
        extender = Thinking("filter")
        extender.passes["slow"] = set()
        async with living(extender) as world:
            await world.see(make_node("n1"), asking("slow"))
            await world.see(make_node("n2"))
            extender.answer("slow")
            extender.passes["slow"] = {"n2"}
            await asyncio.sleep(5)
            await world.pause()
            assert world.node_of("slow") == "n2"

    virtual_time.run(story())


# -- trouble ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("ignorable", "outcome"), [(True, "bound"), (False, "error")])
def test_extender_that_breaks_ends_the_attempt_unless_it_may_be_ignored(ignorable: bool, outcome: str) -> None:
    async def story() -> None:
        extender = Thinking("filter", ignorable=ignorable)
        extender.breaks = True
        extender.answer("slow")
        async with living(extender) as world:
            await world.see(make_node("n1"), asking("slow"))
            assert world.outcomes == {"slow": outcome}

    virtual_time.run(story())


def test_stopping_does_not_wait_for_extenders() -> None:
    async def story() -> None:
        extender = Thinking("filter")
        async with living(extender) as world:
            await world.see(make_node("n1"), asking("slow"), asking("slower"))
            before = virtual_time.now()
        assert virtual_time.now() - before < 1
        assert world.outcomes == {}

    virtual_time.run(story())


# -- once in an attempt -----------------------------------------------------------------------------------------------


def test_one_draw_is_made_for_a_decision_however_often_extenders_are_asked() -> None:
    async def story() -> None:
        extender, other = Thinking("filter"), Thinking("filter")
        async with living(extender, other) as world:
            await world.see(make_node("n1"), make_node("n2"), make_node("n3"), asking("one"), asking("two"))
            for pod in ("two", "one"):
                extender.answer(pod)
                other.answer(pod)
                await world.pause()
            assert world.decided_pods == ["one", "two"]
            assert len(extender.asked) + len(other.asked) == 4
            assert world.draws == [3, 2]

    virtual_time.run(story())


def test_search_moves_on_once_however_often_extenders_are_asked() -> None:
    async def story() -> None:
        extender = Thinking("filter", "prioritize")
        async with living(extender, configuration=looking_at_half()) as world:
            await world.see(*(make_node(f"n{number:03}") for number in range(200)))
            await world.see(asking("one"), asking("two"), asking("three"))
            extender.answer("two", "one", "three")
            await world.pause()
            halves = [[f"n{number:03}" for number in half] for half in (range(100), range(100, 200))]
            offered = {"one": halves[0], "two": halves[1], "three": halves[0]}
            assert all(nodes == offered[pod] for _, pod, nodes in extender.asked)
            assert set(world.outcomes.values()) == {"bound"}

    virtual_time.run(story())


def test_extender_error_is_an_answer_like_others() -> None:
    async def story() -> None:
        class Refusing(Thinking):
            async def filter(self, pod: Pod, nodes: Sequence[Node]) -> Filtered:
                raise ExtenderError("not today")

        async with living(Refusing("filter")) as world:
            await world.see(make_node("n1"), asking("p"))
            [condition] = world.cluster.pod("p").status.conditions
            assert condition.message == "not today"

    virtual_time.run(story())
