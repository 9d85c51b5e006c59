"""A plugin that does not declare what it reads is asked every time, is right, and leaves the caches of others alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.builders import make_cluster, make_engine, profile_of

from kubesched.api.pod import Pod
from kubesched.framework.cycle import Cycle
from kubesched.framework.decision import Decision, Outcome
from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.engine import Engine
from kubesched.framework.nodes import Nodes, NodeView
from kubesched.framework.plugin import (
    FilterPlugin,
    PostFilterPlugin,
    PostFilterResult,
    PreFilterPlugin,
    ScorePlugin,
    WhatIfRunner,
)
from kubesched.framework.reads import PodFields, Reads, Scope
from kubesched.framework.status import SKIP, Status, unschedulable
from kubesched.state.cluster import ClusterState
from kubesched.state.columns import Int32, Int64
from kubesched.testing import PodBuilder, make_node, make_pod

asked: list[tuple[str, str]] = []

FULL = unschedulable("declared")
BARRED = unschedulable("undeclared")


class Declared(FilterPlugin, ScorePlugin):
    """Rejects the node of the label `not`, and says what it reads."""

    name = "Declared"
    filter_reads = score_reads = Reads(PodFields.SPEC | PodFields.LABELS, Scope.NODE_OBJECT)

    def filter(self, cycle: Cycle, nodes: Nodes) -> Int32:
        asked.append((self.name, cycle.pod.name))
        names = np.array([nodes.state.nodes.names[row] for row in nodes.row_ids.tolist()])
        return self.reject(names == cycle.pod.metadata.labels.get("not"), FULL)

    def score(self, cycle: Cycle, nodes: Nodes) -> Int64:
        asked.append((self.name, cycle.pod.name))
        return np.zeros(len(nodes), dtype=np.int64)


class Undeclared(PreFilterPlugin, FilterPlugin, PostFilterPlugin):
    """Rejects the nodes of the annotation `bar`; skips pods of which it says so; makes room for the pod `lucky`."""

    name = "Undeclared"

    def pre_filter(self, cycle: Cycle) -> Status | None:
        return SKIP if "skip" in cycle.pod.metadata.annotations else None

    def filter_node(self, cycle: Cycle, node: NodeView) -> Status | None:
        asked.append((self.name, cycle.pod.name))
        return BARRED if node.name in cycle.pod.metadata.annotations.get("bar", "") else None

    def post_filter(
        self, cycle: Cycle, diagnosis: Diagnosis, what_if: WhatIfRunner
    ) -> tuple[PostFilterResult | None, Status | None]:
        if cycle.pod.name == "lucky":
            return PostFilterResult(nominated="n0"), None
        return None, unschedulable("no room")


@pytest.fixture(autouse=True)
def nobody_was_asked() -> None:
    asked.clear()


def engine_and_state(*plugins: str) -> tuple[Engine, ClusterState]:
    state = make_cluster(make_node("n0"), make_node("n1"))
    names = plugins or ("Declared", "Undeclared")
    return make_engine(state, config=profile_of(*names), plugins=(Declared, Undeclared)), state


def pod(name: str, bar: str = "", **annotations: str) -> PodBuilder:
    return make_pod(name).label({"not": "n0"}).annotate({"bar": bar, **annotations})


def built(*pods: PodBuilder) -> list[Pod]:
    return [one.build() for one in pods]


def askings(plugin: str) -> list[str]:
    return list(dict.fromkeys(pod for name, pod in asked if name == plugin))


def told(decision: Decision) -> tuple[Any, ...]:
    result = decision.post_filter
    return decision.outcome, decision.node, decision.message, result.nominated if result else None


def test_answers_of_others_stay_cached() -> None:
    engine, _ = engine_and_state()
    for one in built(pod("a"), pod("b"), pod("c")):
        assert engine.decide(one).node == "n1"
    assert askings("Declared") == ["a"]
    assert askings("Undeclared") == ["a", "b", "c"]


def test_failure_of_equal_pods_is_repeated_by_asking_only_that_plugin() -> None:
    engine, _ = engine_and_state()
    first, second = (engine.decide(one) for one in built(pod("a", bar="n1"), pod("b", bar="n1")))
    assert first.outcome is Outcome.UNSCHEDULABLE
    assert told(first) == told(second)
    assert second.trace.filter_outcome is first.trace.filter_outcome
    assert askings("Declared") == ["a"]
    assert askings("Undeclared") == ["a", "b"]


@pytest.mark.parametrize("plugins", [("Declared", "Undeclared"), ("Undeclared", "Declared")])
@pytest.mark.parametrize(
    "other",
    [pod("b"), pod("b", bar="n0"), pod("b", bar="n0 n1"), pod("b", bar="n1", skip="yes"), pod("lucky", bar="n1")],
)
def test_decision_is_that_of_an_engine_that_knows_nothing(plugins: tuple[str, str], other: PodBuilder) -> None:
    engine, _ = engine_and_state(*plugins)
    engine.decide(pod("a", bar="n1").build())
    fresh, _ = engine_and_state(*plugins)
    assert told(engine.decide(other.build())) == told(fresh.decide(other.build()))


def test_signature_goes_by_what_the_others_declare() -> None:
    engine, _ = engine_and_state()
    first, second = built(pod("a", bar="n0"), pod("b", bar="n1"))
    assert engine.signature(first) == engine.signature(second)
    assert engine.signature(first) != engine.signature(make_pod("c").build())
