from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.builders import make_cluster
from tests.unit.plugins.volume_builders import (
    Json,
    ask,
    claim,
    csi_node,
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
from kubesched.framework.nodes import Nodes
from kubesched.framework.plugin import PluginContext
from kubesched.framework.status import SKIP, unresolvable
from kubesched.plugins.volume_binding import VolumeBinding
from kubesched.state.cluster import ClusterState
from kubesched.testing import HOSTNAME, ZONE

UNREACHABLE = ("node(s) didn't match PersistentVolume's node affinity",)
UNBINDABLE = ("node(s) didn't find available persistent volumes to bind",)
NO_SPACE = ("node(s) did not have enough free storage",)
MISSING = ("node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",)
SELECTED_NODE = "volume.kubernetes.io/selected-node"

POD = pod("p", claims=("data",))
LOCAL = storage_class("local", provisioner="kubernetes.io/no-provisioner")


def local_volume(name: str, on: str, **more: Any) -> KubeObject:
    return volume(name, on={HOSTNAME: [on]}, storageClassName="local", **more)


def waiting(name: str = "data", **more: Any) -> KubeObject:
    return claim(name, storageClassName="local", **more)


def reserved(plugin: VolumeBinding, state: ClusterState, pending: Any, node_name: str) -> Cycle:
    cycle = Cycle(pending, state)
    assert plugin.pre_filter(cycle) is None
    assert plugin.reserve(cycle, pending, node_name) is None
    return cycle


# -- claims that have a volume ----------------------------------------------------------------------------------------


def test_pod_without_claims_is_of_no_concern() -> None:
    assert ask(VolumeBinding(), make_cluster(node("a")), pod("p", {"emptyDir": {}})) is SKIP


def test_bound_volume_must_be_in_reach() -> None:
    state = make_cluster(node("a", {ZONE: "x"}), node("b", {ZONE: "y"}), claim("data", volume="v"))
    state.apply(volume("v", on={ZONE: ["x"]}))
    assert ask(VolumeBinding(), state, POD) == {"b": UNREACHABLE}


def test_volume_without_affinity_is_in_reach_everywhere() -> None:
    assert ask(VolumeBinding(), make_cluster(node("a"), claim("data", volume="v"), volume("v")), POD) == {}


def test_first_claim_in_trouble_tells_what_the_trouble_is() -> None:
    state = make_cluster(node("a"), node("b"), claim("one", volume="v"), claim("two", volume="gone"))
    state.apply(volume("v", on={HOSTNAME: ["a"]}))
    assert ask(VolumeBinding(), state, pod("p", claims=("one", "two"))) == {"a": MISSING, "b": UNREACHABLE}


def test_in_tree_volume_is_judged_by_the_labels_of_its_driver_where_that_has_taken_over() -> None:
    driver_zone = "topology.ebs.csi.aws.com/zone"
    state = make_cluster(
        node("old", {ZONE: "x"}),
        node("new", {driver_zone: "x"}),
        node("neither", {ZONE: "x"}),
        csi_node("new", migrated="kubernetes.io/aws-ebs"),
        csi_node("neither", migrated="kubernetes.io/aws-ebs"),
        claim("data", volume="v"),
        volume("v", on={ZONE: ["x"]}, awsElasticBlockStore={"volumeID": "vol-1"}),
    )
    assert ask(VolumeBinding(), state, POD) == {"neither": UNREACHABLE}


def test_zone_label_of_an_in_tree_volume_stands_in_for_affinity() -> None:
    state = make_cluster(
        node("a", {"topology.gke.io/zone": "x"}),
        node("b", {"topology.gke.io/zone": "y"}),
        *(csi_node(name, migrated="kubernetes.io/gce-pd") for name in ("a", "b")),
        claim("data", volume="v"),
        volume("v", labels={ZONE: "x"}, gcePersistentDisk={"pdName": "d"}),
    )
    assert ask(VolumeBinding(), state, POD) == {"b": UNREACHABLE}


@pytest.mark.parametrize(
    ("plugin", "disk", "labels", "problem"),
    [
        (
            "kubernetes.io/azure-disk",
            {"azureDisk": {"diskName": "d", "diskURI": "https://d", "kind": "Shared"}},
            {},
            "kind(Shared) is not supported in csi migration",
        ),
        (
            "kubernetes.io/gce-pd",
            {"gcePersistentDisk": {"pdName": "d"}},
            {ZONE: "us-east1-a__eu-west1-b"},
            "failed to get region from zones: multiple or no regions gotten from zones, "
            "got: map[eu-west1:{} us-east1:{}]",
        ),
    ],
)
def test_volume_that_its_driver_cannot_name_is_an_error_where_that_driver_has_taken_over(
    plugin: str, disk: Json, labels: Json, problem: str
) -> None:
    state = make_cluster(
        node("a"),
        node("b"),
        csi_node("a", migrated=plugin),
        claim("data", volume="v"),
        volume("v", labels=labels, **disk),
    )
    assert ask(VolumeBinding(), state, POD) == {"a": (f"could not translate pv: {problem}",)}


# -- claims that cannot be had ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("objects", "reason"),
    [
        ([], 'persistentvolumeclaim "data" not found'),
        ([claim("data")], "pod has unbound immediate PersistentVolumeClaims"),
        ([claim("data", volume="v", bound=False)], "pod has unbound immediate PersistentVolumeClaims"),
        (
            [claim("data", storageClassName="now"), storage_class("now", waits=False)],
            "pod has unbound immediate PersistentVolumeClaims",
        ),
        (
            [make("PersistentVolumeClaim", "data", namespace="default", metadata={"deletionTimestamp": "now"})],
            'persistentvolumeclaim "data" is being deleted',
        ),
        (
            [
                make(
                    "PersistentVolumeClaim",
                    "data",
                    namespace="default",
                    spec={"volumeName": "v"},
                    status={"phase": "Lost"},
                )
            ],
            'persistentvolumeclaim "data" bound to non-existent persistentvolume "v"',
        ),
    ],
)
def test_claim_that_cannot_be_had_rejects_the_pod(objects: list[KubeObject], reason: str) -> None:
    assert ask(VolumeBinding(), make_cluster(node("a"), *objects), POD) == unresolvable(reason)


