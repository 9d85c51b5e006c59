from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace
from tests.builders import make_cluster, make_engine
from tests.unit.plugins.volume_builders import (
    Json,
    ask,
    claim,
    csi_node,
    csi_volume,
    make,
    node,
    pod,
    rejections,
    storage_class,
    volume,
)

from kubesched.api.meta import KubeObject
from kubesched.config.features import Features
from kubesched.framework.cycle import Cycle
from kubesched.framework.nodes import WhatIf
from kubesched.framework.plugin import PluginContext
from kubesched.framework.status import SKIP
from kubesched.plugins.node_volume_limits import TOO_MANY, NodeVolumeLimits
from kubesched.state.pods import PlacedPod
from kubesched.testing import make_node

DRIVER = "csi.example.com"
FULL = {"a": TOO_MANY.reasons}


def bound(*names: str) -> list[KubeObject]:
    """A claim and its volume for each name."""
    return [obj for name in names for obj in (claim(name, volume=f"pv-{name}"), csi_volume(f"pv-{name}"))]


def attachment(name: str, volume_name: str, on: str) -> KubeObject:
    made: KubeObject = make(
        "VolumeAttachment",
        name,
        spec={"attacher": DRIVER, "nodeName": on, "source": {"persistentVolumeName": volume_name}},
    )
    return made


def test_pod_whose_volumes_are_not_attached_is_of_no_concern() -> None:
    state = make_cluster(node("a"), csi_node("a", {DRIVER: 0}))
    assert ask(NodeVolumeLimits(), state, pod("p", {"emptyDir": {}})) is SKIP


def test_node_is_rejected_when_its_limit_would_be_exceeded() -> None:
    objects = [node("a"), node("b"), csi_node("a", {DRIVER: 1}), *bound("x", "y"), pod("other", claims=("x",), on="a")]
    assert ask(NodeVolumeLimits(), make_cluster(*objects), pod(claims=("y",))) == FULL


def test_volume_shared_with_a_pod_on_the_node_is_free() -> None:
    objects = [node("a"), csi_node("a", {DRIVER: 1}), *bound("x"), pod("other", claims=("x",), on="a")]
    assert ask(NodeVolumeLimits(), make_cluster(*objects), pod(claims=("x",))) == {}


def test_limits_are_per_driver() -> None:
    objects = [node("a"), csi_node("a", {"other.example.com": 0}), *bound("x")]
    assert ask(NodeVolumeLimits(), make_cluster(*objects), pod(claims=("x",))) == {}


def test_attached_volume_that_no_pod_uses_counts_and_one_that_is_used_does_not_count_twice() -> None:
    objects = [node("a"), csi_node("a", {DRIVER: 2}), *bound("x", "y", "z"), pod("other", claims=("x",), on="a")]
    state = make_cluster(*objects, attachment("at-x", "pv-x", on="a"))
    plugin, cycle = NodeVolumeLimits(), Cycle(pod(claims=("y",)), state)
    assert rejections(plugin, cycle) == {}
    state.apply(attachment("at-z", "pv-z", on="a"))
    assert rejections(plugin, cycle) == FULL


def test_limit_follows_the_csi_node_and_the_pods() -> None:
    user = pod("other", claims=("x",), on="a")
    state = make_cluster(node("a"), csi_node("a", {DRIVER: 1}), *bound("x", "y"), user)
    plugin, cycle = NodeVolumeLimits(), Cycle(pod(claims=("y",)), state)
    assert rejections(plugin, cycle) == FULL
    state.apply(csi_node("a", {DRIVER: 2}))
    assert rejections(plugin, cycle) == {}
    state.apply(csi_node("a", {DRIVER: 1}))
    state.delete(user)
    assert rejections(plugin, cycle) == {}
    state.apply(csi_node("a", {DRIVER: 0}))
    assert rejections(plugin, cycle) == FULL
    state.delete(csi_node("a"))
    assert rejections(plugin, cycle) == {}


