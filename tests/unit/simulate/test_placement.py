from __future__ import annotations

from typing import ClassVar

from msgspec.structs import replace

from kubesched import config
from kubesched.api.meta import KubeObject
from kubesched.api.pod import Pod
from kubesched.framework.cycle import Cycle
from kubesched.framework.plugin import ReservePlugin
from kubesched.framework.status import Status, unschedulable
from kubesched.plugins.registry import in_tree
from kubesched.simulate.cluster import ClusterModel
from kubesched.simulate.placement import ProposedEviction, Victim, place
from kubesched.testing import NodeBuilder, PodBuilder, make_node, make_pod


def cluster_of(*objects: KubeObject | NodeBuilder | PodBuilder) -> ClusterModel:
    built = [obj if isinstance(obj, KubeObject) else obj.build() for obj in objects]
    return ClusterModel(built, config.default())


def created(pod: PodBuilder, time: str) -> Pod:
    built = pod.build()
    return replace(built, metadata=replace(built.metadata, creation_timestamp=time))


def test_pods_are_placed_by_priority_and_stand_in_the_way_of_those_after_them() -> None:
    low, high = make_pod("low").requests(cpu="3"), make_pod("high").requests(cpu="3").priority(5)
    report = place(cluster_of(make_node("n1"), low, high))
    assert [(placed.pod, placed.node, placed.feasible) for placed in report.placed] == [("default/high", "n1", 1)]
    assert [pod.pod for pod in report.unplaced] == ["default/low"]
    assert report.unplaced[0].message == (
        "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, "
        "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
    )


def test_of_equal_priority_the_pod_that_was_created_first_goes_first() -> None:
    young = created(make_pod("a"), "2026-01-02T00:00:00Z")
    old = created(make_pod("b"), "2026-01-01T00:00:00+00:00")
    undated = make_pod("0")
    assert [pod.name for pod in cluster_of(undated, young, old).pending()] == ["b", "a", "0"]


def test_nobody_is_evicted_but_the_report_says_who_would_be() -> None:
    victim = make_pod("victim").requests(cpu="3").priority(-1).on("n1")
    cluster = cluster_of(make_node("n1"), victim, make_pod("p").requests(cpu="3"))
    report = place(cluster)
    assert report.unplaced[0].eviction == ProposedEviction("n1", (Victim("default/victim", -1),))
    assert cluster.state.placed(victim.build()) is not None


def test_gated_and_foreign_pods_are_left_alone() -> None:
    report = place(cluster_of(make_node("n1"), make_pod("g").gate("x"), make_pod("o").spec(scheduler_name="other")))
    assert [(pod.pod, pod.outcome, pod.message) for pod in report.unplaced] == [
        ("default/g", "gated", "waiting for scheduling gates: [x]"),
        ("default/o", "skipped", "waits for another scheduler: there is no profile 'other'"),
    ]


class Stubborn(ReservePlugin):
    name = "Stubborn"
    undone: ClassVar[list[str]] = []

    def reserve(self, cycle: Cycle, pod: Pod, node_name: str) -> Status | None:
        return unschedulable("not today")

    def unreserve(self, cycle: Cycle, pod: Pod, node_name: str) -> None:
        self.undone.append(pod.name)


def test_a_pod_whose_reservation_fails_is_taken_off_its_node_again() -> None:
    settings = config.from_plain(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"plugins": {"reserve": {"enabled": [{"name": "Stubborn"}]}}}],
        }
    )
    registry = in_tree()
    registry.register(Stubborn)
    pod = make_pod("p").build()
    cluster = ClusterModel([make_node("n1").build(), pod], settings, plugins=registry)
    report = place(cluster)
    assert [(left.outcome, left.message) for left in report.unplaced] == [("reserve-failed", "Stubborn: not today")]
    assert cluster.state.placed(pod) is None
    assert Stubborn.undone == ["p"]
