"""What if? The difference that changes make, and nothing that would happen anyway."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kubesched import config
from kubesched.api.meta import KubeObject, LabelSelector, ObjectMeta
from kubesched.api.workloads import BudgetSpec, PodDisruptionBudget
from kubesched.ask.edits import (
    AddNodes,
    DrainNodes,
    Edit,
    EditError,
    FailNodes,
    RemoveNodes,
    RescheduleAll,
    ScaleWorkload,
    UpgradeNodes,
    UseConfiguration,
)
from kubesched.ask.html import what_if_page
from kubesched.ask.hypothetical import apply_hypothetical
from kubesched.ask.what_if.answer import BudgetOutcome, Count, Moved, ShareChange, WhatIfAnswer, outcome
from kubesched.ask.what_if.what_if import Baselines, what_if
from kubesched.simulate.kinds import Deployment
from kubesched.simulate.manifests import loads
from kubesched.simulate.rolling_upgrade import UpgradePace
from kubesched.testing import PodBuilder, make_node, make_pod

GPU = "nvidia.com/gpu"
ZONE = "topology.kubernetes.io/zone"
NODES = [make_node(f"n-{zone}").zone(zone).capacity(cpu="4", memory="8Gi").build() for zone in "abc"]
DEFAULT = config.default()
PACKED = config.load(
    """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
  plugins: {score: {disabled: [{name: NodeResourcesBalancedAllocation}, {name: PodTopologySpread}]}}
