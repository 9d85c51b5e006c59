"""What happens to a cluster less often: objects that others own change, writes fail, pods end or are made anew."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace
from tests.device_builders import device, make_claim, make_class, make_slice, request
from tests.unit.scheduler.group_world import make_gang
from tests.unit.scheduler.memory_cluster import Refusal
from tests.waiting_steps import CLAIMS, DOOR, NODES, PODS, VOLUMES, ClusterSteps, Verb, volume_claim, volume_named

from kubesched.api.affinity import PodAffinityTerm, TopologySpreadConstraint
from kubesched.api.device_claims import ResourceClaim
from kubesched.api.devices import DeviceClass, DeviceTaint, DeviceTaintRule, DeviceTaintRuleSpec, ResourceSlice
from kubesched.api.meta import KubeObject, LabelSelector, ObjectMeta
from kubesched.api.node import Node
from kubesched.api.pod import Pod, PodResourceClaim, PodResourceClaimStatus
from kubesched.api.pod_groups import PodGroup
from kubesched.api.storage import (
    AttachmentSource,
    CSIDriver,
    CSIDriverSpec,
    CSINode,
    CSINodeDriver,
    CSINodeSpec,
    CSIStorageCapacity,
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    TopologySelectorLabelRequirement,
    TopologySelectorTerm,
    VolumeAttachment,
    VolumeAttachmentSpec,
    VolumeLimits,
)
from kubesched.api.well_known import HOSTNAME, ZONE
from kubesched.api.workloads import Namespace
from kubesched.testing import PodBuilder, make_pod

ELSEWHERE = "elsewhere"
FRUGAL = "frugal"
"""The second profile, without preemption and taints."""
DISKS = "example.com/disks"
_REASONS = ("Conflict", "NotFound", "InternalError", "Timeout")


class RareSteps(ClusterSteps):
    """All verbs: those that happen every day, and these."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.verbs |= {
            "namespace": self._namespace,
            "across": self._across,
            "neighbour": self._neighbour,
            "anew": self._anew,
            "tolerate": self._tolerate,
            "port": lambda i, a, b: self._pod(i, a, lambda pod: pod.host_port(8080 + b % 2).priority(b // 2 % 2 * 10)),
            "node lost": self._node_lost,
            "strict": self._strict,
            "frugal": lambda i, a, b: self._pod(i, a, lambda pod: pod.spec(scheduler_name=FRUGAL).priority(b % 2 * 10)),
            "device at the door": lambda i, a, b: self._at_the_door(self._device, i, a, b),
            "stateful at the door": lambda i, a, b: self._at_the_door(self._stateful, i, a, b),
            "refuse": self._refuse,
            "group changed": self._group_changed,
            "slice gone": lambda i, a, b: self._lose(ResourceSlice, i),
            "tainted slice": self._tainted_slice,
            "class": self._class,
            "taint rule": self._taint_rule,
            "device claim": self._device_claim,
            "template": self._template,
            "generate": self._generate,
            "release": self._release,
            "csi node": self._csi_node,
            "attachment": self._attachment,
            "driver": self._driver,
            "capacity": self._capacity,
            "topology": self._topology,
            "zoned volume": self._zoned_volume,
            "immediate": self._immediate,
            "bind now": self._bind_now,
        }

    def end_refusals(self) -> None:
        for refusals in (self._cluster.bind_refusals, self._cluster.evict_refusals, self._cluster.claim_refusals):
            refusals.clear()

    # -- namespaces and pods ------------------------------------------------------------------------------------------

    def _namespace(self, i: int, a: int, b: int) -> None:
        if not self._beyond_parity:
            return
        labels = {"team": f"t{a % 2}"} if b % 4 else {}
        self._put(Namespace(metadata=ObjectMeta(name=(ELSEWHERE, "default")[i % 3 == 0], labels=labels)))

    def _across(self, i: int, a: int, b: int) -> None:
        """A pod with affinity or anti-affinity to pods of the namespaces of a team."""
        term = PodAffinityTerm(
            topology_key=(HOSTNAME, ZONE)[b % 2],
            label_selector=LabelSelector(match_labels={"app": f"a{b // 2 % 2}"}),
            namespace_selector=LabelSelector(match_labels={"team": f"t{b // 4 % 2}"}),
        )
        add = PodBuilder.pod_affinity_term if b // 8 % 2 else PodBuilder.pod_anti_affinity_term
        self._pod(i, a, lambda pod: add(pod, term).priority(b // 16 % 2 * 10))

    def _neighbour(self, i: int, a: int, b: int) -> None:
        """A placed pod of the other namespace comes, or goes."""
        known = self._find_one(Pod, f"{ELSEWHERE}/e{i % 3}")
        if known is not None:
            self._remove(known)
        else:
            pod = make_pod(f"e{i % 3}", namespace=ELSEWHERE, uid=f"e{i % 3}-{self._cluster._version}")
            pod = pod.spec(scheduler_name="other").label(app=f"a{b % 2}")
            if b // 2 % 3 == 0:
                term = PodAffinityTerm(
                    topology_key=ZONE,
                    label_selector=LabelSelector(match_labels={"app": "a0"}),
                    namespace_selector=LabelSelector(match_labels={"team": f"t{b // 8 % 2}"}),
                )
                pod = pod.pod_anti_affinity_term(term)
            self._put(pod.on(f"n{a % NODES}"))

    def _anew(self, i: int, a: int, b: int) -> None:
        """A pod is deleted and made anew, and a watch that was away shows one update."""
        pod = self._some(Pod, i)
        if pod is not None and pod.spec.scheduling_group is None and not pod.spec.volumes:
            uid = f"{pod.name}-{self._cluster._version}"
            fresh = replace(pod, metadata=replace(pod.metadata, uid=uid, deletion_timestamp=None))
            self._put(replace(fresh, spec=replace(pod.spec, node_name=""), status=type(pod.status)()))

    def _tolerate(self, i: int, a: int, b: int) -> None:
        pod = self._some_pod(i, bound=False)
        if pod is not None and self._may_change(pod):
            self._put(PodBuilder(pod).toleration("dedicated", operator="Exists"))

    def _node_lost(self, i: int, a: int, b: int) -> None:
        """Its pods stay for now."""
        self._lose(Node, i)

    def _strict(self, i: int, a: int, b: int) -> None:
        constraint = TopologySpreadConstraint(
            max_skew=1,
            topology_key=(HOSTNAME, ZONE)[b % 2],
            when_unsatisfiable="DoNotSchedule",
            label_selector=LabelSelector(match_labels={"app": f"a{b // 2 % 2}"}),
            min_domains=(None, 2)[b // 4 % 2],
            node_taints_policy=("Ignore", "Honor")[b // 8 % 2],
        )
        self._pod(i, a, lambda pod: pod.spread_constraint(constraint).priority(b // 16 % 2 * 10))

    def _at_the_door(self, verb: Verb, i: int, a: int, b: int) -> None:
        """A pod with claims, for which the Permit plugin makes up its mind."""
        known = self._find(f"p{i % PODS}")
        verb(i, a, b)
        pod = self._find(f"p{i % PODS}")
        if pod is not None and known is None and self._beyond_parity:
            self._put(PodBuilder(pod).label({DOOR: "yes"}))

    def _refuse(self, i: int, a: int, b: int) -> None:
        """The next writes of a kind fail, some of them though they are done."""
        cluster = self._cluster
        refusal = Refusal(_REASONS[a % len(_REASONS)], after_commit=bool(b % 2))
        if i % 4 == 3:
            cluster.claim_refusals.extend((refusal,) if self._beyond_parity else ())
        else:
            (cluster.evict_refusals if i % 4 == 2 else cluster.bind_refusals).append(refusal)

    def _group_changed(self, i: int, a: int, b: int) -> None:
        group = self._some(PodGroup, i)
        if group is not None:
            spec = make_gang(group.name, (None, 1, 2, 3)[a % 4]).spec
            self._put(replace(group, spec=replace(group.spec, scheduling_policy=spec.scheduling_policy)))

    # -- devices ------------------------------------------------------------------------------------------------------

    def _tainted_slice(self, i: int, a: int, b: int) -> None:
        taint = "sick" if b % 2 else ""
        devices = (device(f"d{k}", model=f"m{b // 2 % 2}", taint=taint if k else "") for k in range(a % 4))
        self._put(make_slice(f"n{i % NODES}", *devices, generation=1 + b // 4 % 2))

    def _class(self, i: int, a: int, b: int) -> None:
        if b % 4 == 0:
            self._lose(DeviceClass, i)
        else:
            expressions = (f'device.attributes["gpu.example.com"].model == "m{a % 2}"',) if b % 4 == 1 else ()
            self._put(make_class("gpu", *expressions))

    def _taint_rule(self, i: int, a: int, b: int) -> None:
        name = f"rule{i % 2}"
        known = self._find_one(DeviceTaintRule, name)
        if known is not None and b % 2:
            self._remove(known)
        else:
            taint = DeviceTaint(key=("sick", "old")[a % 2], effect="NoSchedule")
            self._put(DeviceTaintRule(metadata=ObjectMeta(name=name), spec=DeviceTaintRuleSpec(taint=taint)))

    def _device_claim(self, i: int, a: int, b: int) -> None:
        """One that several pods share, and which asks for more than one device, or for sick ones too."""
        name = f"c{i % 4}"
        if self._find_one(ResourceClaim, f"default/{name}") is None:
            asked = request("r", 1 + a % 2, everything=a % 5 == 0, tolerates="sick" if b % 2 else "")
            claim = make_claim(name, asked)
            self._put(replace(claim, metadata=replace(claim.metadata, uid=f"{name}-{self._cluster._version}")))

    def _template(self, i: int, a: int, b: int) -> None:
        entry = PodResourceClaim(name="claim", resource_claim_template_name="template")
        self._pod(i, a, lambda pod: pod.spec(resource_claims=(entry,)).priority(b % 2 * 10))

    def _generate(self, i: int, a: int, b: int) -> None:
        """The controller's part: a claim for a pod that has but a template, and its name in the pod's status."""
        waiting = [pod for pod in self._all(Pod) if _wants_claim(pod) and self._may_change(pod)]
        if waiting:
            pod = waiting[i % len(waiting)]
            claim = make_claim(f"of-{pod.uid}")
            made = PodBuilder(pod).status(
                resource_claim_statuses=(PodResourceClaimStatus(name="claim", resource_claim_name=claim.name),)
            )
            for obj in (claim, made) if a % 2 else (made, claim):
                self._put(obj)

    def _release(self, i: int, a: int, b: int) -> None:
        """The controller's part: claims whose pods are gone, or have finished, give back their devices."""
        living = {pod.uid for pod in self._all(Pod)}
        for claim in self._all(ResourceClaim):
            status = claim.status
            left = tuple(consumer for consumer in status.reserved_for if consumer.uid in living)
            if left != status.reserved_for:
                allocation = status.allocation if left else None
                self._put(replace(claim, status=replace(status, reserved_for=left, allocation=allocation)))

    # -- storage ------------------------------------------------------------------------------------------------------

    def _csi_node(self, i: int, a: int, b: int) -> None:
        name = f"n{i % NODES}"
        known = self._find_one(CSINode, name)
        if known is not None and b % 4 == 0 and self._beyond_parity:
            self._remove(known)
        elif known is None or self._beyond_parity:
            driver = CSINodeDriver(name=DISKS, node_id=name, allocatable=VolumeLimits(count=a % 3))
            self._put(CSINode(metadata=ObjectMeta(name=name), spec=CSINodeSpec(drivers=(driver,) if b % 3 else ())))

    def _attachment(self, i: int, a: int, b: int) -> None:
        name = f"attachment{i % 3}"
        volume = self._some(PersistentVolume, a)
        if (known := self._find_one(VolumeAttachment, name)) is not None:
            self._remove(known)
        elif volume is not None:
            source = AttachmentSource(persistent_volume_name=volume.name)
            spec = VolumeAttachmentSpec(attacher=DISKS, node_name=f"n{b % NODES}", source=source)
            self._put(VolumeAttachment(metadata=ObjectMeta(name=name), spec=spec))

    def _driver(self, i: int, a: int, b: int) -> None:
        known = self._find_one(CSIDriver, DISKS)
        if known is not None and b % 4 == 0 and self._beyond_parity:
            self._remove(known)
        elif known is None or self._beyond_parity:
            self._put(CSIDriver(metadata=ObjectMeta(name=DISKS), spec=CSIDriverSpec(storage_capacity=bool(a % 2))))

    def _capacity(self, i: int, a: int, b: int) -> None:
        known = self._find_one(CSIStorageCapacity, f"default/capacity{i % 2}")
        if known is not None and b % 4 == 0:
            self._remove(known)
        else:
            self._put(
                CSIStorageCapacity(
                    metadata=ObjectMeta(name=f"capacity{i % 2}", namespace="default"),
                    storage_class_name="made",
                    node_topology=LabelSelector(match_labels={ZONE: f"z{a % 2}"}),
                    capacity=("0", "500Mi", "5Gi")[b % 3],
                )
            )

    def _topology(self, i: int, a: int, b: int) -> None:
        """The class whose volumes are made on demand is made anew, perhaps for some zones only."""
        known = self._find_one(StorageClass, "made")
        if known is not None:
            self._remove(known)
        zones = TopologySelectorLabelRequirement(key=ZONE, values=(f"z{a % 2}",))
        allowed = (TopologySelectorTerm(match_label_expressions=(zones,)),) if b % 2 else ()
        if known is None or b % 3:
            self._put(
                StorageClass(
                    metadata=ObjectMeta(name="made", uid="made"),
                    provisioner=DISKS,
                    volume_binding_mode="WaitForFirstConsumer",
                    allowed_topologies=allowed,
                )
            )

    def _zoned_volume(self, i: int, a: int, b: int) -> None:
        """A volume of a zone by its label, which may change."""
        name = f"v{i % VOLUMES}"
        known = self._find_one(PersistentVolume, name)
        volume = known or volume_named(name, ("late", "now")[a % 2])
        labels = {ZONE: f"z{b % 2}"} if b % 3 else {}
        self._put(replace(volume, metadata=replace(volume.metadata, labels=labels)))

    def _immediate(self, i: int, a: int, b: int) -> None:
        """A claim that is bound before anybody uses it."""
        if self._find_one(StorageClass, "now") is None:
            self._put(StorageClass(metadata=ObjectMeta(name="now"), provisioner=DISKS, volume_binding_mode="Immediate"))
        name = f"d{i % CLAIMS}"
        if self._find_one(PersistentVolumeClaim, f"default/{name}") is None:
            self._put(volume_claim(name, "now", uid=f"{name}-{self._cluster._version}"))

    def _bind_now(self, i: int, a: int, b: int) -> None:
        """The controller's part: a volume for such a claim. `bind_claims` does the rest."""
        claims = [
            claim
            for claim in self._all(PersistentVolumeClaim)
            if claim.spec.storage_class_name == "now" and not claim.spec.volume_name
        ]
        free = [
            v for v in self._all(PersistentVolume) if v.spec.claim_ref is None and v.spec.storage_class_name == "now"
        ]
        if claims and free:
            claim, volume = claims[i % len(claims)], free[a % len(free)]
            reference = ObjectReference(
                kind="PersistentVolumeClaim", namespace=claim.namespace, name=claim.name, uid=claim.metadata.uid
            )
            self._put(replace(volume, spec=replace(volume.spec, claim_ref=reference)))
            self.bind_claims()

    # -- inside -------------------------------------------------------------------------------------------------------

    def _lose(self, kind: type[KubeObject], i: int) -> None:
        obj = self._some(kind, i)
        if obj is not None:
            self._remove(obj)


def _wants_claim(pod: Pod) -> bool:
    return bool(pod.spec.resource_claims) and not pod.status.resource_claim_statuses and _of_template(pod)


def _of_template(pod: Pod) -> bool:
    return pod.spec.resource_claims[0].resource_claim_template_name is not None
