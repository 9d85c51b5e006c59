from __future__ import annotations

import pytest
from tests.applied_remedies import Json, as_json, cluster_of, schedules

from kubesched import config
from kubesched.api.affinity import TopologySpreadConstraint
from kubesched.api.meta import KubeObject, LabelSelector, ObjectMeta
from kubesched.api.pod import PersistentVolumeClaimSource, Volume
from kubesched.api.storage import StorageClass
from kubesched.api.workloads import BudgetSpec, PodDisruptionBudget
from kubesched.ask.explain import explain
from kubesched.ask.remedies import Remedies, RemedyKind, remedies
from kubesched.testing import HOSTNAME, NodeBuilder, PodBuilder, make_node, make_pod

ZONE = "topology.kubernetes.io/zone"


def asked(pod: PodBuilder, *others: KubeObject | NodeBuilder | PodBuilder) -> tuple[Remedies, list[Json]]:
    """What would help the pod, and the objects of the cluster."""
    built = pod.build()
    objects = as_json([built, *(obj if isinstance(obj, KubeObject) else obj.build() for obj in others)])
    cluster = cluster_of(objects)
    return remedies(cluster, cluster.pods[built.key]), objects


def texts(pod: PodBuilder, *others: KubeObject | NodeBuilder | PodBuilder) -> list[str]:
    """The remedies in words. Each is carried out on a cluster made anew, where it must help."""
    found, objects = asked(pod, *others)
    for remedy in found.found:
        assert schedules(objects, found.pod, remedy), remedy.text
    return [remedy.text for remedy in found.found]


def node(name: str, cpu: str = "4") -> NodeBuilder:
    return make_node(name).capacity(cpu=cpu, memory="8Gi", pods=10)


# -- the pod ----------------------------------------------------------------------------------------------------------


def test_a_pod_that_asks_for_too_much_is_told_how_much_less_would_do() -> None:
    busy = make_pod("busy").requests(cpu="3300m").on("n")
    assert "Request 300m less cpu: 700m instead of 1" in texts(make_pod("p").requests(cpu="1"), node("n"), busy)


def test_memory_is_told_in_whole_mebibytes() -> None:
    busy = make_pod("busy").requests(memory="5000000001").on("n")
    found = texts(make_pod("p").requests(memory="4Gi"), node("n"), busy)
    assert "Request 673Mi less memory: 3423Mi instead of 4Gi" in found


def test_the_largest_container_gives_first() -> None:
    pod = make_pod("p").container("small", cpu="1").container("large", cpu="4")
    found, objects = asked(pod, node("n"))
    remedy = next(r for r in found.found if r.steps[0].sort is RemedyKind.REQUEST_LESS)
    assert schedules(objects, found.pod, remedy)
    operations = remedy.changes[0].patch
    assert operations is not None
    assert [(o.path, o.value) for o in operations] == [("/spec/containers/2/resources/requests/cpu", "3")]


def test_a_taint_can_be_tolerated_or_removed() -> None:
    found = texts(make_pod("p"), node("n").taint("dedicated", "db"))
    assert found[:2] == [
        "Tolerate the taint dedicated=db:NoSchedule",
        "Remove the taint dedicated=db:NoSchedule from n",
    ]


def test_the_taint_of_a_node_that_is_not_ready_is_not_to_be_tolerated() -> None:
    key = "node.kubernetes.io/unreachable"
    found = texts(make_pod("p"), node("n").taint(key, effect="NoSchedule").taint(key, effect="NoExecute"))
    assert not any(text.startswith("Tolerate") for text in found)
    assert found.count("Bring n back: its taint says unreachable") == 1


def test_a_node_selector_can_be_met_by_a_label_or_done_without() -> None:
    found = texts(make_pod("p").node_selector(disk="ssd"), node("n"))
    assert found == ["Label n with disk=ssd", "Do without the node selector disk=ssd"]