"""
)


def web(number: int, node: str = "", cpu: str = "1") -> PodBuilder:
    pod = make_pod(f"web-{number}").label(app="web").owned_by("ReplicaSet", "web").requests(cpu=cpu)
    return pod.on(node) if node else pod


def budget(**spec: int) -> PodDisruptionBudget:
    selector = LabelSelector(match_labels={"app": "web"})
    return PodDisruptionBudget(
        metadata=ObjectMeta(name="web", namespace="default"), spec=BudgetSpec(selector=selector, **spec)
    )


def asked(objects: Sequence[KubeObject], *changes: Edit) -> WhatIfAnswer:
    return what_if([*NODES, *objects], DEFAULT, changes).difference


def test_a_drained_pod_moves_and_others_stay() -> None:
    found = asked([web(1, "n-a").build(), web(2, "n-b").build()], DrainNodes(("n-a",)))
    [moved] = found.moved
    assert (moved.pod, moved.from_node, moved.unmanaged) == ("default/web-1", "n-a", False)
    assert moved.to_node in ("n-b", "n-c")
    assert [*found.placed, *found.waiting, *found.gone, *found.evictions] == []


def test_what_happens_anyway_is_not_told() -> None:
    in_zone_a = web(1).node_selector({"topology.kubernetes.io/zone": "a"})
    found = asked([in_zone_a.build(), web(2, cpu="9").build()], DrainNodes(("n-c",)))
    assert found.before.placed == found.before.pending == 1
    assert found.is_nothing


def test_who_finds_no_place_waits_with_the_reason() -> None:
    full = [web(i, f"n-{zone}", cpu="4").build() for i, zone in enumerate("abc")]
    found = asked(full, RemoveNodes(("zone=a",)))
    [waiting] = found.waiting
    assert (waiting.pod, waiting.from_node) == ("default/web-0", "n-a")
    assert waiting.reason.startswith("0/2 nodes are available: 2 Insufficient cpu.")


def test_a_lost_node_takes_its_daemons_along_and_is_no_longer_counted() -> None:
    daemon = make_pod("logs").owned_by("DaemonSet", "logs").on("n-a").build()
    found = asked([daemon], RemoveNodes(("n-a",)))
    assert found.is_nothing
    assert found.total.nodes == Count(3, 2)
    assert {zone.name: zone.nodes for zone in found.zones}["a"] == Count(1, 0)
    assert {zone.name: zone.resources["cpu"] for zone in found.zones}["a"] == ShareChange(0.0, None)


def test_a_zone_that_is_lost_still_counts_for_those_that_are_spread_over_it() -> None:
    """In an outage nodes do not vanish: they are tainted, and the zone is the one with fewest pods."""
    frontends = [web(i, f"n-{zone}").spread(ZONE, app="web").build() for i, zone in enumerate("abc")]
    found = asked(frontends, FailNodes(("zone=a",)))
    [waiting] = found.waiting
    assert (waiting.pod, waiting.from_node) == ("default/web-0", "n-a")
    assert "didn't match pod topology spread constraints" in waiting.reason
    assert found.total.nodes == Count(3, 3)
    assert asked(frontends, RemoveNodes(("zone=a",))).waiting == (), "a node that is deleted is no domain any more"


def test_the_pod_of_a_stateful_set_is_not_made_anew_while_its_node_is_out_of_reach() -> None:
    pods = [
        make_pod("db-0").owned_by("StatefulSet", "db").on("n-a").build(),
        make_pod("logs").owned_by("DaemonSet", "logs").on("n-a").build(),
        make_pod("patient").toleration("").owned_by("ReplicaSet", "patient").on("n-a").build(),
        web(1, "n-a").build(),
    ]
    found = asked(pods, FailNodes(("n-a",)))
    assert [(each.pod, each.from_node) for each in found.waiting] == [("default/db-0", "n-a")]
    assert found.waiting[0].reason.startswith("is being deleted")
    assert [each.pod for each in found.moved] == ["default/web-1"]
    drained = asked(pods, DrainNodes(("n-a",)))
    assert "default/db-0" in [each.pod for each in drained.moved], "its kubelet says that it is gone"


def test_the_answer_is_about_now_and_names_the_jobs_that_are_interrupted() -> None:
    """A Job that ends some day by itself runs now, on a node that is lost now."""
    job = make_pod("train-x").owned_by("Job", "train").annotate({"kubesched.io/duration": "30s"}).requests(cpu="4")
    found = asked([job.on("n-a").build(), web(1, "n-b").build()], FailNodes(("n-a",)))
    assert found.interrupted == ("default/train-x",)
    assert [each.pod for each in found.moved] == ["default/train-x"]
    assert found.zones[0].resources["cpu"] == ShareChange(1.0, 0.0)
    assert asked([job.on("n-a").build()], DrainNodes(("n-b",))).interrupted == ()


def test_evictions_are_told_with_who_evicts() -> None:
    low = make_pod("low").requests(cpu="4").priority(-1).owned_by("ReplicaSet", "low")
    objects = [web(0, "n-a", "4").build(), web(1, "n-b", "4").build(), low.on("n-c").build()]
    [eviction] = asked(objects, RemoveNodes(("n-a",))).evictions
    assert (eviction.preemptor, eviction.node, eviction.victims) == ("default/web-0", "n-c", ("default/low",))


def test_pods_that_are_evicted_are_followed_to_where_their_like_is_made_anew() -> None:
    low = make_pod("low").requests(cpu="4").priority(-1).owned_by("ReplicaSet", "low")
    objects = [web(0, "n-a", "4").build(), web(1, "n-b", "4").build(), low.on("n-c").build()]
    found = asked(objects, RemoveNodes(("n-a",)))
    assert [(each.pod, each.from_node) for each in found.waiting] == [("default/low", "n-c")]
    assert found.moved == (Moved("default/web-0", "n-a", "n-c"),)


def test_new_nodes_take_pods_that_wait() -> None:
    gpu = make_node("gpu").capacity({GPU: 1}).build()
    pods = [make_pod(f"p{i}").requests({GPU: 1}).build() for i in range(3)]
    found = asked([gpu, *pods], AddNodes("gpu", 2))
    assert len(found.placed) == 2
    assert {each.to_node for each in found.placed} <= {"gpu", "gpu-new-1", "gpu-new-2"}
    assert found.total.resources[GPU] == ShareChange(1.0, 1.0)
    assert found.total.nodes == Count(4, 6)


def test_new_nodes_have_the_daemons_of_their_model_and_a_name_of_their_own() -> None:
    daemon = make_pod("logs-n-a").owned_by("DaemonSet", "logs").requests(cpu="3").on("n-a").build()
    objects = apply_hypothetical((*NODES, daemon), [AddNodes("n-a", 2)])
    ended = outcome(objects, DEFAULT)
    assert {name for name in ended.nodes if "new" in name} == {"n-a-new-1", "n-a-new-2"}
    where = {pod.spec.node_name for pod, _ in ended.pods.values()}
    assert where == {"n-a", "n-a-new-1", "n-a-new-2"}


def test_budgets_tell_who_is_short_and_who_makes_a_drain_wait() -> None:
    fits = [web(1, "n-a").build(), web(2, "n-b").build(), budget(max_unavailable=1)]
    assert asked(fits, DrainNodes(("n-a",))).budgets == (
        BudgetOutcome("default/web", wanted=1, before=2, after=2, leaving=1, short=False, slows=False),
    )
    tight = [web(1, "n-a").build(), web(2, "n-a").build(), budget(min_available=2)]
    [slow] = asked(tight, DrainNodes(("n-a",))).budgets
    assert (slow.slows, slow.short, slow.leaving) == (True, False, 2)
    stuck = web(1, "n-a").node_selector({"kubernetes.io/hostname": "n-a"})
    found = asked([stuck.build(), budget(min_available=1)], DrainNodes(("n-a",)))
    assert found.broken_budgets == ("default/web",)
    assert not asked(fits, DrainNodes(("n-c",))).budgets


def test_spread_of_workloads_over_zones_is_told_before_and_after() -> None:
    found = asked([web(1, "n-a").build(), web(2, "n-b").build()], RemoveNodes(("zone=a", "zone=b")))
    [workload] = found.workloads
    assert workload.workload == "default/replicaset/web"
    assert workload.zones == {"a": Count(1, 0), "b": Count(1, 0), "c": Count(0, 2)}


def test_another_configuration_is_in_force_with_the_changes() -> None:
    pods = [web(i).build() for i in range(3)]
    running = (*NODES, *(web(i, f"n-{zone}").build() for i, zone in enumerate("abc")))
    objects = apply_hypothetical(running, [RescheduleAll()])
    for given in ((*NODES, *pods), objects):
        found = what_if(given, DEFAULT, [UseConfiguration(PACKED)]).difference
        assert len({each.to_node for each in found.moved}) == 1
        assert found.before.nodes_used == 3
        assert found.after.nodes_used == 1


def test_an_upgrade_is_told_with_its_time() -> None:
    objects = [*NODES, web(1, "n-a").build()]
    found = what_if(objects, DEFAULT, [UpgradeNodes(("zone=a",), pace=UpgradePace(node_startup=30))]).difference
    assert found.upgrade is not None
    assert found.upgrade.seconds == 30
    assert [(each.node, each.by) for each in found.upgrade.replaced] == [("n-a", "n-a-new")]
    assert found.changes == ("upgrade zone=a with a surge of 1",)
    assert [each.pod for each in found.moved] == ["default/web-1"]


def test_the_outcome_before_can_be_used_again() -> None:
    objects = [*NODES, web(1, "n-a").build()]
    baselines: Baselines = {}
    for change in (DrainNodes(("n-a",)), RemoveNodes(("n-a",))):
        found = what_if(objects, DEFAULT, [change], baselines=baselines)
        assert found.difference == what_if(objects, DEFAULT, [change]).difference
    assert list(baselines) == [False]


def test_pods_without_an_owner_are_marked() -> None:
    found = asked([make_pod("bare").on("n-a").build(), make_pod("waits").build()], DrainNodes(("n-a",)))
    assert [(each.pod, each.unmanaged) for each in found.moved if each.pod == "default/bare"] == [
        ("default/bare", True)
    ]


def test_all_that_is_wrong_with_changes_is_told() -> None:
    wrong: list[Edit] = [
        DrainNodes(("nix", "zone=x")),
        FailNodes(("n-d",)),
        AddNodes("m", 1),
        ScaleWorkload(Deployment, "web", 3),
    ]
    with pytest.raises(EditError) as caught:
        asked([], *wrong)
    assert caught.value.lines == [
        "--drain nix: there is no such node",
        "--drain zone=x: no node has the label topology.kubernetes.io/zone with the value 'x'; there are a, b, c",
        "--lose n-d: there is no such node; did you mean n-c?",
        "--add m: there is no such node",
        "--scale default/deployment/web: there is no Deployment default/web",
    ]


def test_a_page_has_what_the_answer_has() -> None:
    low = make_pod("low").requests(cpu="4").priority(-1).owned_by("ReplicaSet", "low")
    objects = [*NODES, web(0, "n-a", "4").build(), web(1, "n-b", "4").build(), low.on("n-c").build(), budget()]
    found = what_if(objects, DEFAULT, [RemoveNodes(("n-a",)), UpgradeNodes(("n-b",))]).difference
    text = what_if_page(found)
    assert "What if: delete n-a; upgrade n-b with a surge of 1" in text
    for title in ("Moves", "Waits", "Evicted", "Upgrade in 1m0s", "CPU requested", "Pods per zone"):
        assert f"<h2>{title}" in text
    assert "default/low" in text


# -- workloads ---------------------------------------------------------------------------------------------------------

DEPLOYMENT = """
{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop}, spec: {replicas: 2,
 selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [
 {name: c, image: i, resources: {requests: {cpu: %s}}}]}}}}
