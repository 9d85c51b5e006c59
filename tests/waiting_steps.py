"""What happens to a cluster in a random history: nodes, pods, storage, devices and groups come, change and go.

A step is a verb with three small numbers. One that makes no sense at its moment does nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from msgspec.structs import replace
from tests.device_builders import device, make_claim, make_class, make_slice, with_claims
from tests.unit.scheduler.group_world import make_gang
from tests.unit.scheduler.memory_cluster import MemoryCluster

from kubesched.api.affinity import NodeSelector
from kubesched.api.device_claims import ResourceClaim
from kubesched.api.meta import KubeObject, ObjectMeta
from kubesched.api.node import Node
from kubesched.api.pod import PersistentVolumeClaimSource, Pod, Volume
from kubesched.api.pod_groups import PodGroup
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
from kubesched.api.well_known import BIND_COMPLETED, HOSTNAME, SELECTED_NODE, ZONE
from kubesched.library.builders import node_term
from kubesched.testing import NodeBuilder, PodBuilder, make_node, make_pod

NODES, PODS, GROUPS, CLAIMS, VOLUMES = 4, 9, 2, 4, 4
DOOR = "door"
"""A pod with this label is waited for by the Permit plugin of the model."""
CLOSED = "closed"
"""The extender of the model refuses nodes with this label."""

Change = Callable[[PodBuilder], PodBuilder]
Verb = Callable[[int, int, int], None]
Obj = TypeVar("Obj", bound=KubeObject)


class ClusterSteps:
    """The verbs that change a cluster. The watch is the business of who made the cluster."""

    def __init__(
        self,
        cluster: MemoryCluster,
        tell: Callable[[], None],
        is_assumed: Callable[[Pod], bool],
        *,
        beyond_parity: bool,
    ) -> None:
        """Unless it goes `beyond_parity`, nothing happens that kube-scheduler overlooks (`PARITY_GAPS`)."""
        self._cluster = cluster
        self._is_assumed = is_assumed
        self._beyond_parity = beyond_parity
        self._tell = tell
        self.verbs: dict[str, Verb] = {
            "node": self._node,
            "node gone": self._node_gone,
            "relabel node": self._relabel_node,
            "rezone": self._rezone,
            "pod": lambda i, a, b: self._pod(i, a, lambda pod: pod),
            "pods": self._equal_pods,
            "never": lambda i, a, b: self._pod(i, a, lambda pod: pod.priority(b % 3 * 10).never_preempting()),
            "priority": lambda i, a, b: self._pod(i, a, lambda pod: pod.priority(b % 3 * 10)),
            "affinity": self._affine,
            "spread": lambda i, a, b: self._pod(i, a, lambda pod: _spread(pod, b).priority(b // 16 % 2 * 10)),
            "device": self._device,
            "gated": lambda i, a, b: self._pod(i, a, lambda pod: pod.gate("example.com/later")),
            "open": self._open,
            "pod gone": self._pod_gone,
            "terminate": self._terminate,
            "end": lambda i, a, b: self.end_terminating(),
            "relabel": self._relabel,
            "nominate": self._nominate,
            "lure": lambda i, a, b: self._nominate(i, a, b) if self._beyond_parity else None,
            "resize": self._resize,
            "foreign": self._foreign,
            "slice": self._slice,
            "claim gone": self._claim_gone,
            "group": self._group,
            "group gone": self._group_gone,
            "member": self._member,
            "gated member": lambda i, a, b: self._member(i, a, b, gate=True),
            "member gone": self._member_gone,
            "storage class": self._storage_class,
            "volume": self._volume,
            "claim": self._claim,
            "stateful": self._stateful,
            "storage gone": self._storage_gone,
            "door": lambda i, a, b: self._pod(i, a, lambda pod: pod.label({DOOR: "yes"}).priority(b % 2 * 10)),
        }

    # -- what others do by themselves ---------------------------------------------------------------------------------

    def end_terminating(self) -> None:
        """The kubelet's part: pods that were asked to leave are gone."""
        for pod in self._all(Pod):
            if pod.is_terminating:
                self._remove(pod)

    def bind_claims(self) -> None:
        """The volume controller's and the provisioner's part: a claim gets the volume that the scheduler chose."""
        for claim in self._all(PersistentVolumeClaim):
            if claim.spec.volume_name:
                continue
            node = claim.metadata.annotations.get(SELECTED_NODE, "")
            volume = next((v for v in self._all(PersistentVolume) if _is_for(v, claim)), None)
            if volume is None and node:
                reference = _reference(claim)
                name = f"for-{claim.metadata.uid}"
                self._put(volume_named(name, claim.spec.storage_class_name or "", node, reference))
                volume = self._find_one(PersistentVolume, name)
            if volume is not None:
                meta = replace(claim.metadata, annotations={**claim.metadata.annotations, BIND_COMPLETED: "yes"})
                spec = replace(claim.spec, volume_name=volume.name)
                self._put(replace(claim, metadata=meta, spec=spec, status=ClaimStatus(phase="Bound")))

    # -- nodes --------------------------------------------------------------------------------------------------------

    def _node(self, i: int, a: int, b: int) -> None:
        node = make_node(f"n{i % NODES}").capacity(cpu=str((1, 2, 3)[a % 3]), pods=4).zone(f"z{i % 2}")
        if b % 8 == 0:
            node = node.cordoned()
        elif b % 8 == 1:
            node = node.taint("dedicated")
        elif b % 8 == 2:
            node = node.label(disk="ssd")
        elif b % 8 == 3:
            node = node.label({CLOSED: "yes"})
        self._put(node)

    def _node_gone(self, i: int, a: int, b: int) -> None:
        """A node goes, and then the pods on it, as the garbage collector of pods has it."""
        node = self._some(Node, i)
        if node is not None:
            self._remove(node)
            for pod in self._all(Pod):
                if pod.spec.node_name == node.name:
                    self._remove(pod)

    def _relabel_node(self, i: int, a: int, b: int) -> None:
        node = self._some(Node, i)
        if node is not None:
            labels = {key: value for key, value in node.metadata.labels.items() if key != CLOSED}
            labels |= {CLOSED: "yes"} if b % 2 else {}
            self._put(replace(node, metadata=replace(node.metadata, labels=labels)))

    def _rezone(self, i: int, a: int, b: int) -> None:
        node = self._some(Node, i)
        if node is not None and self._beyond_parity:
            labels = {key: value for key, value in node.metadata.labels.items() if key != ZONE}
            labels |= {ZONE: f"z{b % 3}"} if b % 4 else {}
            self._put(replace(node, metadata=replace(node.metadata, labels=labels)))

    # -- pods ---------------------------------------------------------------------------------------------------------

    def _pod(self, i: int, a: int, change: Change) -> None:
        name = f"p{i % PODS}"
        if self._find(name) is None:
            pod = make_pod(name, uid=f"{name}-{self._cluster._version}")
            if a % 2:  # one of many equal ones
                pod = pod.label(app="a0").requests(cpu="1")
            else:
                pod = pod.label(app=f"a{a // 2 % 2}").requests(cpu=("500m", "1", "2")[a // 4 % 3])
            if a % 2 == 0 and a // 16 % 4 == 0:
                pod = pod.node_selector(disk="ssd")
            elif a % 2 == 0 and a // 16 % 4 == 1:
                pod = pod.toleration("dedicated", operator="Exists")
            self._put(change(pod))

    def _affine(self, i: int, a: int, b: int) -> None:
        def change(pod: PodBuilder) -> PodBuilder:
            topology, app, pod = (HOSTNAME, ZONE)[b % 2], f"a{b // 2 % 2}", pod.priority(b // 16 % 2 * 10)
            if b // 4 % 3 == 0:
                return pod.pod_affinity(topology, app=app)
            if b // 32 % 2 and self._beyond_parity:
                pod = pod.pod_anti_affinity(HOSTNAME, app=f"a{b // 64 % 3}")
            return pod.pod_anti_affinity(topology, app=app)

        self._pod(i, a, change)

    def _equal_pods(self, i: int, a: int, b: int) -> None:
        for k in range(2 + a % 5):
            self._pod(i + k, 1, lambda pod: pod)

    def _pod_gone(self, i: int, a: int, b: int) -> None:
        pod = self._some(Pod, i)
        if pod is not None:
            self._remove(pod)

    def _terminate(self, i: int, a: int, b: int) -> None:
        pod = self._some(Pod, i)
        if pod is not None and not pod.is_terminating:
            self._cluster.terminate(pod)
            self._tell()

    def _relabel(self, i: int, a: int, b: int) -> None:
        pod = self._some_pod(i, bound=bool(a % 2))
        if pod is not None and self._may_change(pod):
            self._put(PodBuilder(pod).label(app=f"a{b % 3}"))

    def _nominate(self, i: int, a: int, b: int) -> None:
        pod = self._some_pod(i, bound=False)
        if pod is not None:
            self._put(PodBuilder(pod).nominated("" if b % 4 == 0 else f"n{a % NODES}"))

    def _resize(self, i: int, a: int, b: int) -> None:
        pod = self._some_pod(i, bound=bool(b % 4))
        if pod is not None and self._may_change(pod):
            self._put(PodBuilder(pod).requests(cpu=("250m", "500m", "1", "2")[a % 4]))

    def _foreign(self, i: int, a: int, b: int) -> None:
        if b % 3 == 0 and (pod := self._some_pod(i, bound=False)) is not None:
            if self._may_change(pod):
                self._put(PodBuilder(pod).on(f"n{a % NODES}"))
            return
        name = f"f{i % PODS}"
        if self._find(name) is None:
            other = make_pod(name, uid=f"{name}-{self._cluster._version}").spec(scheduler_name="other")
            other = other.requests(cpu="1").label(app=f"a{b % 2}").priority(b // 2 % 2 * 10)
            self._put(other if b // 4 % 4 == 0 else other.on(f"n{a % NODES}"))

    def _open(self, i: int, a: int, b: int) -> None:
        gated = [pod for pod in self._all(Pod) if pod.spec.scheduling_gates and self._may_change(pod)]
        if gated:
            self._put(PodBuilder(gated[i % len(gated)]).spec(scheduling_gates=()))

    # -- devices ------------------------------------------------------------------------------------------------------

    def _slice(self, i: int, a: int, b: int) -> None:
        self._put(make_class("gpu"))
        self._put(make_slice(f"n{i % NODES}", *(device(f"d{k}", model=f"m{b % 2}") for k in range(a % 3))))

    def _device(self, i: int, a: int, b: int) -> None:
        name = f"p{i % PODS}"
        if self._find(name) is None:
            claim = f"c{b % 4}" if a % 3 == 0 else f"of-{name}"
            if self._find_one(ResourceClaim, f"default/{claim}") is None:
                self._put(make_claim(claim))
            self._pod(i, a, lambda pod: with_claims(pod, claim).priority(b // 16 % 2 * 10))

    def _claim_gone(self, i: int, a: int, b: int) -> None:
        claim = self._some(ResourceClaim, i)
        if claim is not None:
            self._remove(claim)

    # -- storage ------------------------------------------------------------------------------------------------------

    def _storage_class(self, i: int, a: int, b: int) -> None:
        """One whose volumes are made in advance, or one whose volumes are made on demand."""
        name, provisioner = (("late", "kubernetes.io/no-provisioner"), ("made", "example.com/disks"))[i % 2]
        meta = ObjectMeta(name=name, uid=name)
        self._put(StorageClass(metadata=meta, provisioner=provisioner, volume_binding_mode="WaitForFirstConsumer"))

    def _volume(self, i: int, a: int, b: int) -> None:
        name = f"v{i % VOLUMES}"
        if self._find_one(PersistentVolume, name) is None:
            self._put(volume_named(name, "late", f"n{a % NODES}" if b % 2 else ""))

    def _claim(self, i: int, a: int, b: int) -> None:
        name = f"d{i % CLAIMS}"
        if self._find_one(PersistentVolumeClaim, f"default/{name}") is None:
            mode = "ReadWriteOncePod" if b % 4 == 0 else "ReadWriteOnce"
            storage_class = ("late", "late", "made")[a % 3]
            self._put(volume_claim(name, storage_class, uid=f"{name}-{self._cluster._version}", mode=mode))

    def _stateful(self, i: int, a: int, b: int) -> None:
        self._pod(i, a, lambda pod: with_claim(pod, f"d{b % CLAIMS}").priority(b // 8 % 3 * 10))

    def _storage_gone(self, i: int, a: int, b: int) -> None:
        """Not a volume or a claim in use: finalizers keep those."""
        volume = self._some(PersistentVolume, i) if a % 2 else None
        claim = None if a % 2 else self._some(PersistentVolumeClaim, i)
        if volume is not None and volume.spec.claim_ref is None:
            self._remove(volume)
        if claim is not None and not _claim_is_used(claim, self._all(Pod)):
            self._remove(claim)

    # -- groups -------------------------------------------------------------------------------------------------------

    def _group(self, i: int, a: int, b: int) -> None:
        name = f"g{i % GROUPS}"
        if self._find_one(PodGroup, f"default/{name}") is None:
            self._put(make_gang(name, (None, 1, 2, 3)[a % 4], uid=f"{name}-{self._cluster._version}"))

    def _group_gone(self, i: int, a: int, b: int) -> None:
        group = self._some(PodGroup, i)
        if group is not None:
            self._remove(group)

    def _member(self, i: int, a: int, b: int, *, gate: bool = False) -> None:
        name = f"g{a % GROUPS}"
        with_gate: Change = (lambda pod: pod.gate("example.com/later")) if gate else lambda pod: pod
        self._pod(i, b, lambda pod: with_gate(pod.group(name)))

    def _member_gone(self, i: int, a: int, b: int) -> None:
        """The first of a group, as often as not, which is then made anew by the same name."""
        members = [pod for pod in self._all(Pod) if pod.spec.scheduling_group is not None]
        if members:
            pod = members[0 if a % 2 else i % len(members)]
            self._remove(pod)
            if b % 2:
                uid = f"{pod.name}-{self._cluster._version}"
                fresh = replace(pod, metadata=replace(pod.metadata, uid=uid), status=type(pod.status)())
                self._put(replace(fresh, spec=replace(pod.spec, node_name="")))

    # -- inside -------------------------------------------------------------------------------------------------------

    def _put(self, obj: PodBuilder | NodeBuilder | KubeObject) -> None:
        self._cluster.put(obj if isinstance(obj, KubeObject) else obj.build())
        self._tell()

    def _remove(self, obj: KubeObject) -> None:
        self._cluster.remove(obj)
        self._tell()

    def _all(self, kind: type[Obj]) -> list[Obj]:
        return [obj for obj in self._cluster.objects.values() if isinstance(obj, kind)]

    def _some(self, kind: type[Obj], i: int) -> Obj | None:
        objects = self._all(kind)
        return objects[i % len(objects)] if objects else None

    def _find_one(self, kind: type[Obj], key: str) -> Obj | None:
        return next((obj for obj in self._all(kind) if obj.key == key), None)

    def _find(self, name: str) -> Pod | None:
        return self._find_one(Pod, f"default/{name}")

    def _may_change(self, pod: Pod) -> bool:
        is_expected = bool(pod.status.nominated_node_name) or self._is_assumed(pod)
        return self._beyond_parity or not is_expected or bool(pod.spec.node_name)

    def _some_pod(self, i: int, *, bound: bool) -> Pod | None:
        pods = [pod for pod in self._all(Pod) if bool(pod.spec.node_name) == bound]
        return pods[i % len(pods)] if pods else None


def _spread(pod: PodBuilder, b: int) -> PodBuilder:
    return pod.spread((HOSTNAME, ZONE)[b % 2], app=f"a{b // 2 % 2}")


def with_claim(pod: PodBuilder, claim: str) -> PodBuilder:
    source = PersistentVolumeClaimSource(claim_name=claim)
    return pod.spec(volumes=(Volume(name="data", persistent_volume_claim=source),))


def volume_claim(name: str, storage_class: str, *, uid: str = "", mode: str = "ReadWriteOnce") -> PersistentVolumeClaim:
    resources = VolumeResources(requests={"storage": "1Gi"})
    spec = PersistentVolumeClaimSpec(access_modes=(mode,), storage_class_name=storage_class, resources=resources)
    return PersistentVolumeClaim(metadata=ObjectMeta(name=name, namespace="default", uid=uid or name), spec=spec)


def volume_named(
    name: str, storage_class: str, node: str = "", claim: ObjectReference | None = None
) -> PersistentVolume:
    required = NodeSelector(node_selector_terms=(node_term(HOSTNAME, "In", node),)) if node else None
    spec = PersistentVolumeSpec(
        capacity={"storage": "1Gi"},
        access_modes=("ReadWriteOnce", "ReadWriteOncePod"),
        storage_class_name=storage_class,
        node_affinity=None if required is None else VolumeNodeAffinity(required=required),
        claim_ref=claim,
    )
    return PersistentVolume(metadata=ObjectMeta(name=name, uid=name), spec=spec, status=ClaimStatus(phase="Available"))


def _reference(claim: PersistentVolumeClaim) -> ObjectReference:
    return ObjectReference(
        kind="PersistentVolumeClaim", namespace=claim.namespace, name=claim.name, uid=claim.metadata.uid
    )


def _is_for(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    return volume.spec.claim_ref is not None and volume.spec.claim_ref.uid == claim.metadata.uid


def _claim_is_used(claim: PersistentVolumeClaim, pods: list[Pod]) -> bool:
    """The finalizer of claims counts pods, waiting ones as well."""
    sources = [volume.persistent_volume_claim for pod in pods for volume in pod.spec.volumes]
    return bool(claim.spec.volume_name) or any(source and source.claim_name == claim.name for source in sources)