def test_ephemeral_volume_waits_for_a_claim_of_its_own() -> None:
    state = make_cluster(node("a"), storage_class("local"))
    pending = pod("p", {"ephemeral": {}})
    missing = 'waiting for ephemeral volume controller to create the persistentvolumeclaim "p-v0"'
    assert ask(VolumeBinding(), state, pending) == unresolvable(missing)
    state.apply(waiting("p-v0"))
    foreign = "PVC default/p-v0 was not created for pod default/p (pod is not owner)"
    assert ask(VolumeBinding(), state, pending) == unresolvable(foreign)
    owner = {"kind": "Pod", "name": "p", "uid": "uid-p", "controller": True}
    state.apply(
        make(
            "PersistentVolumeClaim",
            "p-v0",
            namespace="default",
            metadata={"ownerReferences": [owner]},
            spec={"storageClassName": "local"},
        )
    )
    assert ask(VolumeBinding(), state, pending) == {}


# -- claims that wait for a node --------------------------------------------------------------------------------------


def test_free_volume_is_found_where_it_is_local() -> None:
    state = make_cluster(node("a"), node("b"), LOCAL, waiting(), local_volume("v", on="a"))
    assert ask(VolumeBinding(), state, POD) == {"b": UNBINDABLE}


@pytest.mark.parametrize(
    "unsuitable",
    [
        local_volume("v", on="a", size="4Gi"),
        local_volume("v", on="a", volumeMode="Block"),
        local_volume("v", on="a", accessModes=["ReadOnlyMany"]),
        local_volume("v", on="a", volumeAttributesClassName="gold"),
        local_volume("v", on="a", claimRef={"namespace": "default", "name": "other"}),
        volume("v", on={HOSTNAME: ["a"]}, storageClassName="other"),
    ],
)
def test_unsuitable_volume_is_not_taken(unsuitable: KubeObject) -> None:
    assert ask(VolumeBinding(), make_cluster(node("a"), LOCAL, waiting(), unsuitable), POD) == {"a": UNBINDABLE}


def test_claim_with_a_selector_takes_only_volumes_with_these_labels() -> None:
    picky = waiting(selector={"matchLabels": {"tier": "fast"}})
    state = make_cluster(node("a"), node("b"), LOCAL, picky)
    state.apply(local_volume("slow", on="a"))
    state.apply(local_volume("fast", on="b", labels={"tier": "fast"}))
    assert ask(VolumeBinding(), state, POD) == {"a": UNBINDABLE}