"""


def test_scaling_makes_more_pods_or_takes_some_away() -> None:
    objects = (*NODES, *loads(DEPLOYMENT % 1, workloads=True).objects)
    more = what_if(objects, DEFAULT, [ScaleWorkload(Deployment, "web", 5, "shop")]).difference
    assert len(more.placed) == 3
    assert all(each.is_new for each in more.placed)
    none = what_if(objects, DEFAULT, [ScaleWorkload(Deployment, "web", 0, "shop")]).difference
    assert len(none.gone) == 2


def live(objects: str) -> tuple[KubeObject, ...]:
    """The same as an API server has it: a ReplicaSet per revision, and pods."""
    return loads(objects, workloads=True).objects


REPLICA_SET = """
---
{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: web-%d, namespace: shop, annotations:
 {deployment.kubernetes.io/revision: "%d"}, ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web,
 controller: true}]}, spec: {replicas: %d, selector: {matchLabels: {app: web}}, template: {metadata: {labels:
 {app: web}}, spec: {containers: [{name: c, image: i}]}}}}
"""
OWNED = """
---
{apiVersion: v1, kind: Pod, metadata: {name: web-2-%s, namespace: shop, labels: {app: web}, ownerReferences:
 [{apiVersion: apps/v1, kind: ReplicaSet, name: web-2, controller: true}]}, spec: {%s containers: [{name: c}]}}
