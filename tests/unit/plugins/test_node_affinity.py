from __future__ import annotations

from tests.builders import make_cluster, make_engine, profile_of
from tests.reading import rejections, scores_of

from kubesched.framework.decision import Decision, Outcome
from kubesched.testing import PodBuilder, make_node, make_pod, node_term

ADDED = {
    "addedAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [{"key": "pool", "operator": "In", "values": ["batch"]}]}]
        }
    }
}


def decide(pod: PodBuilder) -> Decision:
    ssd, hdd, bare = (
        make_node("ssd").label(disk="ssd", cores="8"),
        make_node("hdd").label(disk="hdd"),
        make_node("bare"),
    )
    return make_engine(make_cluster(ssd, hdd, bare)).decide(pod.build(), explain=True)


def test_node_selector_and_required_affinity_must_both_hold() -> None:
    both = make_pod("p").node_selector(disk="ssd").requires_node(node_term("cores", "Gt", "4"))
    assert decide(both).node == "ssd"
    neither = make_pod("p").node_selector(disk="ssd").requires_node(node_term("cores", "Gt", "8"))
    assert decide(neither).message.startswith(
        "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector."
    )


def test_one_term_of_several_is_enough() -> None:
    pod = make_pod("p").requires_node(node_term("disk", "In", "hdd"), node_term("disk", "DoesNotExist"))
    assert set(rejections(decide(pod))) == {"ssd"}


def test_a_malformed_required_term_merely_never_matches() -> None:
    pod = make_pod("p").requires_node(node_term("cores", "Gt", "-5"), node_term("disk", "In", "hdd"))
    assert decide(pod).node == "hdd"


def test_a_malformed_preferred_term_breaks_the_attempt_unless_there_is_no_choice() -> None:
    pod = make_pod("p").prefers_node(node_term("cores", "Gt", "-5"))
    assert decide(pod).outcome is Outcome.ERROR
    assert decide(pod.node_selector(disk="hdd")).node == "hdd"


def test_preferred_terms_add_up_and_are_scaled_to_the_best_node() -> None:
    pod = make_pod("p").prefers_node(node_term("disk", "Exists"), weight=10)
    decision = decide(pod.prefers_node(node_term("disk", "In", "ssd"), weight=30))
    assert scores_of(decision, "NodeAffinity") == {"ssd": 2 * 100, "hdd": 2 * 25, "bare": 0}


def test_nodes_required_by_name_are_the_only_ones_looked_at() -> None:
    decision = decide(make_pod("p").requires_node(node_term("metadata.name", "In", "hdd")))
    assert (decision.node, decision.evaluated) == ("hdd", 1)


def test_a_profile_may_add_affinity_to_every_pod() -> None:
    state = make_cluster(make_node("batch").label(pool="batch"), make_node("web").label(pool="web"))
    engine = make_engine(state, config=profile_of("NodeAffinity", args={"NodeAffinity": ADDED}))
    decision = engine.decide(make_pod("p").build(), explain=True)
    assert rejections(decision) == {"web": "node(s) didn't match scheduler-enforced node affinity"}


def decide_with_preference(weight: int) -> Decision:
    """In a profile that gives every pod a preference for nodes in a pool."""
    preference = {"matchExpressions": [{"key": "pool", "operator": "Exists"}]}
    preferred = [{"weight": weight, "preference": preference}]
    args = {"addedAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    state = make_cluster(make_node("batch").label(pool="batch"), make_node("web").label(pool="web"))
    engine = make_engine(state, config=profile_of("NodeAffinity", args={"NodeAffinity": args}))
    return engine.decide(make_pod("p").build(), explain=True)


def test_a_preference_of_no_weight_scores_though_it_makes_no_difference() -> None:
    assert scores_of(decide_with_preference(0), "NodeAffinity") == {"batch": 0, "web": 0}


def test_a_preference_of_negative_weight_is_not_scaled_into_range() -> None:
    assert 'plugin "NodeAffinity" returns an invalid score -5' in decide_with_preference(-5).message