def test_each_claim_of_a_pod_needs_a_volume_of_its_own() -> None:
    state = make_cluster(node("a"), node("b"), LOCAL, waiting("one"), waiting("two"))
    for name, on in (("v1", "a"), ("v2", "b"), ("v3", "b")):
        state.apply(local_volume(name, on=on))
    assert ask(VolumeBinding(), state, pod("p", claims=("one", "two"))) == {"a": UNBINDABLE}


def test_smallest_volume_that_fits_is_taken_and_the_small_claim_chooses_first() -> None:
    state = make_cluster(node("a"), LOCAL, waiting("large", size="9Gi"), waiting("small", size="1Gi"))
    for name, size in (("v-100", "100Gi"), ("v-10", "10Gi"), ("v-20", "20Gi")):
        state.apply(local_volume(name, on="a", size=size))
    plugin = VolumeBinding()
    writes = plugin.writes(reserved(plugin, state, pod("p", claims=("large", "small")), "a"))
    assert writes is not None
    owners = {v.name: v.spec.claim_ref.name for v in writes.volumes if v.spec.claim_ref is not None}
    assert owners == {"v-10": "small", "v-20": "large"}


def test_volume_promised_to_the_claim_is_the_only_one_it_can_have() -> None:
    promise = {"namespace": "default", "name": "data"}
    state = make_cluster(node("a"), node("b"), LOCAL, waiting())
    state.apply(local_volume("mine", on="a", size="100Gi", claimRef=promise))
    state.apply(local_volume("free", on="b"))
    assert ask(VolumeBinding(), state, POD) == {"b": UNBINDABLE}


def test_claim_being_provisioned_for_a_node_is_bound_to_that_node() -> None:
    started = make(
        "PersistentVolumeClaim",
        "data",
        namespace="default",
        metadata={"annotations": {SELECTED_NODE: "a"}},
        spec={"storageClassName": "dynamic"},
    )
    state = make_cluster(node("a"), node("b"), storage_class("dynamic"), started)
    assert ask(VolumeBinding(), state, POD) == {"b": UNBINDABLE}


def test_volume_is_made_only_where_the_class_allows_it() -> None:
    terms = [{"matchLabelExpressions": [{"key": ZONE, "values": ["x"]}]}]
    state = make_cluster(node("a", {ZONE: "x"}), node("b", {ZONE: "y"}), claim("data", storageClassName="dynamic"))
    state.apply(storage_class("dynamic", allowedTopologies=terms))
    assert ask(VolumeBinding(), state, POD) == {"b": UNBINDABLE}


def capacity(name: str, hostname: str, total: str, **more: Any) -> KubeObject:
    made: KubeObject = make(
        "CSIStorageCapacity",
        name,
        namespace="kube-system",
        storageClassName="dynamic",
        capacity=total,
        nodeTopology={"matchLabels": {HOSTNAME: hostname}},
        **more,
    )
    return made


def test_volume_is_made_only_where_its_driver_reports_enough_space() -> None:
    state = make_cluster(*(node(name) for name in "abcd"), storage_class("dynamic"))
    state.apply(claim("data", storageClassName="dynamic", size="10Gi"))
    state.apply(capacity("of-a", "a", "10Gi"))
    state.apply(capacity("of-b", "b", "9Gi"))
    state.apply(capacity("of-c", "c", "100Gi", maximumVolumeSize="1Gi"))
    assert ask(VolumeBinding(), state, POD) == {}, "a driver that does not report has space everywhere"
    state.apply(make("CSIDriver", "csi.example.com", spec={"storageCapacity": True}))
    assert ask(VolumeBinding(), state, POD) == {"b": NO_SPACE, "c": NO_SPACE, "d": NO_SPACE}


def test_troubles_of_bound_and_waiting_claims_are_told_together() -> None:
    state = make_cluster(node("a"), LOCAL, waiting("new"), claim("old", volume="v"), volume("v", on={HOSTNAME: ["z"]}))
    assert ask(VolumeBinding(), state, pod("p", claims=("old", "new"))) == {"a": UNREACHABLE + UNBINDABLE}


# -- setting volumes aside --------------------------------------------------------------------------------------------


def test_reserved_volume_is_not_offered_to_others_until_unreserved() -> None:
    state = make_cluster(node("a"), LOCAL, waiting(), waiting("theirs"), local_volume("v", on="a"))
    plugin, other = VolumeBinding(), pod("q", claims=("theirs",))
    assert ask(plugin, state, other) == {}
    cycle = reserved(plugin, state, POD, "a")
    assert ask(plugin, state, other) == {"a": UNBINDABLE}
    plugin.unreserve(cycle, POD, "a")
    assert ask(plugin, state, other) == {}


