from __future__ import annotations

from tests.builders import make_cluster, make_engine
from tests.reading import raw_scores, rejections, scores_of, statuses

from kubesched.api.meta import LabelSelector, ObjectMeta
from kubesched.api.workloads import Namespace
from kubesched.framework.decision import Decision
from kubesched.framework.status import Code
from kubesched.testing import HOSTNAME, ZONE, NodeBuilder, PodBuilder, make_node, make_pod, pod_term

AFFINITY = "node(s) didn't match pod affinity rules"
ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
EXISTING = "node(s) didn't satisfy existing pods anti-affinity rules"
NODES = (make_node("a1").zone("a"), make_node("a2").zone("a"), make_node("b1").zone("b"))
DB = make_pod("db").label(app="db")


def decide(pod: PodBuilder, *objects: NodeBuilder | PodBuilder | Namespace) -> Decision:
    return make_engine(make_cluster(*NODES, *objects)).decide(pod.build(), explain=True)


def test_affinity_is_to_the_domain_not_to_the_node() -> None:
    decision = decide(make_pod("p").pod_affinity(ZONE, app="db"), DB.on("a1"))
    assert rejections(decision) == {"b1": AFFINITY}
    assert statuses(decision)["b1"].code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE


def test_the_first_pod_of_a_kind_that_wants_its_own_may_go_anywhere() -> None:
    first = make_pod("p").label(app="db").pod_affinity(ZONE, app="db")
    assert not rejections(decide(first))
    stranger = make_pod("p").label(app="web").pod_affinity(ZONE, app="db")
    assert set(rejections(decide(stranger))) == {"a1", "a2", "b1"}


def test_the_first_pod_still_needs_a_node_with_the_topology() -> None:
    first = make_pod("p").label(app="db").pod_affinity(ZONE, app="db")
    assert rejections(decide(first, make_node("lost"))) == {"lost": AFFINITY}


def test_anti_affinity_keeps_the_incoming_pod_away_and_preemption_may_help() -> None:
    decision = decide(make_pod("p").pod_anti_affinity(ZONE, app="db"), DB.on("a1"))
    assert rejections(decision) == {"a1": ANTI_AFFINITY, "a2": ANTI_AFFINITY}
    assert statuses(decision)["a1"].code is Code.UNSCHEDULABLE


def test_pods_that_are_there_may_refuse_the_incoming_one() -> None:
    shy = make_pod("shy").pod_anti_affinity(HOSTNAME, app="web")
    assert rejections(decide(make_pod("p").label(app="web"), shy.on("b1"))) == {"b1": EXISTING}


def test_a_pod_looks_in_its_own_namespace_unless_it_names_others() -> None:
    elsewhere = make_pod("db", namespace="data").label(app="db").on("a1")
    labelled = Namespace(metadata=ObjectMeta(name="data", labels={"team": "x"}))
    here = pod_term(ZONE, {"app": "db"})
    by_name = pod_term(ZONE, {"app": "db"}, namespaces=("data",))
    by_label = pod_term(ZONE, {"app": "db"}, namespace_selector=LabelSelector(match_labels={"team": "x"}))
    assert len(rejections(decide(make_pod("p").pod_affinity_term(here), elsewhere))) == 3
    assert set(rejections(decide(make_pod("p").pod_affinity_term(by_name), elsewhere))) == {"b1"}
    assert set(rejections(decide(make_pod("p").pod_affinity_term(by_label), labelled, elsewhere))) == {"b1"}


def test_preferences_count_every_matching_pod_and_may_be_negative() -> None:
    wish = make_pod("p").pod_affinity(ZONE, weight=10, app="db").pod_anti_affinity(HOSTNAME, weight=30, app="web")
    others = DB.on("a1"), make_pod("db-2").label(app="db").on("a2"), make_pod("web").label(app="web").on("b1")
    decision = decide(wish, *others)
    assert raw_scores(decision, "InterPodAffinity") == {"a1": 20, "a2": 20, "b1": -30}
    assert scores_of(decision, "InterPodAffinity") == {"a1": 2 * 100, "a2": 2 * 100, "b1": 0}


def test_required_affinity_of_pods_that_are_there_attracts_a_little() -> None:
    fan = make_pod("fan").label(app="db").pod_affinity(HOSTNAME, app="db")
    assert raw_scores(decide(DB, fan.on("b1")), "InterPodAffinity") == {"a1": 0, "a2": 0, "b1": 1}
