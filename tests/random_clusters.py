"""Random small clusters with all that may stand in the way of a plan, filled by the scheduler's engine."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from tests.device_builders import device, make_claim, make_class, make_slice, request

from kubesched import config
from kubesched.api.affinity import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from kubesched.api.device_claims import ResourceClaimTemplate, ResourceClaimTemplateSpec
from kubesched.api.meta import KubeObject, LabelSelector, ObjectMeta
from kubesched.api.pod import PersistentVolumeClaimSource, Pod, PodResourceClaim, Volume
from kubesched.api.pod_groups import GangPolicy, PodGroup, PodGroupSpec, SchedulingPolicy
from kubesched.api.storage import (
    ClaimStatus,
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeSpec,
    StorageClass,
    VolumeNodeAffinity,
    VolumeResources,
)
from kubesched.api.well_known import BIND_COMPLETED, HOSTNAME, ZONE
from kubesched.api.workloads import BudgetSpec, PodDisruptionBudget
from kubesched.config.features import Features
from kubesched.simulate.cluster import ClusterModel
from kubesched.simulate.placement import place
from kubesched.testing import PodBuilder, make_node, make_pod

FEATURES = Features(pod_groups=True, gang_scheduling=True)
ZONES = ("a", "b", "c")


def random_cluster(seed: int, *, more: Sequence[Pod] = ()) -> ClusterModel:
    """A cluster of four to eight nodes, without the pods that found no node; `more` pods are pending."""
    rng = random.Random(seed)
    settings = config.default(FEATURES)
    filled = ClusterModel([*_nodes(rng), *_apps(rng)], settings, seed=seed)
    place(filled)
    objects = [obj for obj in filled.objects() if not isinstance(obj, Pod) or obj.spec.node_name]
    return ClusterModel([*objects, *more], settings, seed=seed)


def _nodes(rng: random.Random) -> Iterator[KubeObject]:
    yield make_class("gpu")
    yield StorageClass(metadata=ObjectMeta(name="late"), volume_binding_mode="WaitForFirstConsumer", provisioner="disk")
    yield ResourceClaimTemplate(
        metadata=ObjectMeta(name="one-gpu", namespace="default"),
        spec=ResourceClaimTemplateSpec(spec=make_claim("any", request("gpu")).spec),
    )
    for i in range(rng.randint(4, 8)):
        node = make_node(f"n{i}").zone(rng.choice(ZONES)).capacity(cpu=str(rng.choice((4, 8))), memory="16Gi", pods=20)
        node = node.label({"node.kubernetes.io/instance-type": f"type-{i % 3}"})
        if rng.random() < 0.15:
            node = node.taint("dedicated", "x")
        yield node.build()
        if rng.random() < 0.5:
            yield make_slice(f"n{i}", *(device(f"gpu-{j}") for j in range(2)))


def _apps(rng: random.Random) -> Iterator[KubeObject]:
    for a in range(rng.randint(4, 9)):
        app, count = f"app{a}", rng.randint(1, 5)
        made = _template(rng, app)
        if rng.random() < 0.4:
            spec = BudgetSpec(
                selector=LabelSelector(match_labels={"app": app}), max_unavailable=rng.choice((0, 1, 1, 2))
            )
            yield PodDisruptionBudget(metadata=ObjectMeta(name=app, namespace="default"), spec=spec)
        is_gang = rng.random() < 0.1
        if is_gang:
            policy = SchedulingPolicy(gang=GangPolicy(min_count=count))
            meta = ObjectMeta(name=app, namespace="default", uid=f"group/{app}")
            yield PodGroup(metadata=meta, spec=PodGroupSpec(scheduling_policy=policy))
            made = made.group(app)
        has_disk = rng.random() < 0.2
        for i in range(count):
            pod = replace_name(made, f"{app}-{i}")
            if has_disk:
                yield from _disk(rng, f"{app}-{i}")
                pod = pod.owned_by("StatefulSet", app).spec(
                    volumes=(
                        Volume(name="d", persistent_volume_claim=PersistentVolumeClaimSource(claim_name=f"{app}-{i}")),
                    )
                )
            yield pod.build()


def replace_name(made: PodBuilder, name: str) -> PodBuilder:
    pod = made.build()
    meta = pod.metadata
    return PodBuilder(
        type(pod)(
            metadata=ObjectMeta(
                name=name,
                namespace="default",
                uid=f"uid/{name}",
                labels=meta.labels,
                annotations=meta.annotations,
                owner_references=meta.owner_references,
            ),
            spec=pod.spec,
        )
    )


def _template(rng: random.Random, app: str) -> PodBuilder:
    pod = make_pod(app).label(app=app).requests(cpu=f"{rng.choice((250, 500, 1000, 1500))}m", memory="256Mi")
    if rng.random() < 0.92:
        pod = pod.owned_by("ReplicaSet", app)
    pod = pod.priority(rng.choice((0, 0, 0, 10, 1000)))
    if rng.random() < 0.25:
        pod = pod.pod_anti_affinity(HOSTNAME, app=app)
    if rng.random() < 0.25:
        pod = pod.spread(rng.choice((ZONE, HOSTNAME)), max_skew=rng.choice((1, 2)), app=app)
    if rng.random() < 0.15:
        pod = pod.pod_affinity(rng.choice((ZONE, HOSTNAME)), app=rng.choice((app, "app0")))
    if rng.random() < 0.1:
        pod = pod.annotate({"karpenter.sh/do-not-disrupt": "true"})
    if rng.random() < 0.15:
        pod = pod.toleration("dedicated", "x")
    if rng.random() < 0.2:
        pod = pod.spec(resource_claims=(PodResourceClaim(name="c", resource_claim_template_name="one-gpu"),))
    if rng.random() < 0.1:
        pod = pod.host_port(8080)
    return pod


def _disk(rng: random.Random, name: str) -> Iterator[KubeObject]:
    """A claim with a volume of one zone."""
    zone = NodeSelectorRequirement(key=ZONE, operator="In", values=(rng.choice(ZONES),))
    modes = ("ReadWriteOnce",)
    claimed = ObjectReference(kind="PersistentVolumeClaim", namespace="default", name=name, uid=f"claim/{name}")
    yield PersistentVolume(
        metadata=ObjectMeta(name=f"pv-{name}"),
        spec=PersistentVolumeSpec(
            capacity={"storage": "1Gi"},
            access_modes=modes,
            storage_class_name="late",
            claim_ref=claimed,
            node_affinity=VolumeNodeAffinity(
                required=NodeSelector(node_selector_terms=(NodeSelectorTerm(match_expressions=(zone,)),))
            ),
        ),
        status=ClaimStatus(phase="Bound"),
    )
    yield PersistentVolumeClaim(
        metadata=ObjectMeta(name=name, namespace="default", uid=f"claim/{name}", annotations={BIND_COMPLETED: "yes"}),
        spec=PersistentVolumeClaimSpec(
            access_modes=modes,
            storage_class_name="late",
            volume_name=f"pv-{name}",
            resources=VolumeResources(requests={"storage": "1Gi"}),
        ),
        status=ClaimStatus(phase="Bound"),
    )
