from __future__ import annotations

from tests.applied_remedies import as_json, cluster_of

from kubesched.api.meta import KubeObject
from kubesched.ask.explain import ExplainedPod, explain
from kubesched.simulate.cluster import ClusterModel
from kubesched.testing import NodeBuilder, PodBuilder, make_node, make_pod


def cluster(*objects: NodeBuilder | PodBuilder) -> ClusterModel:
    built: list[KubeObject] = [obj.build() for obj in objects]
    return cluster_of(as_json(built))


def asked(pod: PodBuilder, *objects: NodeBuilder | PodBuilder) -> ExplainedPod:
    return explain(cluster(*objects), pod.build(), with_remedies=False)


def node(name: str, cpu: str = "4", **labels: str) -> NodeBuilder:
    return make_node(name).capacity(cpu=cpu, memory="8Gi", pods=10).label(labels)


def which(answer: ExplainedPod) -> list[tuple[int, str]]:
    """Per group how many nodes, and what they have that no others have."""
    return [(len(group.nodes), group.trait.text if group.trait else "") for group in answer.findings.node_groups]


# -- groups -----------------------------------------------------------------------------------------------------------


def test_a_group_is_named_by_the_label_that_tells_it_from_all_others() -> None:
    spot = [node(f"s{i}", pool="spot").taint("spot") for i in range(5)]
    web = [node(f"w{i}", pool="web") for i in range(4)]
    assert which(asked(make_pod("p"), *spot, *web)) == [(4, "pool web"), (5, "pool spot")]


def test_a_label_of_the_users_own_will_do() -> None:
    old = [node(f"a{i}", generation="g4", team="x") for i in range(4)]
    new = [node(f"b{i}", generation="g5", team="x") for i in range(4)]
    found = asked(make_pod("p").node_selector(generation="g5"), *old, *new)
    assert which(found) == [(4, "generation g5"), (4, "generation g4")]


def test_a_part_of_a_pool_has_no_trait() -> None:
    nodes = [node(f"w{i}", pool="web", cpu="4" if i % 2 else "1") for i in range(8)]
    assert which(asked(make_pod("p").requests(cpu="2"), *nodes)) == [(4, ""), (4, "")]


def test_names_that_begin_alike_tell_nodes_apart() -> None:
    nodes = [*(node(f"spot-{i}").taint("spot") for i in range(4)), *(node(f"web-{i}") for i in range(4))]
    assert which(asked(make_pod("p"), *nodes)) == [
        (4, "names that begin with web-"),
        (4, "names that begin with spot-"),
    ]


def test_a_few_nodes_are_called_by_their_names() -> None:
    assert which(asked(make_pod("p"), node("a", pool="x").taint("t"), node("b", pool="y"))) == [(1, ""), (1, "")]


# -- misses -----------------------------------------------------------------------------------------------------------


def test_the_node_that_lacks_least_comes_first() -> None:
    found = asked(make_pod("p").requests(cpu="4"), node("small", cpu="1"), node("almost", cpu="3800m"))
    assert [(miss.node, miss.text) for miss in found.findings.nearest_misses] == [
        ("almost", "lacks 200m cpu"),
        ("small", "lacks 3 cpu"),
    ]


def test_one_objection_is_nearer_than_two() -> None:
    both, cordoned = node("both", cpu="3900m").taint("t", "x"), node("cordoned").cordoned()
    found = asked(make_pod("p").requests(cpu="4"), both, cordoned)
    assert [(miss.node, miss.text) for miss in found.findings.nearest_misses] == [
        ("cordoned", "is cordoned"),
        ("both", "has the taint t=x:NoSchedule; lacks 100m cpu"),
    ]


def test_a_label_that_is_missing_is_named() -> None:
    found = asked(make_pod("p").node_selector(disk="ssd"), node("n"))
    assert found.findings.nearest_misses[0].text == "lacks the label disk=ssd"


def test_a_full_node_says_how_many_pods_it_has() -> None:
    full = make_node("n").capacity(cpu="4", memory="8Gi", pods=1)
    assert asked(make_pod("p"), full, make_pod("q").on("n")).findings.nearest_misses[0].text == "has its 1 pods"


# -- the cluster afterwards -------------------------------------------------------------------------------------------


def test_a_pod_that_runs_is_on_its_node_again() -> None:
    there = cluster(node("n"), make_pod("p").requests(cpu="3").on("n"))
    before = there.state.nodes.requested.copy()
    answer = explain(there, there.pods["default/p"])
    assert (answer.explanation.node, answer.explanation.current_node) == ("n", "n")
    assert (there.state.nodes.requested == before).all()
    assert there.state.placed(there.pods["default/p"]) is not None
