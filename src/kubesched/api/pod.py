"""Pods: what runs, what it needs, where it may go and where it is."""

from __future__ import annotations

from typing import Literal

from msgspec import field
from msgspec.structs import force_setattr

from kubesched.api.affinity import Affinity, TopologySpreadConstraint
from kubesched.api.meta import Int32, KubeObject, Record
from kubesched.api.quantity import QuantityText
from kubesched.api.storage import PersistentVolumeClaimTemplate

ResourceList = dict[str, QuantityText]

DEFAULT_SCHEDULER = "default-scheduler"


class ResourceRequirements(Record, frozen=True):
    """Requests are what scheduling counts; where one is missing the API server fills in the limit."""

    requests: ResourceList = {}
    limits: ResourceList = {}


class ContainerPort(Record, frozen=True):
    """A port; `host_port` claims one on the node."""

    container_port: int = 0
    host_port: int = 0
    protocol: Literal["TCP", "UDP", "SCTP", ""] = "TCP"
    host_ip: str = field(default="", name="hostIP")


class RestartRule(Record, frozen=True):
    """What to do when a container exits in a certain way."""

    action: str = ""


class Container(Record, frozen=True):
    """One container of a pod."""

    name: str = ""
    image: str = ""
    resources: ResourceRequirements = ResourceRequirements()
    ports: tuple[ContainerPort, ...] = ()
    restart_policy: str = ""
    restart_policy_rules: tuple[RestartRule, ...] = ()


class Toleration(Record, frozen=True):
    """A taint this pod accepts."""

    key: str = ""
    operator: Literal["Equal", "Exists", "Lt", "Gt", ""] = ""
    value: str = ""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute", ""] = ""
    toleration_seconds: int | None = None
    """How long it is accepted by a pod that is there, if not for ever."""


class PersistentVolumeClaimSource(Record, frozen=True):
    """A claim used as a volume."""

    claim_name: str = ""
    read_only: bool = False


class EphemeralSource(Record, frozen=True):
    """A claim made for this pod alone."""

    volume_claim_template: PersistentVolumeClaimTemplate | None = None


class DiskSource(Record, frozen=True):
    """The parts of in-tree disk sources by which two pods may collide on a node."""

    pd_name: str = ""
    volume_id: str = field(default="", name="volumeID")
    disk_name: str = ""
    disk_uri: str = field(default="", name="diskURI")
    kind: str | None = None
    read_only: bool = False
    target_portal: str = ""
    iqn: str = ""
    lun: int = 0
    monitors: tuple[str, ...] = ()
    image: str = ""
    pool: str = ""
    driver: str = ""
    reference: str = ""


class LocalSource(Record, frozen=True):
    """A directory of the node: data in it stays behind when the pod leaves, unless it is in memory and lost anyway."""

    medium: str = ""


class Volume(Record, frozen=True):
    """A volume of a kind that matters to placement, or local data, which is all that a pod's specification keeps."""

    name: str = ""
    persistent_volume_claim: PersistentVolumeClaimSource | None = None
    ephemeral: EphemeralSource | None = None
    gce_persistent_disk: DiskSource | None = None
    aws_elastic_block_store: DiskSource | None = None
    azure_disk: DiskSource | None = None
    cinder: DiskSource | None = None
    portworx_volume: DiskSource | None = None
    iscsi: DiskSource | None = None
    rbd: DiskSource | None = None
    csi: DiskSource | None = None
    image: DiskSource | None = None
    empty_dir: LocalSource | None = None
    host_path: LocalSource | None = None

    @property
    def matters(self) -> bool:
        """Whether it is of a kind that matters to placement."""
        return self != Volume(name=self.name, empty_dir=self.empty_dir, host_path=self.host_path)

    @property
    def is_local(self) -> bool:
        """Whether data is on the node's disk."""
        in_dir = self.empty_dir is not None and self.empty_dir.medium != "Memory"
        return in_dir or self.host_path is not None


class SchedulingGate(Record, frozen=True):
    """Something that must be removed before the pod is looked at."""

    name: str = ""


class PodResourceClaim(Record, frozen=True):
    """A device claim of the pod."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class SchedulingGroup(Record, frozen=True):
    """The PodGroup that a pod is scheduled with, by its name in the same namespace."""

    pod_group_name: str = ""


class PodSpec(Record, frozen=True):
    """What a pod asks for."""

    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    node_name: str = ""
    node_selector: dict[str, str] = {}
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    scheduler_name: str = DEFAULT_SCHEDULER
    priority: Int32 | None = None
    priority_class_name: str = ""
    preemption_policy: Literal["Never", "PreemptLowerPriority"] | None = None
    overhead: ResourceList = {}
    resources: ResourceRequirements | None = None
    volumes: tuple[Volume, ...] = ()
    """Those that matter. All others are left out: each pod of a ReplicaSet has its token in a volume of another name
    (`kube-api-access-x7kqp`), and would be like no other pod."""
    scheduling_gates: tuple[SchedulingGate, ...] = ()
    resource_claims: tuple[PodResourceClaim, ...] = ()
    scheduling_group: SchedulingGroup | None = None
    host_network: bool = False
    host_users: bool | None = None
    has_local_data: bool = False
    """Whether one of the volumes that were left out is a directory of the node."""

    def __post_init__(self) -> None:
        if self.volumes and not all(volume.matters for volume in self.volumes):
            if any(volume.is_local for volume in self.volumes):
                force_setattr(self, "has_local_data", True)
            force_setattr(self, "volumes", tuple(volume for volume in self.volumes if volume.matters))


class ContainerStatus(Record, frozen=True):
    """What a container really has, while a resize is under way."""

    name: str = ""
    resources: ResourceRequirements | None = None
    allocated_resources: ResourceList = {}


class PodCondition(Record, frozen=True):
    """One observed condition."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class PodResourceClaimStatus(Record, frozen=True):
    """The claim that was made for an entry of `spec.resourceClaims`."""

    name: str = ""
    resource_claim_name: str | None = None


class ExtendedResourceRequest(Record, frozen=True):
    """The request of a claim that serves an extended resource of a container."""

    container_name: str = ""
    resource_name: str = ""
    request_name: str = ""


class ExtendedResourceClaimStatus(Record, frozen=True):
    """The claim that was made for the extended resources of a pod, and what serves which container."""

    resource_claim_name: str = ""
    request_mappings: tuple[ExtendedResourceRequest, ...] = ()


class PodStatus(Record, frozen=True):
    """Where a pod is in its life."""

    phase: str = ""
    nominated_node_name: str = ""
    start_time: str = ""
    conditions: tuple[PodCondition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    resources: ResourceRequirements | None = None
    allocated_resources: ResourceList = {}
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()
    extended_resource_claim_status: ExtendedResourceClaimStatus | None = None


class Pod(KubeObject, frozen=True):
    """A pod, pending or placed."""

    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def uid(self) -> str:
        return self.metadata.uid

    @property
    def priority(self) -> int:
        return self.spec.priority or 0

    @property
    def is_terminating(self) -> bool:
        return self.metadata.deletion_timestamp != ""

    @property
    def is_finished(self) -> bool:
        """Succeeded and failed pods hold nothing and are not scheduled."""
        return self.status.phase in ("Succeeded", "Failed")