@pytest.mark.parametrize(
    "key", [HOSTNAME, ZONE, "node.kubernetes.io/instance-type", "eks.amazonaws.com/nodegroup", "pool"]
)
def test_labels_that_kubernetes_or_a_provider_sets_are_never_proposed(key: str) -> None:
    """A node with another hostname or zone than its own breaks volumes, spread and its kubelet."""
    found = texts(make_pod("p").node_selector({key: "elsewhere"}), node("n"))
    assert found == [f"Do without the node selector {key}=elsewhere"]
    found = texts(make_pod("p").node_selector({key: "elsewhere"}).host_port(80), node("n").label({key: "here"}))
    assert not [text for text in found if text.startswith("Label")]


def test_a_misspelt_zone_is_answered_with_the_zones_that_there_are() -> None:
    nodes = [node(f"n{zone}").zone(f"eu-1{zone}") for zone in "abc"]
    found = texts(make_pod("p").node_selector({ZONE: "eu-1d"}), *nodes)
    assert found[:3] == [f"Ask for {ZONE}=eu-1{zone}: no node has eu-1d" for zone in "cba"]
    explained = explain(
        cluster_of(as_json([each.build() for each in nodes])), make_pod("p").node_selector({ZONE: "eu-1d"}).build()
    )
    assert explained.findings.nearest_misses[0].text == (
        f"lacks the label {ZONE}=eu-1d (as all nodes do; there are eu-1a, eu-1b, eu-1c)"
    )


def test_nobody_is_evicted_whose_replica_set_wants_the_place_back() -> None:
    """The pod of the same ReplicaSet would be made anew, and wait instead."""
    web = [make_pod(f"web-{i}").requests(cpu="2").owned_by("ReplicaSet", "web") for i in range(3)]
    found = texts(web[2], node("n"), web[0].on("n"), web[1].on("n"))
    assert found
    assert not [text for text in found if text.startswith("Evict")]
    other = make_pod("api").requests(cpu="2").owned_by("ReplicaSet", "api")
    found = texts(other, node("n"), web[0].on("n"), web[1].on("n"))
    assert not [text for text in found if text.startswith("Evict")], "web would wait instead of api"


def test_a_pod_that_finds_another_node_may_be_evicted_and_the_answer_says_where_it_goes() -> None:
    api = make_pod("api").requests(cpu="4").owned_by("ReplicaSet", "api")
    web = make_pod("web").requests(cpu="2").owned_by("ReplicaSet", "web").on("n")
    found, _ = asked(api, node("n"), node("small", cpu="3"), web)
    remedy = next(each for each in found.found if each.steps[0].sort is RemedyKind.EVICT)
    assert remedy.sentences == "Evict default/web from n. Made anew: default/web on small."
    assert remedy.touches == ("Pod default/web",)


def test_nobody_is_evicted_whom_a_budget_protects_or_who_goes_before_the_pod() -> None:
    pod, other = make_pod("p").host_port(80), make_pod("q").label(app="q").host_port(80).on("n")
    budget = PodDisruptionBudget(
        metadata=ObjectMeta(name="q", namespace="default"),
        spec=BudgetSpec(min_available=1, selector=LabelSelector(match_labels={"app": "q"})),
    )
    assert "Evict default/q from n" in texts(pod, node("n"), other)
    assert "Evict default/q from n" not in texts(pod, node("n"), other, budget)
    assert "Evict default/q from n" not in texts(pod, node("n"), other.priority(1))


def test_nothing_is_proposed_twice() -> None:
    holder = make_pod("hostport1").host_port(80).on("n")
    found = texts(make_pod("p").host_port(80).node_selector({HOSTNAME: "n"}), node("n"), node("m"), holder)
    assert found.count("Evict default/hostport1 from n") == 1
    assert len(found) == len(set(found))


