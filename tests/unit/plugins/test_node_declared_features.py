from __future__ import annotations

from tests.builders import make_cluster, make_engine
from tests.reading import rejections

from kubesched.api.pod import Container, RestartRule
from kubesched.config.features import Features
from kubesched.testing import make_node, make_pod

RESTARTING = make_pod("p").spec(
    containers=(Container(restart_policy_rules=(RestartRule(action="RestartAllContainers"),)),)
)
MODERN = make_node("modern").declares("RestartAllContainersOnContainerExits")


def test_a_pod_that_needs_a_feature_goes_where_it_is_declared() -> None:
    decision = make_engine(make_cluster(MODERN, make_node("old"))).decide(RESTARTING.build(), explain=True)
    assert rejections(decision) == {"old": "node(s) didn't match Pod's required features"}


def test_other_pods_do_not_mind() -> None:
    assert make_engine(make_cluster(MODERN, make_node("old"))).decide(make_pod("p").build()).feasible == 2


def test_nobody_minds_where_the_gate_is_closed() -> None:
    engine = make_engine(make_cluster(make_node("old"), features=Features(declared_features=False)))
    assert engine.decide(RESTARTING.build()).node == "old"
