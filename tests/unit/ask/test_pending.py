from __future__ import annotations

from tests.applied_remedies import as_json, cluster_of

from kubesched.ask.pending import PendingPods, PoolHelp, pending_pods
from kubesched.testing import NodeBuilder, PodBuilder, make_node, make_pod

GPU = "nvidia.com/gpu"


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