def test_nodes_with_taints_can_be_left_out_of_a_spread() -> None:
    """A zone that is down counts as one with few pods unless taints are honored."""
    zones = [node("a1").zone("a").taint("node.kubernetes.io/unreachable"), node("b1").zone("b"), node("c1").zone("c")]
    there = [make_pod(f"w-{name}").label(app="w").on(name) for name in ("b1", "c1")]
    found = texts(make_pod("p").label(app="w").spread(ZONE, app="w"), *zones, *there)
    assert found[0].endswith("nodeTaintsPolicy Honor")


def test_every_remedy_says_what_it_costs_and_whom_it_touches() -> None:
    pod = make_pod("web-1").requests(cpu="1").owned_by("ReplicaSet", "web").node_selector(disk="ssd")
    found, _ = asked(pod, node("n"), node("m").cordoned().label(disk="ssd"))
    costs = {remedy.steps[0].sort: (remedy.cost, remedy.touches) for remedy in found.found}
    assert costs == {
        RemedyKind.UNCORDON: ("Other pods may go there, too.", ("Node m",)),
        RemedyKind.LABEL_NODE: ("Other pods may go there, too.", ("Node n",)),
        RemedyKind.ADD_NODE: ("It is one more node to pay for.", ()),
        RemedyKind.DROP_NODE_SELECTOR: ("It replaces the pods of default/web.", ("workload default/web",)),
    }


def test_a_topology_key_that_kubernetes_sets_is_not_proposed_either() -> None:
    found = texts(make_pod("p").label(app="web").spread(ZONE, app="web"), node("n"))
    assert found
    assert not [text for text in found if text.startswith("Label")]


def test_a_skew_is_raised_by_just_as_much_as_it_takes() -> None:
    zones = [node("a1").zone("a"), node("b1").zone("b").cordoned()]
    there = [make_pod(f"w{i}").label(app="w").on("a1") for i in range(3)]
    pod = make_pod("p").label(app="w").spread(ZONE, app="w")
    assert f"Raise maxSkew over {ZONE} from 1 to 4" in texts(pod, *zones, *there)


def test_a_label_that_no_node_has_cannot_be_spread_over() -> None:
    constraint = TopologySpreadConstraint(
        max_skew=1, topology_key="rack", when_unsatisfiable="DoNotSchedule", label_selector=LabelSelector()
    )
    found = texts(make_pod("p").spread_constraint(constraint), node("n"))
    assert found == ["Label n with rack=n", "Let pods spread unevenly over rack: whenUnsatisfiable ScheduleAnyway"]


def test_company_can_be_done_without() -> None:
    found = texts(make_pod("p").pod_affinity(ZONE, app="db"), node("n").zone("a"))
    assert found == [f"Do without the affinity to pods with app=db in the same {ZONE}"]


def test_a_port_can_be_given_up_or_its_holder_evicted() -> None:
    found = texts(make_pod("p").host_port(80), node("n"), make_pod("q").host_port(80).on("n"))
    assert any(text.startswith("Do without the host port 80/TCP") for text in found)
    assert "Evict default/q from n" in found


def test_gates_come_off_together_with_what_else_is_in_the_way() -> None:
    found = texts(make_pod("p").gate("a").gate("b").requests(cpu="5"), node("n"))
    assert found[0] == "Remove the scheduling gates a, b; and request 1 less cpu: 4 instead of 5"
    assert texts(make_pod("p").gate("a"), node("n")) == ["Remove the scheduling gate a"]


# -- the cluster ------------------------------------------------------------------------------------------------------


def test_an_open_node_is_nearer_than_any_change_of_the_pod() -> None:
    assert texts(make_pod("p"), node("n").cordoned())[0] == "Uncordon n"


def test_the_pool_that_helps_is_named_with_its_zones() -> None:
    full = [make_pod(f"f{i}").requests(cpu="4").on(f"n{i}") for i in range(2)]
    nodes = [node("n0").label(pool="big").zone("a"), node("n1").label(pool="big").zone("b")]
    other = node("s0", cpu="1").label(pool="small").zone("a")
    found = texts(make_pod("p").requests(cpu="2"), *nodes, other, *full)
    assert "Add a node to pool big in a or b, like n0" in found
    assert not any("pool small" in text for text in found)