"""


def test_of_a_deployment_its_newest_replica_set_is_scaled() -> None:
    pods = OWNED % ("a", "nodeName: n-a,") + OWNED % ("b", "nodeName: n-a,") + OWNED % ("c", "nodeName: n-b,")
    objects = (*NODES, *live(DEPLOYMENT % 1 + REPLICA_SET % (1, 1, 0) + REPLICA_SET % (2, 2, 3) + pods))
    more = what_if(objects, DEFAULT, [ScaleWorkload(Deployment, "web", 4, "shop")]).difference
    assert [each.pod.startswith("shop/web-2-") for each in more.placed] == [True]
    fewer = what_if(objects, DEFAULT, [ScaleWorkload(Deployment, "web", 2, "shop")]).difference
    assert fewer.gone in (("shop/web-2-a",), ("shop/web-2-b",))
    assert not fewer.waiting


def test_without_a_template_there_are_no_more_pods_to_make() -> None:
    bare = REPLICA_SET.partition(", template:")[0] % (2, 2, 3) + "}}"
    objects = (*NODES, *live(DEPLOYMENT % 1 + bare))
    with pytest.raises(EditError, match="there is no pod template of which more could be made"):
        what_if(objects, DEFAULT, [ScaleWorkload(Deployment, "web", 4, "shop")])
