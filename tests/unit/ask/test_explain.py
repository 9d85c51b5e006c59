from __future__ import annotations

from tests.applied_remedies import as_json, cluster_of
from tests.device_builders import allocated, device, make_claim, make_class, make_slice, request, with_claims

from kubesched import config
from kubesched.api.meta import KubeObject
from kubesched.api.pod import PodCondition
from kubesched.api.well_known import ZONE
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


def test_a_spread_constraint_tells_the_pods_of_each_zone_and_that_a_cordoned_one_counts() -> None:
    nodes = [node("a1").zone("zone-a"), node("b1").zone("zone-b").cordoned(), node("c1").zone("zone-c")]
    there = [make_pod(f"w{i}").label(app="w").on(name) for i, name in enumerate(("a1", "a1", "b1", "c1", "c1"))]
    found = asked(make_pod("p").label(app="w").spread(ZONE, app="w"), *nodes, *there)
    misses = {miss.node: miss.text for miss in found.findings.nearest_misses}
    assert misses["a1"] == (
        "is in zone-a with 2 matching pods, zone-b has 1 (all its nodes are cordoned or tainted, and it counts), "
        f"zone-c has 2: maxSkew 1 over {ZONE}"
    )
    (counts,) = found.findings.details["spread"]
    assert [(domain.domain, domain.pods) for domain in counts.domains] == [("zone-b", 1), ("zone-a", 2), ("zone-c", 2)]
    assert (counts.max_skew, counts.fewest) == (1, 1)


def test_a_pod_that_is_kept_away_is_told_by_whom() -> None:
    nodes = [node("a1").zone("a"), node("a2").zone("a")]
    apart = make_pod("p").label(app="w").pod_anti_affinity(ZONE, app="w")
    found = asked(apart, *nodes, make_pod("w1").label(app="w").on("a1"))
    assert [miss.text for miss in found.findings.nearest_misses] == [
        "has default/w1, which the pod keeps away from",
        f"has default/w1 in the same {ZONE} (on a1), which the pod keeps away from",
    ]
    shy = make_pod("w1").label(app="w").pod_anti_affinity(ZONE, app="w").on("a1")
    found = asked(make_pod("p").label(app="w"), *nodes, shy)
    assert found.findings.nearest_misses[0].text == "has default/w1, which keeps such pods away"
    found = asked(make_pod("p").pod_affinity(ZONE, app="db"), *nodes)
    assert found.findings.nearest_misses[0].text == f"has no pod with app=db in {ZONE}=a"


def test_the_nearest_misses_of_a_pod_with_a_gpu_are_nodes_that_have_gpus() -> None:
    gpu, names = "nvidia.com/gpu", ("gpu-a", "gpu-b")
    nodes = [node("gen-a-0"), node("gen-a-1"), *(make_node(n).capacity({"cpu": "4", "pods": 9, gpu: 4}) for n in names)]
    busy = [make_pod(f"busy-{name}").requests({gpu: 4}).on(name) for name in names]
    found = asked(make_pod("infer").requests({gpu: 1}), *nodes, *busy)
    misses = found.findings.nearest_misses
    assert [(miss.node, miss.text) for miss in misses[:2]] == [(name, f"lacks 1 {gpu}") for name in names]
    assert [(short.most_left, short.node) for short in found.findings.details["shortages"]] == [("0", "gpu-a")]


def test_devices_are_shown_of_the_nodes_that_lack_nothing_else() -> None:
    """Whoever holds the devices of the pool that the pod asks for is what the reader wants to know."""
    held = allocated(make_claim("theirs", request()), "gpu-a/g0")
    nodes = [node("gen-a-0"), node("gen-a-1"), node("gpu-a", pool="gpu")]
    slices = [make_slice(name, device("g0")) for name in ("gen-a-0", "gen-a-1", "gpu-a")]
    mine = make_claim("mine", request())
    pod = with_claims(make_pod("p"), "mine").node_selector(pool="gpu")
    records: list[KubeObject] = [*(each.build() for each in nodes), pod.build(), make_class("gpu"), held, mine, *slices]
    there = ClusterModel(records, config.default())
    found = explain(there, there.pods["default/p"], with_remedies=False)
    first = found.explanation.details["devices"].sections[0]
    assert first.node == "gpu-a"
    assert "in use by default/theirs" in str(first.rows)


def test_who_holds_the_devices_of_a_node_is_told() -> None:
    held = [
        allocated(make_claim(f"c{i}", request()), f"a/g{i}", reserved_for=make_pod(f"q{i}").build().uid)
        for i in range(2)
    ]
    users = [with_claims(make_pod(f"q{i}").owned_by("Job", "train"), f"c{i}").on("a").build() for i in range(2)]
    mine, pod = make_claim("mine", request(count=2)), with_claims(make_pod("p"), "mine").build()
    devices = make_slice("a", device("g0"), device("g1"))
    there = ClusterModel([node("a").build(), make_class("gpu"), devices, mine, *held, *users, pod], config.default())
    (miss,) = explain(there, there.pods["default/p"]).findings.nearest_misses
    assert miss.text == "cannot allocate all claims: 2 of 2 devices are in use by default/c0, default/c1"


def test_who_has_the_port_is_told_and_its_node_is_nearer_than_those_that_the_pod_does_not_ask_for() -> None:
    nodes = [node("a", host="a"), node("b", host="b"), node("c", host="c")]
    pod = make_pod("p").host_port(80).node_selector(host="b")
    found = asked(pod, *nodes, make_pod("q").host_port(80).on("b"))
    assert [(miss.node, miss.text) for miss in found.findings.nearest_misses] == [
        ("b", "gave its port 80/TCP to default/q"),
        ("a", "lacks the label host=b"),
        ("c", "lacks the label host=b"),
    ]


def test_a_full_node_says_how_many_pods_it_has() -> None:
    full = make_node("n").capacity(cpu="4", memory="8Gi", pods=1)
    assert asked(make_pod("p"), full, make_pod("q").on("n")).findings.nearest_misses[0].text == "has its 1 pods"


def test_a_condition_that_says_otherwise_is_told_with_what_may_explain_it() -> None:
    """The scheduler in charge has a plugin that nobody told us of."""
    said = PodCondition("PodScheduled", "False", "Unschedulable", "0/1 nodes are available: 1 node(s) are too hot.")
    found = asked(make_pod("p").status(conditions=(said,)), node("n"))
    assert found.explanation.node == "n"
    assert found.findings.contradiction.startswith(
        "Its condition says otherwise: 0/1 nodes are available: 1 node(s) are too hot. Either the cluster has changed"
    )
    assert asked(make_pod("p"), node("n")).findings.contradiction == ""
    assert asked(make_pod("p").requests(cpu="9").status(conditions=(said,)), node("n")).findings.contradiction == ""


# -- the cluster afterwards -------------------------------------------------------------------------------------------


def test_a_pod_that_runs_is_on_its_node_again() -> None:
    there = cluster(node("n"), make_pod("p").requests(cpu="3").on("n"))
    before = there.state.nodes.requested.copy()
    answer = explain(there, there.pods["default/p"])
    assert (answer.explanation.node, answer.explanation.current_node) == ("n", "n")
    assert (there.state.nodes.requested == before).all()
    assert there.state.placed(there.pods["default/p"]) is not None
