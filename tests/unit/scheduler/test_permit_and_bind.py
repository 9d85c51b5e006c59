"""From assumed to bound: Permit, waiting, PreBind, the chain of binders, PostBind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from tests.builders import make_node, make_pod
from tests.unit.scheduler.memory_writer import MemoryCluster, Running

from kubesched import config
from kubesched.api.pod import Pod
from kubesched.framework.cycle import Cycle
from kubesched.framework.events import Interest
from kubesched.framework.plugin import (
    BindPlugin,
    PermitPlugin,
    Plugin,
    PostBindPlugin,
    PreBindPlugin,
    PreFilterPlugin,
    ReservePlugin,
)
from kubesched.framework.registry import Registry
from kubesched.framework.status import SKIP, Code, Status, error, unschedulable
from kubesched.plugins.registry import IN_TREE
from kubesched.scheduler.scheduler import PODS_TO_ACTIVATE, Attempt, Scheduler


class Gatekeeper(PermitPlugin):
    """Says what the test tells it to, pod by pod."""

    name = "Gatekeeper"
    answers: dict[str, Status | None] = {}
    seconds = 10.0

    def permit(self, cycle: Cycle, pod: Pod, node_name: str) -> tuple[Status | None, float]:
        return self.answers.get(pod.name), self.seconds


class World:
    """One node, a scheduler with some more plugins, and a clock that stands still."""

    def __init__(self, *plugins: type[Plugin], disabled: tuple[str, ...] = (), **points: Any) -> None:
        self.now = 0.0
        self.cluster = MemoryCluster()
        multi_point = {
            "enabled": [{"name": plugin.name} for plugin in plugins],
            "disabled": [{"name": name} for name in disabled],
        }
        configuration = config.from_plain(
            {
                "apiVersion": "kubescheduler.config.k8s.io/v1",
                "kind": "KubeSchedulerConfiguration",
                "profiles": [{"plugins": {"multiPoint": multi_point, **points}}],
            }
        )
        self.scheduler = Scheduler(
            configuration,
            self.cluster,
            clock=lambda: self.now,
            draw=lambda among: 0,
            plugins=Registry((*IN_TREE, *plugins)),
        )
        self.cluster.put(make_node("n1").build())

    def add(self, *pods: Pod) -> None:
        for pod in pods:
            self.cluster.put(pod)
        self.cluster.tell(self.scheduler)

    def attempt(self) -> Attempt:
        """One attempt up to the decision."""
        attempt = self.scheduler.pop()
        assert attempt is not None
        self.scheduler.decide(attempt)
        return attempt

    def finish(self, attempt: Attempt) -> Attempt:
        Running(self.scheduler.finish(attempt)).to_the_end()
        self.cluster.tell(self.scheduler)
        return attempt

    @property
    def message(self) -> str:
        """Why the pod `a` is not scheduled, as its status says."""
        return next(c.message for c in self.cluster.pod("a").status.conditions if c.type == "PodScheduled")


@pytest.fixture
def gate() -> type[Gatekeeper]:
    Gatekeeper.answers = {}
    Gatekeeper.seconds = 10.0
    return Gatekeeper


class TestPermit:
    def test_who_is_approved_is_bound(self, gate: type[Gatekeeper]) -> None:
        world = World(gate)
        world.add(make_pod("a").build())
        assert world.finish(world.attempt()).outcome == "bound"

    def test_who_is_denied_gives_its_place_back(self, gate: type[Gatekeeper]) -> None:
        gate.answers = {"a": unschedulable("not today")}
        world = World(gate)
        world.add(make_pod("a").requests(cpu="4").build(), make_pod("b").requests(cpu="4").build())
        assert world.finish(world.attempt()).outcome == "unschedulable"
        assert world.message == "0/1 nodes are available: 1 not today."
        assert world.finish(world.attempt()).outcome == "bound"
        assert world.cluster.pod("b").spec.node_name == "n1"

    def test_a_plugin_that_breaks_is_named(self, gate: type[Gatekeeper]) -> None:
        gate.answers = {"a": error("out of paper")}
        world = World(gate)
        world.add(make_pod("a").build())
        assert world.finish(world.attempt()).outcome == "error"
        assert world.message == 'running Permit plugin "Gatekeeper": out of paper'


class TestWaiting:
    @pytest.fixture
    def world(self, gate: type[Gatekeeper]) -> World:
        gate.answers = {"a": Status(Code.WAIT)}
        world = World(gate)
        world.add(make_pod("a").requests(cpu="4").build())
        return world

    def test_a_waiting_pod_holds_its_place_and_others_go_on(self, world: World) -> None:
        attempt = world.attempt()
        world.add(make_pod("b").requests(cpu="1").build())
        assert attempt.phase == "waiting"
        assert world.finish(world.attempt()).outcome == "unschedulable"
        assert world.scheduler.permitted() == []

    def test_it_is_bound_once_allowed(self, world: World) -> None:
        attempt = world.attempt()
        [waiting] = world.scheduler.waiting
        assert (waiting.node_name, waiting.pending_plugins) == ("n1", ["Gatekeeper"])
        waiting.allow("Gatekeeper")
        assert world.scheduler.permitted() == [attempt]
        assert world.finish(attempt).outcome == "bound"
        assert len(world.scheduler.waiting) == 0

    def test_it_is_requeued_once_rejected(self, world: World) -> None:
        attempt = world.attempt()
        for waiting in world.scheduler.waiting:
            waiting.reject("Gatekeeper", "the others did not come")
        assert world.scheduler.permitted() == [attempt]
        assert world.finish(attempt).outcome == "bind-unschedulable"
        assert world.message == "0/1 nodes are available: 1 the others did not come."
        assert world.cluster.bindings == []

    def test_nobody_waits_for_ever(self, world: World) -> None:
        attempt = world.attempt()
        world.now = 9.9
        assert world.scheduler.permitted() == []
        world.now = 10.0
        assert world.scheduler.permitted() == [attempt]
        world.finish(attempt)
        assert world.message == "0/1 nodes are available: 1 timeout."

    def test_nor_longer_than_a_quarter_of_an_hour(self, gate: type[Gatekeeper], world: World) -> None:
        gate.seconds = 1e9
        attempt = world.attempt()
        world.now = 15 * 60.0
        assert world.scheduler.permitted() == [attempt]

    def test_what_it_held_is_free_once_it_is_deleted(self, world: World) -> None:
        attempt = world.attempt()
        world.cluster.delete(world.cluster.pod("a"))
        world.add(make_pod("b").requests(cpu="4").build())
        assert world.scheduler.permitted() == [attempt]
        world.finish(attempt)
        assert world.finish(world.attempt()).outcome == "bound"
        assert world.cluster.bindings == [("uid-of-b", "n1")]

    def test_a_more_important_pod_may_have_the_place_and_nothing_is_evicted(self, world: World) -> None:
        waiting = world.attempt()
        world.add(make_pod("b").requests(cpu="4").priority(10).build())
        preempting = world.finish(world.attempt())
        assert preempting.outcome == "unschedulable"
        assert world.scheduler.permitted() == [waiting]
        assert world.finish(waiting).outcome == "bind-unschedulable"
        assert world.cluster.evicted == []


class TestBinding:
    def test_the_first_binder_that_does_not_skip_binds(self) -> None:
        bound: list[tuple[str, str]] = []

        class Shy(BindPlugin):
            name = "Shy"

            def bind(self, cycle: Cycle, pod: Pod, node_name: str) -> Status | None:
                return SKIP

        class Bold(BindPlugin):
            name = "Bold"

            async def bind(self, cycle: Cycle, pod: Pod, node_name: str) -> Status | None:
                bound.append((pod.name, node_name))
                return None

        world = World(Shy, Bold, disabled=("DefaultBinder",))
        world.add(make_pod("a").build())
        assert world.finish(world.attempt()).outcome == "bound"
        assert bound == [("a", "n1")]
        assert world.cluster.bindings == []

    def test_before_and_after(self) -> None:
        seen: list[str] = []

        class Witness(PreBindPlugin, PostBindPlugin):
            name = "Witness"

            async def pre_bind(self, cycle: Cycle, pod: Pod, node_name: str) -> Status | None:
                seen.append(f"before {pod.name} on {node_name}")
                return None

            def post_bind(self, cycle: Cycle, pod: Pod, node_name: str) -> None:
                seen.append(f"after {pod.name} on {node_name}")

        world = World(Witness)
        world.add(make_pod("a").build())
        world.finish(world.attempt())
        assert seen == ["before a on n1", "after a on n1"]

    def test_what_fails_before_binding_is_undone(self) -> None:
        class Broken(PreBindPlugin):
            name = "Broken"

            def pre_bind(self, cycle: Cycle, pod: Pod, node_name: str) -> Status | None:
                return error("no disk") if pod.name == "a" else None

        world = World(Broken)
        world.add(make_pod("a").requests(cpu="4").build(), make_pod("b").requests(cpu="4").build())
        assert world.finish(world.attempt()).outcome == "bind-error"
        assert world.message == 'running PreBind plugin "Broken": no disk'
        assert world.finish(world.attempt()).outcome == "bound"

    def test_pods_put_aside_by_a_plugin_are_tried_at_once(self) -> None:
        class Together(PermitPlugin):
            """The leader calls its follower, which nothing else would move."""

            name = "Together"

            def events_to_register(self) -> Sequence[Interest]:
                return ()

            def permit(self, cycle: Cycle, pod: Pod, node_name: str) -> tuple[Status | None, float]:
                if pod.name == "a":
                    cycle.notes[PODS_TO_ACTIVATE] = {"default/b": make_pod("b").build()}
                    return None, 0
                return unschedulable("alone"), 0

        world = World(Together)
        world.add(make_pod("b").build())
        world.finish(world.attempt())
        assert world.scheduler.pop() is None
        world.add(make_pod("a").build())
        assert world.attempt().queued.key == "default/a"
        assert world.attempt().queued.key == "default/b"


class TestPluginsThatBreak:
    """A plugin that raises costs its pod an attempt, and nobody anything else."""

    def raising(self, point: type[Plugin], method: str) -> type[Plugin]:
        def broken(self: Plugin, cycle: Cycle, *rest: Any) -> Any:
            if cycle.pod.name == "a":
                raise RuntimeError("oops")
            return (None, 0) if method == "permit" else None

        return type("Broken", (point,), {"name": "Broken", method: broken})

    @pytest.mark.parametrize(
        ("point", "method", "outcome"),
        [
            (PreFilterPlugin, "pre_filter", "error"),
            (PermitPlugin, "permit", "error"),
            (PreBindPlugin, "pre_bind", "bind-error"),
        ],
    )
    def test_before_the_pod_is_bound(self, point: type[Plugin], method: str, outcome: str) -> None:
        world = World(self.raising(point, method))
        world.add(make_pod("a").requests(cpu="4").build(), make_pod("b").requests(cpu="4").build())
        assert world.finish(world.attempt()).outcome == outcome
        assert world.message == 'plugin "Broken" broke: RuntimeError: oops'
        assert [queued.key for queued in world.scheduler.queue.error_backoff()] == ["default/a"]
        assert world.scheduler.queue.in_flight() == []
        assert world.finish(world.attempt()).outcome == "bound"

    def test_after_the_pod_is_bound(self) -> None:
        world = World(self.raising(PostBindPlugin, "post_bind"))
        world.add(make_pod("a").build())
        assert world.finish(world.attempt()).outcome == "bound"
        assert world.cluster.bindings == [("uid-of-a", "n1")]

    def test_while_giving_back_what_was_reserved(self) -> None:
        class Forgetful(ReservePlugin, PreBindPlugin):
            name = "Forgetful"

            def reserve(self, cycle: Cycle, pod: Pod, node_name: str) -> None:
                return None

            def unreserve(self, cycle: Cycle, pod: Pod, node_name: str) -> None:
                raise RuntimeError("oops")

            def pre_bind(self, cycle: Cycle, pod: Pod, node_name: str) -> Status | None:
                return error("no") if pod.name == "a" else None

        world = World(Forgetful)
        world.add(make_pod("a").requests(cpu="4").build(), make_pod("b").requests(cpu="4").build())
        assert world.finish(world.attempt()).outcome == "bind-error"
        assert world.scheduler.queue.in_flight() == []
        assert world.finish(world.attempt()).outcome == "bound"
