from __future__ import annotations

from tests.builders import make_cluster, make_engine, profile_of
from tests.reading import rejections, scores_of, statuses, totals

from kubesched.api.affinity import TopologySpreadConstraint
from kubesched.api.meta import LabelSelector, ObjectMeta
from kubesched.api.workloads import Service, ServiceSpec
from kubesched.config.features import Features
from kubesched.framework.decision import Decision
from kubesched.framework.status import Code
from kubesched.testing import HOSTNAME, ZONE, NodeBuilder, PodBuilder, make_node, make_pod

SKEWED = "node(s) didn't match pod topology spread constraints"
NO_LABEL = "node(s) didn't match pod topology spread constraints (missing required label)"
WEB = make_pod("p").label(app="web")
NODES = (make_node("a1").zone("a"), make_node("b1").zone("b"), make_node("b2").zone("b"))


def web_on(*nodes: str) -> list[PodBuilder]:
    return [make_pod(f"web-{i}").label(app="web").on(node) for i, node in enumerate(nodes)]


def decide(pod: PodBuilder, *objects: NodeBuilder | PodBuilder) -> Decision:
    return make_engine(make_cluster(*NODES, *objects)).decide(pod.build(), explain=True)


def test_a_zone_may_be_ahead_of_the_emptiest_by_max_skew_and_no_more() -> None:
    ahead = decide(WEB.spread(ZONE, app="web"), *web_on("b1"))
    assert rejections(ahead) == {"b1": SKEWED, "b2": SKEWED}
    assert not rejections(decide(WEB.spread(ZONE, max_skew=2, app="web"), *web_on("b1")))


def test_a_pod_that_its_own_selector_does_not_match_adds_nothing_to_the_skew() -> None:
    assert not rejections(decide(make_pod("p").spread(ZONE, app="web"), *web_on("b1")))


def test_terminating_pods_do_not_count() -> None:
    leaving = [pod.terminating() for pod in web_on("b1")]
    assert not rejections(decide(WEB.spread(ZONE, app="web"), *leaving))


def test_a_node_without_the_label_is_out_of_the_question_and_its_pods_do_not_count() -> None:
    decision = decide(WEB.spread(ZONE, app="web"), make_node("lost"), *web_on("lost", "lost"))
    assert rejections(decision) == {"lost": NO_LABEL}
    assert statuses(decision)["lost"].code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE


def test_with_fewer_domains_than_wanted_the_emptiest_counts_as_empty() -> None:
    constraint = TopologySpreadConstraint(
        max_skew=1,
        topology_key=ZONE,
        when_unsatisfiable="DoNotSchedule",
        label_selector=LabelSelector(match_labels={"app": "web"}),
        min_domains=3,
    )
    decision = decide(WEB.spread_constraint(constraint), *web_on("a1", "b1"))
    assert set(rejections(decision)) == {"a1", "b1", "b2"}


def test_nodes_the_pod_cannot_go_to_are_no_domain_it_must_spread_to() -> None:
    only_b = WEB.node_selector({ZONE: "b"}).spread(ZONE, app="web")
    assert not {"b1", "b2"} & set(rejections(decide(only_b, *web_on("b1", "b2"))))


def test_tainted_nodes_count_as_domains_unless_the_constraint_honours_taints() -> None:
    def spread(policy: str) -> TopologySpreadConstraint:
        return TopologySpreadConstraint(
            max_skew=1,
            topology_key=ZONE,
            when_unsatisfiable="DoNotSchedule",
            label_selector=LabelSelector(match_labels={"app": "web"}),
            node_taints_policy=policy,  # type: ignore[arg-type]
        )

    empty_but_tainted, others = make_node("c1").zone("c").taint("gpu"), web_on("a1", "b1")
    assert set(rejections(decide(WEB.spread_constraint(spread("Ignore")), empty_but_tainted, *others))) > {"a1", "b1"}
    assert set(rejections(decide(WEB.spread_constraint(spread("Honor")), empty_but_tainted, *others))) == {"c1"}


def test_weights_may_be_so_large_that_scores_need_more_than_32_bits() -> None:
    weight = 10**9
    heavy = profile_of(
        "PodTopologySpread", score={"enabled": [{"name": "PodTopologySpread", "weight": weight}], "disabled": []}
    )
    engine = make_engine(make_cluster(*NODES, *web_on("b1", "b1", "a1")), config=heavy)
    soft = WEB.spread(ZONE, soft=True, app="web").build()
    assert totals(engine.decide(soft, explain=True)) == {"a1": 100 * weight, "b1": 33 * weight, "b2": 33 * weight}
    assert engine.decide(soft).node == "a1"


def test_soft_constraints_prefer_the_domain_with_fewer_pods() -> None:
    decision = decide(WEB.spread(ZONE, soft=True, app="web"), *web_on("b1", "b1", "a1"))
    scores = scores_of(decision, "PodTopologySpread")
    assert scores["a1"] > scores["b1"] == scores["b2"]


def test_pods_of_a_service_are_spread_over_hosts_by_default() -> None:
    service = Service(metadata=ObjectMeta(name="web", namespace="default"), spec=ServiceSpec(selector={"app": "web"}))
    state = make_cluster(make_node("n1"), make_node("n2"), service, *web_on("n1"))
    scores = scores_of(make_engine(state).decide(WEB.build(), explain=True), "PodTopologySpread")
    assert scores["n2"] > scores["n1"]


def test_each_constraint_is_judged_on_its_own() -> None:
    decision = decide(WEB.spread(ZONE, max_skew=2, app="web").spread(HOSTNAME, app="web"), *web_on("b1"))
    assert rejections(decision) == {"b1": SKEWED}


def test_match_label_keys_count_for_nothing_where_the_gate_is_closed() -> None:
    other_version = make_pod("old").label(app="a", version="1").on("n1")
    constraint = TopologySpreadConstraint(
        max_skew=1,
        topology_key=HOSTNAME,
        when_unsatisfiable="DoNotSchedule",
        label_selector=LabelSelector(match_labels={"app": "a"}),
        match_label_keys=("version",),
    )
    pod = make_pod("new").label(app="a", version="2").spread_constraint(constraint).build()
    for features, fit in ((Features(), 2), (Features(match_label_keys_in_spread=False), 1)):
        state = make_cluster(make_node("n1"), make_node("n2"), other_version, features=features)
        assert make_engine(state).decide(pod).feasible == fit
