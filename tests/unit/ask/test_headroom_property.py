"""Headroom is capacity: what the page says without placing pods is what `kubesched capacity` counts by placing them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.applied_remedies import as_json, cluster_of
from tests.device_builders import device, make_claim, make_class, make_slice, request, with_claims
from tests.unit.ask.test_remedies_property import HOST, ZONE, nodes, wishes

from kubesched.api.affinity import (
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    TopologySpreadConstraint,
)
from kubesched.api.device_claims import ResourceClaimTemplate, ResourceClaimTemplateSpec
from kubesched.api.meta import KubeObject, LabelSelector, ObjectMeta
from kubesched.api.node import Node
from kubesched.api.pod import DiskSource, PersistentVolumeClaimSource, Pod, PodResourceClaim, Volume
from kubesched.api.storage import (
    ClaimStatus,
    CSINode,
    CSINodeDriver,
    CSINodeSpec,
    CSIVolumeSource,
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeSpec,
    StorageClass,
    TopologySelectorLabelRequirement,
    TopologySelectorTerm,
    VolumeLimits,
    VolumeNodeAffinity,
    VolumeResources,
)
from kubesched.api.well_known import BIND_COMPLETED
from kubesched.ask.headroom import headroom, headroom_on, one_more
from kubesched.simulate.cluster import ClusterModel
from kubesched.simulate.placement import capacity
from kubesched.testing import PodBuilder, make_pod

GPU = "example.com/gpu"
EXAMPLE = "default/web"
DISK = "disk.example.com"
CLAIM = "data-web-0"
MODES = ("ReadWriteOnce", "ReadWriteMany", "ReadWriteOncePod")
NO_PROVISIONER = "kubernetes.io/no-provisioner"
TEMPLATE = ResourceClaimTemplate(
    metadata=ObjectMeta(name="one-gpu", namespace="default"),
    spec=ResourceClaimTemplateSpec(spec=make_claim("any", request("gpu")).spec),
)


@st.composite
def workloads(draw: st.DrawFn, name: str) -> PodBuilder:
    """A pod of a workload: with constraints of any kind, most of them on pods like itself."""
    pod = draw(wishes(make_pod(name))).owned_by("ReplicaSet", "web")
    if not draw(st.integers(0, 2)):
        pod = pod.label(app="x").pod_anti_affinity(draw(st.sampled_from((ZONE, HOST, "pool"))), app="x")
    for key in draw(st.sampled_from(((), (), (ZONE,), (HOST,), ("pool",), (ZONE, HOST), (HOST, "pool")))):
        constraint = TopologySpreadConstraint(
            topology_key=key,
            when_unsatisfiable="DoNotSchedule",
            max_skew=draw(st.integers(1, 3)),
            min_domains=draw(st.sampled_from((None, 2, 3))),
            node_taints_policy=draw(st.sampled_from((None, "Honor"))),
            label_selector=LabelSelector(match_labels={"app": draw(st.sampled_from(("x", "y")))}),
        )
        pod = pod.spread_constraint(constraint)
    if not draw(st.integers(0, 5)):
        pod = pod.requests({GPU: draw(st.integers(1, 2))})
    return pod


@st.composite
def with_storage(draw: st.DrawFn, pod: PodBuilder, count: int) -> tuple[PodBuilder, list[KubeObject]]:
    """The pod with a disk, or a claim for devices that all share or each has of its own; and what there is of those."""
    kind = draw(st.sampled_from(("own", "shared", "disk", "template", "claim")))
    if kind == "disk":
        disk = DiskSource(pd_name="d", read_only=draw(st.booleans()))
        return pod.spec(volumes=(Volume(name="data", gce_persistent_disk=disk),)), []
    if kind == "template":
        wanted = PodResourceClaim(name="gpu", resource_claim_template_name=TEMPLATE.name)
        return pod.spec(resource_claims=(wanted,)), []
    if kind == "claim":
        return with_claims(pod, "devices"), [make_claim("devices", request("gpu"))]
    pod = pod.spec(
        volumes=(Volume(name="data", persistent_volume_claim=PersistentVolumeClaimSource(claim_name=CLAIM)),)
    )
    zones = TopologySelectorTerm((TopologySelectorLabelRequirement(ZONE, ("a",)),))
    storage = StorageClass(
        metadata=ObjectMeta(name="late"),
        provisioner=draw(st.sampled_from((DISK, NO_PROVISIONER))),
        volume_binding_mode="WaitForFirstConsumer",
        allowed_topologies=(zones,) if draw(st.booleans()) else (),
    )
    volumes = [draw(volume(f"pv-{i}")) for i in range(draw(st.integers(0, 4)))]
    claim = PersistentVolumeClaim(
        metadata=ObjectMeta(name=CLAIM, namespace="default", uid="claim"),
        spec=PersistentVolumeClaimSpec(
            access_modes=(draw(st.sampled_from(MODES)),),
            storage_class_name="late",
            resources=VolumeResources(requests={"storage": "1Gi"}),
        ),
        status=ClaimStatus(phase="Pending"),
    )
    is_bound = draw(st.booleans())
    if volumes and is_bound:
        claim, volumes[0] = bound(claim, volumes[0])
    limits = [
        CSINode(
            metadata=ObjectMeta(name=f"n{i}"),
            spec=CSINodeSpec((CSINodeDriver(DISK, allocatable=VolumeLimits(count=draw(st.integers(1, 3)))),)),
        )
        for i in range(count)
        if draw(st.booleans())
    ]
    return pod.owned_by("StatefulSet" if kind == "own" else "ReplicaSet", "web"), [storage, claim, *volumes, *limits]


@st.composite
def volume(draw: st.DrawFn, name: str) -> PersistentVolume:
    """One that anybody may have, on all nodes or in one zone."""
    zone = NodeSelectorTerm((NodeSelectorRequirement(key=ZONE, operator="In", values=(draw(st.sampled_from("ab")),)),))
    is_zonal = draw(st.booleans())
    return PersistentVolume(
        metadata=ObjectMeta(name=name),
        spec=PersistentVolumeSpec(
            capacity={"storage": "1Gi"},
            access_modes=MODES,
            storage_class_name="late",
            csi=CSIVolumeSource(driver=DISK, volume_handle=name),
            node_affinity=VolumeNodeAffinity(required=NodeSelector((zone,))) if is_zonal else None,
        ),
        status=ClaimStatus(phase="Available"),
    )


def bound(claim: PersistentVolumeClaim, volume: PersistentVolume) -> tuple[PersistentVolumeClaim, PersistentVolume]:
    """Both, once they have each other."""
    meta = replace(claim.metadata, annotations={BIND_COMPLETED: "yes"})
    owner = ObjectReference(kind="PersistentVolumeClaim", namespace="default", name=claim.name, uid="claim")
    return (
        replace(claim, metadata=meta, spec=replace(claim.spec, volume_name=volume.name), status=ClaimStatus("Bound")),
        replace(volume, spec=replace(volume.spec, claim_ref=owner), status=ClaimStatus("Bound")),
    )


@st.composite
def clusters_with_storage(draw: st.DrawFn) -> list[KubeObject]:
    """The same, with volumes, disks and claims for devices."""
    objects = draw(clusters())
    count = sum(isinstance(obj, Node) for obj in objects)
    example = next(obj for obj in objects if isinstance(obj, Pod))
    pod, storage = draw(with_storage(PodBuilder(example), count))
    if draw(st.booleans()):
        pod = pod.spec(node_name="")
    return [*(obj for obj in objects if obj is not example), TEMPLATE, *storage, pod.build()]


@st.composite
def clusters(draw: st.DrawFn) -> list[KubeObject]:
    """Up to seven nodes, some with devices, pods of the workload and others on them."""
    count = draw(st.integers(1, 7))
    there = [draw(nodes(i)) for i in range(count)]
    slices = [make_slice(f"n{i}", device("g0"), device("g1")) for i in range(count) if draw(st.booleans())]
    names = ["web", *(f"web-{i}" for i in range(draw(st.integers(0, 4))))]
    placed = [draw(workloads(name)).on(f"n{draw(st.integers(0, count - 1))}").build() for name in names]
    return [*(node.build() for node in there), make_class("gpu", resource=GPU), *slices, *placed]


@pytest.mark.slow
@settings(max_examples=500, deadline=None)
@given(clusters() | clusters_with_storage())
def test_headroom_is_what_capacity_counts(objects: list[KubeObject]) -> None:
    known = as_json(objects)
    cluster = cluster_of(known)
    pod = cluster.pods[EXAMPLE]
    found = headroom(cluster, pod)
    counted = capacity(cluster_of(known), one_more(pod), most=1000)
    assert found.is_exact
    assert found.more == counted.fit
    assert (found.nodes > 0) == (found.more > 0)


@settings(max_examples=60, deadline=None)
@given(clusters())
def test_headroom_of_a_node_ends_with_the_first_copy_that_it_refuses(objects: list[KubeObject]) -> None:
    cluster = cluster_of(as_json(objects))
    pod = cluster.pods[EXAMPLE]
    for name in cluster.state.nodes.row_of:
        found = headroom_on(cluster, pod, name)
        if found.is_exact:
            assert found.more == _placed_on(cluster_of(as_json(objects)), pod.key, name)


def _placed_on(cluster: ClusterModel, key: str, node: str) -> int:
    """Copies are put onto the node for as long as the engine thinks that it fits."""
    model, count = one_more(cluster.pods[key]), 0
    while True:
        copy = replace(model, metadata=replace(model.metadata, name=f"copy-{count}", uid=f"copy-{count}"))
        outcome = cluster.engine.decide(copy, explain=True).trace.filter_outcome
        row = cluster.state.nodes.row_of[node]
        if outcome is None or not outcome.feasible[row]:
            return count
        cluster.state.assume(copy, node)
        count += 1
