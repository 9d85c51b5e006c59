"""What if nodes were drained? The question before every maintenance."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from kubesched import config
from kubesched.api.device_claims import AllocationResult, ConsumerReference, ResourceClaim, ResourceClaimStatus
from kubesched.api.meta import KubeObject, ObjectMeta
from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.ask.edits import DrainNodes
from kubesched.ask.hypothetical import apply_hypothetical
from kubesched.simulate.nodes import nodes_meant, whats_wrong
from kubesched.simulate.simulation import Simulation
from kubesched.testing import PodBuilder, make_node, make_pod

NODES = [make_node(f"n{i}").zone(f"zone-{i % 2}").capacity(cpu="4", memory="8Gi", pods=10).build() for i in range(4)]


def drained(objects: Iterable[KubeObject], nodes: Iterable[str]) -> tuple[KubeObject, ...]:
    return apply_hypothetical(objects, [DrainNodes(tuple(nodes))])


def places(*objects: KubeObject) -> dict[str, str]:
    return {obj.name: obj.spec.node_name for obj in objects if isinstance(obj, Pod)}


def test_nodes_are_meant_by_name_or_by_label() -> None:
    assert nodes_meant(NODES, "n1") == {"n1"}
    assert nodes_meant(NODES, "topology.kubernetes.io/zone=zone-1") == {"n1", "n3"}
    assert nodes_meant(NODES, "n9") == nodes_meant(NODES, "topology.kubernetes.io/zone=") == set()


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("n01", "there is no such node; did you mean n1?"),
        ("gpu", "there is no such node"),
        (
            "topology.kubernetes.io/zone=zone-9",
            "no node has the label topology.kubernetes.io/zone with the value 'zone-9'; there are zone-0, zone-1",
        ),
        ("topology/zone=zone-1", "no node has a label 'topology/zone'; did you mean topology.kubernetes.io/zone?"),
    ],
)
def test_what_means_no_node_is_told_with_what_there_is(text: str, answer: str) -> None:
    assert whats_wrong(NODES, text) == answer


def test_drained_nodes_are_cordoned_and_only_their_pods_wait() -> None:
    after = drained([*NODES, make_pod("a").on("n0").build(), make_pod("b").on("n1").build()], {"n0"})
    assert {obj.name for obj in after if isinstance(obj, Node) and obj.spec.unschedulable} == {"n0"}
    assert places(*after) == {"a": "", "b": "n1"}


@pytest.mark.parametrize(
    "pod",
    [
        make_pod("daemon").on("n0").owned_by("DaemonSet", "logs"),
        make_pod("done").on("n0").status(phase="Succeeded"),
        make_pod("going").on("n0").terminating(),
    ],
    ids=lambda pod: pod.build().name,
)
def test_pods_that_a_drain_does_not_evict_stay(pod: PodBuilder) -> None:
    built = pod.build()
    assert drained([built, NODES[0]], {"n0"})[0] == built


def test_a_claim_that_only_drained_pods_use_gives_its_devices_back() -> None:
    pods = [make_pod("a", uid="a").on("n0").build(), make_pod("b", uid="b").on("n1").build()]

    def claim(*users: str) -> ResourceClaim:
        reserved = tuple(ConsumerReference(resource="pods", name=user, uid=user) for user in users)
        status = ResourceClaimStatus(allocation=AllocationResult(), reserved_for=reserved)
        return ResourceClaim(metadata=ObjectMeta(name="-".join(users), namespace="default"), status=status)

    after = drained([NODES[0], *pods, claim("a"), claim("a", "b")], {"n0"})
    own, shared = [obj for obj in after if isinstance(obj, ResourceClaim)]
    assert own.status == ResourceClaimStatus()
    assert shared.status.allocation is not None
    assert [user.name for user in shared.status.reserved_for] == ["b"]


def test_the_simulation_says_who_finds_a_place_elsewhere_and_who_does_not() -> None:
    pods = [make_pod(f"p{i}").requests(cpu="3").on(f"n{i}").build() for i in range(3)]
    report = Simulation(drained([*NODES, *pods], {"n0", "n2"}), config.default()).run()
    assert {story.pod: story.node for story in report.pods if story.node} in (
        {"default/p0": "n3"},
        {"default/p2": "n3"},
    )
    assert len(report.pending) == 1
