"""A plugin that looks at the budget is reported alike whether a row is asked about first or repaired."""

from __future__ import annotations

import numpy as np
import pytest
from tests.builders import make_cluster, profile_of

from kubesched import config
from kubesched.framework.budget import Budget, Expense, TurnOverError
from kubesched.framework.cycle import Cycle
from kubesched.framework.decision import Outcome
from kubesched.framework.engine import Engine
from kubesched.framework.errors import PluginError
from kubesched.framework.nodes import Nodes, NodeView
from kubesched.framework.plugin import FilterPlugin, PluginContext, ScorePlugin
from kubesched.framework.profile import Profile
from kubesched.framework.reads import PodFields, Reads, Scope
from kubesched.framework.registry import Registry
from kubesched.plugins.registry import IN_TREE
from kubesched.state.cluster import ClusterState
from kubesched.state.columns import Int32, Int64
from kubesched.testing import make_node, make_pod

SLOW = Expense("Slow", "its containers")
LIMIT, TURN = 1.0, 0.05


class Slow(FilterPlugin, ScorePlugin):
    """Asked about a node, it works for so many seconds, and looks at the budget before and after."""

    name = "Slow"
    filter_reads = score_reads = Reads(PodFields.SPEC, Scope.NODE)
    now, seconds, slow_point, fails = 0.0, 0.0, "", ""

    def filter(self, cycle: Cycle, nodes: Nodes) -> Int32:
        self.work(cycle, "filter")
        return np.zeros(len(nodes), dtype=np.int32)

    def filter_node(self, cycle: Cycle, node: NodeView) -> None:
        self.work(cycle, "filter")

    def score(self, cycle: Cycle, nodes: Nodes) -> Int64:
        self.work(cycle, "score")
        return np.zeros(len(nodes), dtype=np.int64)

    def score_node(self, cycle: Cycle, node: NodeView) -> int:
        self.work(cycle, "score")
        return 0

    def work(self, cycle: Cycle, point: str) -> None:
        if point != Slow.slow_point:
            return
        if Slow.fails:
            raise KeyError(Slow.fails)
        look = cycle.budget.check if Slow.seconds > LIMIT else cycle.budget.end_turn
        look(SLOW)
        Slow.now += Slow.seconds
        look(SLOW)


@pytest.fixture(autouse=True)
def _fast_again(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("now", 0.0), ("seconds", 0.0), ("slow_point", ""), ("fails", "")):
        monkeypatch.setattr(Slow, name, value)


def cluster_and_engine() -> tuple[ClusterState, Engine]:
    state = make_cluster(*(make_node(f"n{i}").capacity(cpu="4", pods=10) for i in range(40)))
    read = config.from_plain(profile_of("Slow"))
    profiles = [Profile(profile, Registry((*IN_TREE, Slow)), PluginContext()) for profile in read.profiles]
    return state, Engine(state, profiles, lambda among: 0, budget=Budget(lambda: Slow.now, turn=TURN, limit=LIMIT))


def ask_then_change_one_row(state: ClusterState, engine: Engine) -> None:
    """Answers about all nodes are cached now, and one of them is outdated."""
    state.assume(make_pod("first").build(), engine.decide(make_pod("first").build()).node)


POINTS = pytest.mark.parametrize("point", ["filter", "score"])


@POINTS
@pytest.mark.parametrize("is_repair", [False, True])
def test_budget_that_runs_out_ends_the_decision_with_an_error(point: str, is_repair: bool) -> None:
    state, engine = cluster_and_engine()
    if is_repair:
        ask_then_change_one_row(state, engine)
    Slow.slow_point, Slow.seconds = point, 2.0
    decision = engine.decide(make_pod("second").build())
    assert decision.outcome is Outcome.ERROR
    assert decision.message == "gave up after 1s: Slow takes too long for its containers"


@POINTS
@pytest.mark.parametrize("is_repair", [False, True])
def test_turn_that_is_over_ends_the_turn(point: str, is_repair: bool) -> None:
    state, engine = cluster_and_engine()
    if is_repair:
        ask_then_change_one_row(state, engine)
    Slow.slow_point, Slow.seconds = point, 0.1
    with pytest.raises(TurnOverError):
        engine.decide(make_pod("second").build(), spent=0.0)


@POINTS
@pytest.mark.parametrize("is_repair", [False, True])
def test_plugin_that_breaks_is_named(point: str, is_repair: bool) -> None:
    state, engine = cluster_and_engine()
    if is_repair:
        ask_then_change_one_row(state, engine)
    Slow.slow_point, Slow.fails = point, "zone"
    with pytest.raises(PluginError, match=r"plugin \"Slow\" broke: KeyError: 'zone'"):
        engine.decide(make_pod("second").build())


@pytest.mark.parametrize("point", ["filter_node", "score_node"])
def test_plugin_that_breaks_only_about_single_nodes_is_named(point: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(plugin: Slow, cycle: Cycle, node: NodeView) -> None:
        raise KeyError(node.name)

    state, engine = cluster_and_engine()
    ask_then_change_one_row(state, engine)
    monkeypatch.setattr(Slow, point, breaks)
    with pytest.raises(PluginError, match='plugin "Slow" broke: KeyError: \'n'):
        engine.decide(make_pod("second").build())