def test_victim_taken_off_the_node_makes_room() -> None:
    user = pod("other", claims=("x",), on="a")
    state = make_cluster(node("a"), csi_node("a", {DRIVER: 1}), *bound("x", "y"), user)
    plugin, cycle = NodeVolumeLimits(), Cycle(pod(claims=("y",)), state)
    world, placed = WhatIf(state, np.array([0])), state.placed(user)
    assert placed is not None
    assert plugin.filter(cycle, world)[0] != 0
    world.remove(0, placed)
    assert plugin.filter(cycle, world)[0] == 0


def test_volume_that_is_yet_to_be_made_counts_for_the_driver_of_its_class() -> None:
    state = make_cluster(node("a"), csi_node("a", {DRIVER: 0}), storage_class("s"), claim("x", storageClassName="s"))
    assert ask(NodeVolumeLimits(), state, pod(claims=("x",))) == FULL


def test_in_tree_disks_count_for_the_driver_that_replaced_their_plugin() -> None:
    disk = {"awsElasticBlockStore": {"volumeID": "aws://zone/vol-1"}}
    state = make_cluster(
        node("a"),
        csi_node("a", {"ebs.csi.aws.com": 1}),
        claim("x", volume="v"),
        volume("v", awsElasticBlockStore={"volumeID": "vol-2"}),
        pod("other", disk, on="a"),
    )
    assert ask(NodeVolumeLimits(), state, pod(claims=("x",))) == FULL
    same = {"awsElasticBlockStore": {"volumeID": "vol-1"}}
    assert ask(NodeVolumeLimits(), state, pod("p", same)) == {}


def test_azure_blobs_have_no_driver_to_count_for() -> None:
    def disk(kind: str) -> dict[str, str]:
        return {"diskName": "d", "diskURI": "/subscriptions/d", "kind": kind}

    state = make_cluster(
        node("a"),
        node("b"),
        csi_node("a", {"disk.csi.azure.com": 0}),
        claim("blob", volume="v"),
        volume("v", azureDisk=disk("Shared")),
        claim("disk", volume="w"),
        volume("w", azureDisk=disk("managed")),
    )
    assert ask(NodeVolumeLimits(), state, pod(claims=("blob",))) == {}
    assert ask(NodeVolumeLimits(), state, pod(claims=("disk",))) == FULL
    fault = "converting volume(v0) from inline to csi: kind(Dedicated) is not supported in csi migration"
    assert ask(NodeVolumeLimits(), state, pod("p", {"azureDisk": disk("Dedicated")})) == {"a": (fault,)}


def test_missing_claim_is_reported() -> None:
    reason = 'looking up PVC default/x: persistentvolumeclaim "x" not found'
    assert ask(NodeVolumeLimits(), make_cluster(node("a")), pod(claims=("x",))) == {"a": (reason,)}


def test_of_several_volumes_at_fault_the_first_is_told() -> None:
    malformed: Json = {"awsElasticBlockStore": {"volumeID": "aws://zone/1"}}
    missing: Json = {"ephemeral": {}}
    state = make_cluster(node("a"), node("b"), csi_node("a", {}))
    named = (
        "converting volume(v0) from inline to csi: "
        "failed to translate Kubernetes ID to EBS Volume ID Invalid format for AWS volume (aws://zone/1)"
    )
    claimed = 'looking up PVC default/p-v{}: persistentvolumeclaim "p-v{}" not found'
    first, second = (claimed.format(i, i) for i in (0, 1))
    assert ask(NodeVolumeLimits(), state, pod("p", malformed, missing)) == {"a": (named,), "b": (second,)}
    assert ask(NodeVolumeLimits(), state, pod("p", missing, malformed)) == {"a": (first,), "b": (first,)}


def test_placed_pods_with_lost_claims_do_not_count() -> None:
    objects = [node("a"), csi_node("a", {DRIVER: 1}), *bound("x"), pod("other", claims=("gone",), on="a")]
    assert ask(NodeVolumeLimits(), make_cluster(*objects), pod(claims=("x",))) == {}


