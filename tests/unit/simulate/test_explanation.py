from __future__ import annotations

from kubesched import config
from kubesched.api.affinity import NodeSelectorRequirement, NodeSelectorTerm
from kubesched.api.meta import KubeObject, LabelSelector, ObjectMeta
from kubesched.api.workloads import BudgetSpec, PodDisruptionBudget
from kubesched.ask.explain.explanation import Explanation, explain_pod
from kubesched.simulate.cluster import ClusterModel
from kubesched.simulate.placement import NoHelp, ProposedEviction, Victim
from kubesched.testing import NodeBuilder, PodBuilder, make_node, make_pod

TOO_SMALL = "Insufficient cpu"


def explained(pod: PodBuilder, *objects: KubeObject | NodeBuilder | PodBuilder, seed: int = 0) -> Explanation:
    built = [obj if isinstance(obj, KubeObject) else obj.build() for obj in (pod, *objects)]
    cluster = ClusterModel(built, config.default(), seed=seed)
    return explain_pod(cluster, cluster.pods[pod.build().key])


def test_every_node_has_a_verdict_from_the_first_plugin_that_refuses_and_what_others_say_too() -> None:
    it = explained(
        make_pod("p").requests(cpu="2"),
        make_node("big"),
        make_node("small").capacity(cpu="1", memory="8Gi", pods=110),
        make_node("bad").capacity(cpu="1", memory="8Gi", pods=110).taint("gone"),
    )
    assert [(verdict.node, verdict.fits) for verdict in it.verdicts] == [
        ("bad", False),
        ("big", True),
        ("small", False),
    ]
    bad, _, small = it.verdicts
    assert bad.refusal is not None
    assert (bad.refusal.plugin, bad.refusal.code) == ("TaintToleration", "UnschedulableAndUnresolvable")
    assert [(also.plugin, also.reasons) for also in bad.also] == [("NodeResourcesFit", (TOO_SMALL,))]
    assert small.refusal is not None
    assert (small.refusal.reasons, small.also) == ((TOO_SMALL,), ())
    assert (it.node, it.outcome, it.message) == ("big", "scheduled", "")


def test_scores_add_up_and_the_best_node_wins() -> None:
    it = explained(
        make_pod("p").requests(cpu="1"),
        make_node("small"),
        make_node("large").capacity(cpu="64", memory="64Gi", pods=110),
    )
    assert [score.node for score in it.scores] == [it.node, "small"] == ["large", "small"]
    for score in it.scores:
        assert score.total == sum(part.weighted for part in score.parts)
    weights = {part.plugin: part.weight for part in it.scores[0].parts}
    assert weights["TaintToleration"] == 3
    assert "NodeAffinity" in it.skipped_scores
    assert "NodePorts" in it.pre_filters.skipped


def test_equals_are_drawn_by_the_seed_and_the_chosen_one_comes_first() -> None:
    nodes = [make_node(f"n{i}") for i in range(4)]
    drawn = {explained(make_pod("p"), *nodes, seed=seed).node for seed in range(20)}
    assert drawn == {"n0", "n1", "n2", "n3"}
    it = explained(make_pod("p"), *nodes, seed=3)
    assert set(it.ties) == drawn
    assert it.ties[0] == it.scores[0].node == it.node


def test_a_pod_that_names_its_node_leaves_the_others_unasked() -> None:
    by_name = NodeSelectorRequirement(key="metadata.name", operator="In", values=("n1",))
    only = make_pod("p").requires_node(NodeSelectorTerm(match_fields=(by_name,)))
    it = explained(only, make_node("n1"), make_node("n2"))
    assert (it.pre_filters.nodes, it.pre_filters.narrowed_by) == (("n1",), ("NodeAffinity",))
    assert it.verdicts[1].refusal is not None
    assert it.verdicts[1].refusal.reasons == ("node(s) didn't satisfy plugin(s) [NodeAffinity]",)


def test_a_pod_that_runs_already_is_explained_as_if_it_were_pending() -> None:
    running = make_pod("p").requests(cpu="3").on("n1")
    it = explained(running, make_node("n1"), make_node("n2").capacity(cpu="2", memory="8Gi", pods=110))
    assert (it.current_node, it.remark, it.node) == ("n1", "it runs on n1", "n1")


def test_a_gated_pod_is_explained_as_if_the_gate_were_gone() -> None:
    it = explained(make_pod("p").gate("later"), make_node("n1"))
    assert it.gate is not None
    assert (it.outcome, it.gate.plugin, it.node) == ("gated", "SchedulingGates", "n1")


def test_without_nodes_there_is_a_message_and_nothing_else() -> None:
    it = explained(make_pod("p"))
    assert (it.message, it.verdicts, it.node) == ("no nodes available to schedule pods", (), "")


def test_preemption_tells_whom_it_would_evict_where_else_and_where_it_cannot_help() -> None:
    selector = LabelSelector(match_labels={"app": "guarded"})
    budget = PodDisruptionBudget(
        metadata=ObjectMeta(name="keep", namespace="default"), spec=BudgetSpec(selector=selector)
    )
    it = explained(
        make_pod("p").requests(cpu="3").priority(10),
        make_node("n1"),
        make_node("n2"),
        make_node("n3").taint("gone"),
        make_node("n4"),
        make_pod("cheap").requests(cpu="2").priority(1).on("n1"),
        make_pod("guarded").label(app="guarded").requests(cpu="2").priority(-5).on("n2"),
        make_pod("equal").requests(cpu="2").priority(10).on("n4"),
        budget,
    )
    assert it.message == "0/4 nodes are available: 1 node(s) had untolerated taint(s), 3 Insufficient cpu."
    assert it.preemption is not None
    assert it.preemption.chosen == ProposedEviction("n1", (Victim("default/cheap", 1),))
    assert it.preemption.others == (
        ProposedEviction("n2", (Victim("default/guarded", -5, ("keep",)),), budget_violations=1),
    )
    assert it.preemption.no_help == (
        NoHelp("No preemption victims found for incoming pod", ("n4",)),
        NoHelp("Preemption is not helpful for scheduling", ("n3",)),
    )


def test_a_node_is_refused_where_room_was_promised_to_another() -> None:
    promised = make_pod("promised").requests(cpu="3").priority(10).nominated("n1")
    it = explained(make_pod("p").requests(cpu="3"), make_node("n1"), promised)
    assert (it.verdicts[0].fits, it.verdicts[0].for_nominated) == (False, True)
