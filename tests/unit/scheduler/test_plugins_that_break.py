"""A plugin that raises costs its pod an attempt, and nobody anything else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from tests.unit.scheduler.plugin_world import World

from kubesched.api.pod import Pod
from kubesched.framework.cycle import Cycle
from kubesched.framework.plugin import (
    PermitPlugin,
    Plugin,
    PostBindPlugin,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    ReservePlugin,
)
from kubesched.framework.status import Status, error
from kubesched.scheduler.listener import SchedulerListener
from kubesched.state.cluster import ClusterState
from kubesched.testing import make_pod


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


def test_gate_that_breaks_holds_its_pod_back_until_it_works_again() -> None:
    broken = True

    class Broken(PreEnqueuePlugin):
        name = "Broken"

        def pre_enqueue(self, pod: Pod, state: ClusterState) -> Status | None:
            if broken and pod.name == "a":
                raise RuntimeError("oops")
            return None

    counted: list[tuple[str, tuple[str, ...]]] = []

    class Counting(SchedulerListener):
        def counted(self, metric: str, labels: Sequence[str]) -> None:
            counted.append((metric, tuple(labels)))

    world = World(Broken)
    world.scheduler.listeners.append(Counting())
    world.add(make_pod("a").build(), make_pod("b").build())
    assert [queued.key for queued in world.scheduler.queue.unschedulable()] == ["default/a"]
    assert counted == [("kubesched_handler_errors_total", ("Pod",))]
    assert world.finish(world.attempt()).outcome == "bound"
    broken = False
    world.scheduler.queue.activate(make_pod("a").build())
    assert world.finish(world.attempt()).outcome == "bound"
