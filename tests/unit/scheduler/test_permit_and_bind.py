"""From assumed to bound: Permit, waiting, PreBind, the chain of binders, PostBind."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.unit.scheduler.plugin_world import World

from kubesched.api.pod import Pod
from kubesched.framework.cycle import PODS_TO_ACTIVATE, Cycle
from kubesched.framework.events import Interest
from kubesched.framework.plugin import (
    BindPlugin,
    PermitPlugin,
    Plugin,
    PostBindPlugin,
    PreBindPlugin,
    ReservePlugin,
)
from kubesched.framework.status import SKIP, Code, Status, error, unschedulable
from kubesched.scheduler.attempt.attempt import WaitingOnPermit
from kubesched.testing import make_pod


class Gatekeeper(PermitPlugin):
    """Says what the test tells it to, pod by pod."""

    name = "Gatekeeper"
    answers: dict[str, Status | None] = {}
    seconds = 10.0

    def permit(self, cycle: Cycle, pod: Pod, node_name: str) -> tuple[Status | None, float]:
        return self.answers.get(pod.name), self.seconds


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

    def test_every_reason_is_given(self, gate: type[Gatekeeper]) -> None:
        gate.answers = {"a": unschedulable("too late", "not today")}
        world = World(gate)
        world.add(make_pod("a").build())
        world.finish(world.attempt())
        assert world.message == "0/1 nodes are available: 1 not today, 1 too late."

    def test_who_may_come_back_is_waited_for(self, gate: type[Gatekeeper]) -> None:
        gate.answers = {"a": Status(Code.PENDING, ("not yet",))}
        world = World(gate)
        world.add(make_pod("a").build())
        attempt = world.finish(world.attempt())
        assert (attempt.queued.unschedulable_plugins, attempt.queued.pending_plugins) == ({gate.name}, {gate.name})

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
        assert isinstance(attempt.state, WaitingOnPermit)
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
        late = "rejected due to timeout after waiting 10s at plugin Gatekeeper"
        assert world.message == f"0/1 nodes are available: 1 {late}."

    def test_nor_longer_than_a_quarter_of_an_hour(self, gate: type[Gatekeeper], world: World) -> None:
        gate.seconds = 1e9
        attempt = world.attempt()
        world.now = 15 * 60.0
        assert world.scheduler.permitted() == [attempt]

    def test_what_it_held_is_free_once_it_is_deleted(self, world: World) -> None:
        attempt = world.attempt()
        world.cluster.remove(world.cluster.pod("a"))
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
        assert world.finish(waiting).outcome == "bind-error"
        assert world.message == "waiting on permit for pod: preempted"
        assert [queued.key for queued in world.scheduler.queue.error_backoff()] == ["default/a"]
        assert world.cluster.evicted == []

    def test_once_it_is_allowed_a_more_important_pod_must_have_it_evicted(self, world: World) -> None:
        waiting = world.attempt()
        world.add(make_pod("b").requests(cpu="4").priority(10).build())
        preempting = world.attempt()
        for pod in world.scheduler.waiting:
            pod.allow("Gatekeeper")
        world.finish(preempting)
        assert world.cluster.evicted == ["a"]
        assert world.scheduler.permitted() == [waiting]

    def test_the_place_of_a_pod_that_was_allowed_and_deleted_is_free_at_once(self, world: World) -> None:
        world.attempt()
        for waiting in world.scheduler.waiting:
            waiting.allow("Gatekeeper")
        world.cluster.remove(world.cluster.pod("a"))
        world.add(make_pod("b").requests(cpu="4").build())
        assert world.finish(world.attempt()).outcome == "bound"

    def test_one_made_anew_is_not_kept_from_a_node_that_the_old_one_was_promised(self, world: World) -> None:
        world.cluster.put(make_pod("a").requests(cpu="4").nominated("n1").build())
        world.cluster.tell(world.scheduler)
        attempt = world.attempt()
        world.cluster.remove(world.cluster.pod("a"))
        world.add(make_pod("a", uid="another").build())
        assert world.scheduler.permitted() == [attempt]
        world.finish(attempt)
        assert list(world.scheduler.state.nominated.nodes) == []


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

    @pytest.mark.parametrize(("point", "method"), [(PreBindPlugin, "pre_bind"), (BindPlugin, "bind")])
    def test_who_is_rejected_before_binding_waits_for_no_event(self, point: type[Plugin], method: str) -> None:
        """Nobody says what could help, so it is tried again after a while."""

        def reject(self: Plugin, cycle: Cycle, pod: Pod, node_name: str) -> Status:
            return unschedulable("no disk")

        disabled = ("DefaultBinder",) if point is BindPlugin else ()
        world = World(type("Strict", (point,), {"name": "Strict", method: reject}), disabled=disabled)
        world.add(make_pod("a").build())
        assert world.finish(world.attempt()).outcome == "bind-unschedulable"
        assert world.message == "no disk"
        assert [queued.key for queued in world.scheduler.queue.error_backoff()] == ["default/a"]

    @pytest.mark.parametrize(
        ("status", "message"),
        [
            (error("no disk"), 'running Reserve plugin "Greedy": no disk'),
            (unschedulable("no disk"), "0/1 nodes are available: 1 no disk."),
        ],
    )
    def test_all_give_back_when_one_cannot_reserve(self, status: Status, message: str) -> None:
        gave_back = []

        class Greedy(ReservePlugin):
            name = "Greedy"

            def reserve(self, cycle: Cycle, pod: Pod, node_name: str) -> Status | None:
                return status

            def unreserve(self, cycle: Cycle, pod: Pod, node_name: str) -> None:
                gave_back.append(self.name)

        class Modest(Greedy):
            name = "Modest"

        world = World(Greedy, Modest)
        world.add(make_pod("a").build())
        world.finish(world.attempt())
        assert world.message == message
        assert gave_back == ["Modest", "Greedy"]

    def test_pods_put_aside_by_a_plugin_are_tried_at_once(self) -> None:
        class Together(PermitPlugin):
            """The leader calls its follower, which nothing else would move."""

            name = "Together"

            def events_to_register(self) -> Sequence[Interest]:
                return ()

            def permit(self, cycle: Cycle, pod: Pod, node_name: str) -> tuple[Status | None, float]:
                if pod.name == "a":
                    cycle.write(PODS_TO_ACTIVATE, {"default/b": make_pod("b").build()})
                    return None, 0
                return unschedulable("alone"), 0

        world = World(Together)
        world.add(make_pod("b").build())
        world.finish(world.attempt())
        assert world.scheduler.pop() is None
        world.add(make_pod("a").build())
        assert world.attempt().queued.key == "default/a"
        assert world.attempt().queued.key == "default/b"
