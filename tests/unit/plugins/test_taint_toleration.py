from __future__ import annotations

import pytest
from tests.builders import make_cluster, make_engine
from tests.reading import rejections, scores_of

from kubesched.config.features import Features
from kubesched.framework.decision import Outcome
from kubesched.testing import make_node, make_pod


@pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute"])
def test_taints_keep_away_pods_that_do_not_tolerate_them(effect: str) -> None:
    state = make_cluster(make_node("tainted").taint("gpu", "yes", effect), make_node("plain"))  # type: ignore[arg-type]
    engine = make_engine(state)
    assert rejections(engine.decide(make_pod("p").build(), explain=True)) == {
        "tainted": "node(s) had untolerated taint(s)"
    }
    assert engine.decide(make_pod("p").toleration("gpu", "yes").build(), explain=True).feasible == 2


def test_untolerated_preferences_count_against_a_node_in_proportion() -> None:
    once = make_node("once").taint("slow", effect="PreferNoSchedule")
    twice = make_node("twice").taint("slow", effect="PreferNoSchedule").taint("old", effect="PreferNoSchedule")
    decision = make_engine(make_cluster(make_node("clean"), once, twice)).decide(make_pod("p").build(), explain=True)
    assert scores_of(decision, "TaintToleration") == {"clean": 3 * 100, "once": 3 * 50, "twice": 0}


def test_where_nobody_has_such_taints_everybody_gets_the_full_score() -> None:
    decision = make_engine(make_cluster(make_node("a"), make_node("b"))).decide(make_pod("p").build(), explain=True)
    assert scores_of(decision, "TaintToleration") == {"a": 300, "b": 300}


def test_a_toleration_of_another_effect_does_not_help_the_score() -> None:
    nodes = make_node("clean"), make_node("slow").taint("slow", effect="PreferNoSchedule")
    pod = make_pod("p").toleration("slow", operator="Exists", effect="NoSchedule").build()
    decision = make_engine(make_cluster(*nodes)).decide(pod, explain=True)
    assert scores_of(decision, "TaintToleration") == {"clean": 300, "slow": 0}


def test_numbers_are_compared_only_behind_the_feature_gate() -> None:
    node = make_node("n1").taint("sla", "950")
    pod = make_pod("p").toleration("sla", "900", operator="Gt").build()
    comparing = make_cluster(node, features=Features(taint_comparisons=True))
    assert make_engine(make_cluster(node)).decide(pod, explain=True).outcome is Outcome.UNSCHEDULABLE
    assert make_engine(comparing).decide(pod, explain=True).node == "n1"