def test_reserved_volume_is_not_offered_to_pods_of_other_profiles() -> None:
    state = make_cluster(node("a"), LOCAL, waiting(), waiting("theirs"), local_volume("v", on="a"))
    reserved(VolumeBinding(), state, POD, "a")
    assert ask(VolumeBinding(), state, pod("q", claims=("theirs",))) == {"a": UNBINDABLE}


def test_what_was_reserved_says_what_to_write() -> None:
    state = make_cluster(node("a"), LOCAL, storage_class("dynamic"), waiting(), local_volume("v", on="a"))
    state.apply(claim("new", storageClassName="dynamic"))
    plugin, pending = VolumeBinding(), pod("p", claims=("data", "new"))
    cycle = reserved(plugin, state, pending, "a")
    writes = plugin.writes(cycle)
    assert writes is not None
    (bound,), (provisioned,) = writes.volumes, writes.claims
    assert bound.spec.claim_ref is not None
    assert (bound.name, bound.spec.claim_ref.name, bound.spec.claim_ref.uid) == ("v", "data", "uid-data")
    assert bound.metadata.annotations == {"pv.kubernetes.io/bound-by-controller": "yes"}
    assert (provisioned.name, provisioned.metadata.annotations) == ("new", {SELECTED_NODE: "a"})
    assert plugin.pre_bind_pre_flight(cycle, pending, "a") is None


def test_pod_whose_volumes_are_bound_has_nothing_to_write() -> None:
    state = make_cluster(node("a"), claim("data", volume="v"), volume("v"))
    plugin = VolumeBinding()
    cycle = reserved(plugin, state, POD, "a")
    assert plugin.writes(cycle) is None
    assert plugin.pre_bind_pre_flight(cycle, POD, "a") is SKIP


def test_claim_assumed_for_a_node_keeps_other_pods_with_it_there() -> None:
    state = make_cluster(node("a"), node("b"), storage_class("dynamic"), claim("data", storageClassName="dynamic"))
    plugin = VolumeBinding()
    reserved(plugin, state, POD, "a")
    assert ask(plugin, state, pod("q", claims=("data",))) == {"b": UNBINDABLE}


def test_newer_object_from_the_watch_supersedes_what_was_assumed() -> None:
    state = make_cluster(node("a"), LOCAL, waiting(), waiting("theirs"), local_volume("v", on="a"))
    plugin, other = VolumeBinding(), pod("q", claims=("theirs",))
    reserved(plugin, state, POD, "a")
    state.apply(local_volume("v", on="a"))
    assert ask(plugin, state, other) == {"a": UNBINDABLE}, "a resync brings nothing newer"
    newer = make("PersistentVolume", "v", metadata={"resourceVersion": "2"}, **_body(local_volume("v", on="a")))
    state.apply(newer)
    assert ask(plugin, state, other) == {}


def test_deleted_volume_is_no_longer_offered() -> None:
    state = make_cluster(node("a"), LOCAL, waiting(), local_volume("v", on="a"))
    plugin, cycle = VolumeBinding(), Cycle(POD, state)
    assert plugin.pre_filter(cycle) is None
    assert rejections(plugin, cycle) == {}
    state.delete(local_volume("v", on="a"))
    assert rejections(plugin, cycle) == {"a": UNBINDABLE}


# -- scores -----------------------------------------------------------------------------------------------------------


def test_scores_are_off_by_default_and_by_capacity_behind_the_gate() -> None:
    state = make_cluster(node("a"), node("b"), LOCAL, waiting(size="5Gi"))
    state.apply(local_volume("small", on="a", size="10Gi"))
    state.apply(local_volume("large", on="b", size="100Gi"))
    cycle = Cycle(POD, state)
    assert VolumeBinding().pre_score(cycle, Nodes(state)) is SKIP
    plugin = VolumeBinding(context=PluginContext(Features(storage_capacity_scoring=True)))
    assert plugin.pre_filter(cycle) is None
    assert plugin.pre_score(cycle, Nodes(state)) is None
    scores = plugin.score(cycle, Nodes(state))
    assert not isinstance(scores, int)
    assert scores.tolist() == [50, 95]


def _body(obj: KubeObject) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(obj)
    return {key: plain[key] for key in ("spec", "status")}
