from __future__ import annotations

from tests.builders import make_cluster, make_engine
from tests.reading import scores_of

from kubesched.config.features import Features
from kubesched.framework.decision import Decision
from kubesched.testing import PodBuilder, make_node, make_pod

NAME = "NodeResourcesBalancedAllocation"


def decide(pod: PodBuilder) -> Decision:
    """On an empty node, one whose cpu is in use, and one whose memory is."""
    state = make_cluster(
        make_node("empty"),
        make_node("cpu"),
        make_node("memory"),
        make_pod("a").requests(cpu="2").on("cpu"),
        make_pod("b").requests(memory="4Gi").on("memory"),
    )
    return make_engine(state).decide(pod.build(), explain=True)


def test_a_node_is_better_the_more_even_the_pod_makes_it() -> None:
    hungry_for_memory = decide(make_pod("p").requests(memory="4Gi"))
    assert scores_of(hungry_for_memory, NAME) == {"empty": 62, "cpu": 87, "memory": 62}


def test_a_pod_that_changes_nothing_about_evenness_scores_75() -> None:
    assert scores_of(decide(make_pod("p").requests(cpu="1", memory="2Gi")), NAME)["empty"] == 75


def test_pods_that_request_nothing_are_not_scored() -> None:
    decision = decide(make_pod("p"))
    assert decision.trace.scores is not None
    assert NAME in decision.trace.scores.skipped


def test_balance_does_not_know_of_pod_level_requests_where_the_gate_is_closed() -> None:
    lopsided_as_a_whole = make_pod("p").requests(cpu="1", memory="2Gi").pod_level(cpu="4").build()
    for features, score in ((Features(), 56), (Features(pod_level_resources=False), 75)):
        state = make_cluster(make_node("n1"), make_node("n2"), features=features)
        decision = make_engine(state).decide(lopsided_as_a_whole, explain=True)
        assert scores_of(decision, "NodeResourcesBalancedAllocation") == {"n1": score, "n2": score}
