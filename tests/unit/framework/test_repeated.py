"""A pod that is equivalent to one which found no node is told the same, as long as nothing changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import pytest
from tests.builders import make_cluster, make_engine, profile_of

from kubesched.api.workloads import Namespace
from kubesched.framework.cycle import Cycle
from kubesched.framework.decision import Outcome
from kubesched.framework.engine import Engine
from kubesched.framework.nodes import Nodes
from kubesched.framework.plugin import FilterPlugin
from kubesched.framework.reads import UNDECLARED, PodFields, Reads, Scope
from kubesched.framework.status import unschedulable
from kubesched.state.cluster import ClusterState
from kubesched.state.columns import Int32
from kubesched.testing import PodBuilder, make_node, make_pod

asked: list[str] = []


class Never(FilterPlugin):
    """Rejects everywhere, whatever it is, and keeps a list of whom it was asked about."""

    name = "Never"
    filter_reads: ClassVar[Reads] = Reads(PodFields.SPEC | PodFields.LABELS, Scope.CLUSTER)

    def filter(self, cycle: Cycle, nodes: Nodes) -> Int32:
        asked.append(cycle.pod.name)
        return self.reject(~nodes.none(), unschedulable("never"))


class Undeclared(Never):
    """The same, but it does not say what it reads, and may tell equivalent pods apart."""

    name = "Undeclared"
    filter_reads = UNDECLARED


@pytest.fixture(autouse=True)
def nobody_was_asked() -> None:
    asked.clear()


def cluster() -> ClusterState:
    return make_cluster(make_node("n1").capacity(cpu="1", pods=10), make_pod("x").requests(cpu="1").on("n1"))


def engine_with(plugin: type[FilterPlugin], state: ClusterState) -> Engine:
    return make_engine(state, config=profile_of(plugin.name, "DefaultPreemption"), plugins=(plugin,))


def asked_about(engine: Engine, *pods: PodBuilder) -> list[str]:
    """Which of the pods the plugin was asked about."""
    asked.clear()
    for pod in pods:
        assert engine.decide(pod.build()).outcome is Outcome.UNSCHEDULABLE
    return list(dict.fromkeys(asked))


def test_equivalent_pod_is_told_the_same_without_asking() -> None:
    engine = engine_with(Never, cluster())
    first, second = (engine.decide(make_pod(name).build()) for name in "ab")
    assert "b" not in asked
    assert (second.pod.name, second.outcome, second.message) == ("b", first.outcome, first.message)
    assert second.message == "0/1 nodes are available: 1 never. preemption: 0/1 nodes are available: " + (
        "1 No preemption victims found for incoming pod."
    )


def test_pod_of_another_kind_is_asked_about() -> None:
    engine = engine_with(Never, cluster())
    assert asked_about(engine, make_pod("a"), make_pod("b").label(app="web"), make_pod("c")) == ["a", "b"]


@pytest.mark.parametrize(
    "change",
    [
        lambda state: state.apply(make_node("n2").build()),
        lambda state: state.apply(make_node("n1").label(disk="ssd").build()),
        lambda state: state.delete(make_pod("x").on("n1").build()),
        lambda state: state.assume(make_pod("y").build(), "n1"),
        lambda state: state.nominated.add(make_pod("z").build(), "n1"),
        lambda state: state.apply(Namespace(metadata=make_node("default").build().metadata)),
    ],
)
def test_plugins_are_asked_again_once_anything_changed(change: Callable[[ClusterState], object]) -> None:
    state = cluster()
    engine = engine_with(Never, state)
    assert asked_about(engine, make_pod("a"), make_pod("b")) == ["a"]
    change(state)
    assert asked_about(engine, make_pod("b"), make_pod("c")) == ["b"]


def test_plugin_that_declares_nothing_is_asked_about_every_pod() -> None:
    assert asked_about(engine_with(Undeclared, cluster()), make_pod("a"), make_pod("b")) == ["a", "b"]


def test_pod_with_a_nominated_node_is_asked_about() -> None:
    engine = engine_with(Never, cluster())
    assert asked_about(engine, make_pod("a"), make_pod("b").nominated("n1")) == ["a", "b"]


def test_explanation_asks() -> None:
    engine = engine_with(Never, cluster())
    asked_about(engine, make_pod("a"))
    engine.decide(make_pod("b").build(), explain=True)
    assert "b" in asked


def test_room_that_is_made_for_one_pod_is_not_made_for_the_next() -> None:
    state = make_cluster(
        *(make_node(name).capacity(cpu="1", pods=10) for name in ("n1", "n2")),
        *(make_pod(f"x-{name}").requests(cpu="1").on(name) for name in ("n1", "n2")),
    )
    engine = make_engine(state)
    important = [make_pod(name).requests(cpu="1").priority(10).build() for name in "ab"]
    first = engine.decide(important[0]).post_filter
    assert first is not None
    assert first.nominated
    state.nominated.add(important[0], first.nominated)
    second = engine.decide(important[1]).post_filter
    assert second is not None
    assert {first.nominated, second.nominated} == {"n1", "n2"}


def test_a_very_large_pod_is_not_kept_for_others() -> None:
    """It would stay in memory after it was deleted."""
    engine = engine_with(Never, cluster())
    large = make_pod("a").requests(cpu="1").node_selector({f"key-{i}": "value" for i in range(1500)})
    asked_about(engine, large, large)
    assert asked == ["a", "a"]