def test_node_without_a_driver_that_must_be_there_is_rejected_behind_the_gate() -> None:
    driver = make("CSIDriver", DRIVER, spec={"preventPodSchedulingIfMissing": True})
    objects = [node("a"), node("b"), node("c"), csi_node("a", {DRIVER: 9}), csi_node("b", {"other": 9}), *bound("x")]
    scaling = NodeVolumeLimits(context=PluginContext(Features(missing_volume_drivers=True)))
    missing = f"{DRIVER} CSI driver is not installed on the node"
    assert ask(NodeVolumeLimits(), make_cluster(*objects, driver), pod(claims=("x",))) == {}
    assert ask(scaling, make_cluster(*objects), pod(claims=("x",))) == {}
    assert ask(scaling, make_cluster(*objects, driver), pod(claims=("x",))) == {"b": (missing,), "c": (missing,)}


def test_in_tree_disks_miss_no_driver_on_nodes_that_know_of_none() -> None:
    driver = make("CSIDriver", "ebs.csi.aws.com", spec={"preventPodSchedulingIfMissing": True})
    state = make_cluster(
        *(node(name) for name in ("a", "b")),
        csi_node("a", {}),
        driver,
        claim("old", volume="v"),
        volume("v", awsElasticBlockStore={"volumeID": "vol-1"}),
        claim("new", volume="w"),
        csi_volume("w", "ebs.csi.aws.com"),
    )
    scaling = NodeVolumeLimits(context=PluginContext(Features(missing_volume_drivers=True)))
    missing = ("ebs.csi.aws.com CSI driver is not installed on the node",)
    assert ask(scaling, state, pod(claims=("old",))) == {"a": missing}
    assert ask(scaling, state, pod("p", {"awsElasticBlockStore": {"volumeID": "vol-2"}})) == {"a": missing}
    assert ask(scaling, state, pod(claims=("new",))) == {"a": missing, "b": missing}


def test_a_driver_that_appears_on_a_node_opens_it_behind_the_gate() -> None:
    driver = make("CSIDriver", DRIVER, spec={"preventPodSchedulingIfMissing": True})
    state = make_cluster(node("a"), driver, csi_node("a", {}), *bound("x"))
    scaling = NodeVolumeLimits(context=PluginContext(Features(missing_volume_drivers=True)))
    assert ask(scaling, state, pod(claims=("x",)))
    state.apply(csi_node("a", {DRIVER: 1}))
    assert ask(scaling, state, pod(claims=("x",))) == {}


def test_volumes_of_others_matter_only_where_a_node_has_a_limit() -> None:
    state = make_cluster(node("a"), *bound("x", "y"), pod("other", claims=("x",), on="a"), pod("bare", on="a"))
    plugin, cycle = NodeVolumeLimits(), Cycle(pod(claims=("y",)), state)
    other, bare = state.pods.pods_on(0)
    assert not plugin.depends_on_pods(cycle)
    assert not plugin.depends_on_pod(cycle, other)
    state.apply(csi_node("a", {DRIVER: 1}))
    assert plugin.depends_on_pods(cycle)
    assert plugin.depends_on_pod(cycle, other)
    assert not plugin.depends_on_pod(cycle, bare)


def test_preemptor_with_volumes_looks_for_pods_that_matter_only_where_there_is_a_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []

    def depends_on_pod(self: NodeVolumeLimits, cycle: Cycle, placed: PlacedPod) -> bool:
        asked.append(placed.pod.name)
        return False

    monkeypatch.setattr(NodeVolumeLimits, "depends_on_pod", depends_on_pod)
    lesser = [pod(f"lesser-{i}", claims=("x",), on="a") for i in range(3)]
    urgent = pod("urgent", claims=("y",))
    urgent = replace(urgent, spec=replace(urgent.spec, priority=10))
    crowded = make_node("a").capacity({"cpu": "4", "memory": "8Gi", "pods": "3"})
    state = make_cluster(crowded, *bound("x", "y"), *lesser)
    for limits, looks in ((), False), ((csi_node("a", {DRIVER: 9}),), True):
        for each in limits:
            state.apply(each)
        decision = make_engine(state).decide(urgent)
        assert decision.post_filter is not None
        assert decision.post_filter.nominated == "a"
        assert bool(asked) is looks
