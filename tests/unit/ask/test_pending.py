from __future__ import annotations

from tests.applied_remedies import as_json, cluster_of
from tests.device_builders import device, make_claim, make_class, make_slice, request, with_claims

from kubesched.ask.pending import PendingPods, PoolHelp, pending_pods
from kubesched.testing import NodeBuilder, PodBuilder, make_node, make_pod

GPU = "nvidia.com/gpu"
ZONE = "topology.kubernetes.io/zone"


def asked(*objects: NodeBuilder | PodBuilder) -> PendingPods:
    return pending_pods(cluster_of(as_json([obj.build() for obj in objects])))


def gpu_node(name: str, gpus: int) -> NodeBuilder:
    return make_node(name).capacity({"cpu": "32", "memory": "64Gi", "pods": 110, GPU: gpus}).label(pool="a100")


def training(name: str, gpus: int = 1) -> PodBuilder:
    return make_pod(name).requests({"cpu": "1", GPU: gpus})


def test_pods_that_lack_the_same_are_one_group_with_the_nodes_that_would_place_them() -> None:
    web = make_node("w").capacity(cpu="2", memory="8Gi", pods=110).label(pool="web")
    busy = training("busy", 8).on("g")
    waiting = [training(f"t{i}") for i in range(20)]
    answer = asked(web, gpu_node("g", 8), busy, *waiting)
    (group,) = answer.groups
    assert (group.why, len(group.pods)) == (f"Insufficient {GPU}", 20)
    assert group.pools == (PoolHelp("a100", nodes=3, places=20),)


def test_what_no_node_of_a_pool_could_hold_is_not_counted() -> None:
    busy = training("busy", 8).on("g")
    answer = asked(gpu_node("g", 8), busy, *(training(f"t{i}", 8) for i in range(3)), training("huge", 16))
    (group,) = answer.groups
    assert len(group.pods) == 4
    assert group.pools == (PoolHelp("a100", nodes=3, places=3),)


def test_those_that_find_a_node_are_placed_first() -> None:
    node = make_node("n").capacity(cpu="2", memory="8Gi", pods=110)
    answer = asked(node, *(make_pod(f"p{i}").requests(cpu="1") for i in range(3)))
    assert [placed.pod for placed in answer.placed] == ["default/p0", "default/p1"]
    assert [group.pods for group in answer.groups] == [("default/p2",)]


def test_pods_behind_a_gate_are_a_group_of_their_own() -> None:
    node = make_node("n").capacity(cpu="2", memory="8Gi", pods=110)
    answer = asked(node, make_pod("a").gate("g"), make_pod("b").requests(cpu="9"))
    assert {group.why for group in answer.groups} == {"waiting for scheduling gates: [g]", "Insufficient cpu"}


def test_each_workload_is_told_what_it_waits_for_itself() -> None:
    """Tainted nodes speak against all three, and are not what any of them waits for."""
    nodes = [make_node(f"{zone}{i}").zone(zone).capacity(cpu="4", pods=20) for zone in "ab" for i in range(2)]
    nodes += [make_node(f"t{i}").zone("a").taint("team", "x") for i in range(3)]
    web = [
        make_pod(f"web-{i}").label(app="web").spread(ZONE, app="web").owned_by("ReplicaSet", "web") for i in range(6)
    ]
    there = [pod.on(name) for pod, name in zip(web, ("a0", "a1"))]
    closed = [node.cordoned() if node.build().name.startswith("b") else node for node in nodes]
    ssd = [make_pod(f"ssd-{i}").node_selector(disk="ssd").owned_by("ReplicaSet", "ssd") for i in range(3)]
    huge = [make_pod(f"huge-{i}").requests(cpu="40").owned_by("Job", "huge") for i in range(2)]
    answer = asked(*closed, *there, *web[2:], *ssd, *huge)
    assert [(group.workload, len(group.pods), group.why) for group in answer.groups] == [
        ("default/web", 4, "node(s) didn't match pod topology spread constraints"),
        ("default/ssd", 3, "node(s) didn't match Pod's node affinity/selector"),
        ("default/huge", 2, "Insufficient cpu"),
    ]
    assert all(group.remedies is not None and group.remedies.found for group in answer.groups[:2])


def test_a_namespace_is_told_of_alone() -> None:
    node = make_node("n").capacity(cpu="2", memory="8Gi", pods=110)
    theirs = make_pod("theirs", namespace="shop").requests(cpu="9").build()
    mine = make_pod("mine", namespace="edge").requests(cpu="9").build()
    cluster = cluster_of(as_json([node.build(), theirs, mine]))
    answer = pending_pods(cluster, namespace="edge")
    assert [group.pods for group in answer.groups] == [("edge/mine",)]


def test_nodes_are_counted_for_pods_that_are_spread_over_zones() -> None:
    """Only a node in the zone that holds the others back helps the first of them."""
    nodes = [make_node(f"n-{zone}").zone(zone).capacity(cpu="2", pods=20).label(pool="web") for zone in "abc"]
    nodes[2] = make_node("n-c").zone("c").capacity(cpu="1", pods=20).label(pool="web")
    web = [
        make_pod(f"w{i}").label(app="w").requests(cpu="1").spread(ZONE, app="w").owned_by("ReplicaSet", "w")
        for i in range(6)
    ]
    there = [pod.on(name) for pod, name in zip(web, ("n-a", "n-a", "n-b", "n-b", "n-c"))]
    (group,) = asked(*nodes, *there, web[5]).groups
    assert group.pools == (PoolHelp("web", nodes=3, places=1),)


def test_nodes_are_counted_for_pods_that_want_devices() -> None:
    """A new node brings devices like those of its model, and each pod holds one."""
    objects = [
        make_node("g-0").zone("a").capacity(cpu="8", pods=20).label(pool="gpu").build(),
        make_slice("g-0", device("gpu-0"), device("gpu-1")),
        make_class("gpu"),
        *(make_claim(f"c{i}", request("gpu")) for i in range(5)),
        *(with_claims(make_pod(f"t{i}").owned_by("Job", "train"), f"c{i}").build() for i in range(5)),
    ]
    answer = pending_pods(cluster_of(as_json(objects)))
    assert len(answer.placed) == 2
    (group,) = answer.groups
    assert group.pools == (PoolHelp("gpu", nodes=2, places=3),)