def test_a_new_node_has_its_daemons() -> None:
    daemon = make_pod("agent").requests(cpu="3").owned_by("DaemonSet", "agent").on("n")
    found = texts(make_pod("p").requests(cpu="2"), node("n"), daemon)
    assert not any("Add a node" in text for text in found)


def test_who_may_preempt_need_only_wait() -> None:
    pod, busy = make_pod("p").priority(10).requests(cpu="4"), make_pod("busy").requests(cpu="4").on("n")
    first = texts(pod, node("n"), busy)[0]
    assert first == "Wait: the scheduler makes room by itself on n, by evicting default/busy"


def test_pods_that_are_on_their_way_out_are_waited_for() -> None:
    busy = make_pod("busy").requests(cpu="4").on("n").terminating()
    first = texts(make_pod("p").never_preempting().requests(cpu="4"), node("n"), busy)[0]
    assert first == "Wait until default/busy is gone: being deleted already"


def test_a_pod_elsewhere_in_the_zone_may_be_the_one_in_the_way() -> None:
    near, far = node("a1").zone("a").cordoned(), node("a2").zone("a")
    other = make_pod("other").label(app="x").on("a1")
    found = texts(make_pod("p").pod_anti_affinity(ZONE, app="x").never_preempting(), near, far, other)
    assert "Evict default/other from a1" in found


def test_a_missing_claim_can_be_created() -> None:
    volume = Volume(name="data", persistent_volume_claim=PersistentVolumeClaimSource(claim_name="data"))
    fast = StorageClass(
        metadata=ObjectMeta(name="fast", uid="fast"),
        provisioner="csi.example.com",
        volume_binding_mode="WaitForFirstConsumer",
    )
    found = texts(make_pod("p").spec(volumes=(volume,)), node("n"), fast)
    assert found[0] == "Create the PersistentVolumeClaim data, of class fast"


# -- pairs ------------------------------------------------------------------------------------------------------------


def test_where_one_change_is_not_enough_two_are() -> None:
    pod = make_pod("p").node_selector(disk="ssd").requests(cpu="6")
    found, objects = asked(pod, node("n").taint("dedicated", "db"))
    assert not any(len(remedy.steps) == 1 for remedy in found.found)
    only = node("n", cpu="8").taint("dedicated", "db")
    found, objects = asked(pod, only)
    assert found.found
    for remedy in found.found:
        assert len(remedy.steps) == 2
        assert schedules(objects, found.pod, remedy)
    assert found.found[0].text == "Tolerate the taint dedicated=db:NoSchedule; and label n with disk=ssd"


def test_a_reserve_that_builds_upon_a_point_that_is_off_makes_no_remedy() -> None:
    off = {"disabled": [{"name": "VolumeBinding"}]}
    settings = config.from_plain(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"plugins": {"preFilter": off, "filter": off}}],
        }
    )
    pod = make_pod("p").requests(cpu="9").build()
    cluster = cluster_of(as_json([node("n").build(), pod]), settings)
    assert remedies(cluster, cluster.pods["default/p"]).found == ()


def test_nothing_is_left_behind() -> None:
    pod = make_pod("p").requests(cpu="8").build()
    busy = [make_pod(f"b{i}").requests(cpu="2").on("n").build() for i in range(2)]
    cluster = cluster_of(as_json([pod, node("n").build(), *busy]))
    requested, placed = cluster.state.nodes.requested.copy(), cluster.state.pods.pods_on(0)[:]
    first = remedies(cluster, cluster.pods["default/p"])
    assert (cluster.state.nodes.requested == requested).all()
    assert cluster.state.nodes.live_count == 1
    assert {each.pod.key for each in cluster.state.pods.pods_on(0)} == {each.pod.key for each in placed}
    assert remedies(cluster, cluster.pods["default/p"]) == first
