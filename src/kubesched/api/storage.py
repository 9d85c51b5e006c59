"""Storage: claims, volumes, classes, and what CSI drivers tell about nodes."""

from __future__ import annotations

from typing import Literal

from msgspec import field

from kubesched.api.affinity import NodeSelector
from kubesched.api.meta import KubeObject, LabelSelector, ObjectMeta, Record
from kubesched.api.quantity import QuantityText


class VolumeResources(Record, frozen=True):
    """How much storage a claim asks for."""

    requests: dict[str, QuantityText] = {}


class ObjectReference(Record, frozen=True):
    """A pointer to another object."""

    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


class PersistentVolumeClaimSpec(Record, frozen=True):
    """What a claim asks for, and the volume it got."""

    access_modes: tuple[str, ...] = ()
    resources: VolumeResources = VolumeResources()
    selector: LabelSelector | None = None
    storage_class_name: str | None = None
    volume_name: str = ""
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None


class PersistentVolumeClaimTemplate(Record, frozen=True):
    """The claim that an ephemeral volume makes."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()


class ClaimStatus(Record, frozen=True):
    """Where a claim is in its life."""

    phase: str = ""


class PersistentVolumeClaim(KubeObject, frozen=True):
    """A request for storage."""

    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: ClaimStatus = ClaimStatus()


class VolumeNodeAffinity(Record, frozen=True):
    """The nodes from which a volume can be reached."""

    required: NodeSelector | None = None


class CSIVolumeSource(Record, frozen=True):
    """A volume that a CSI driver serves."""

    driver: str = ""
    volume_handle: str = ""


class InTreeVolumeSource(Record, frozen=True):
    """A disk named in the way of the plugins that CSI drivers have replaced."""

    pd_name: str = ""
    volume_id: str = field(default="", name="volumeID")
    disk_name: str = ""
    disk_uri: str = field(default="", name="diskURI")
    kind: str | None = None
    volume_path: str = ""
    share_name: str = ""
    partition: int = 0


class PersistentVolumeSpec(Record, frozen=True):
    """What a volume offers."""

    capacity: dict[str, QuantityText] = {}
    access_modes: tuple[str, ...] = ()
    storage_class_name: str = ""
    volume_mode: str | None = None
    claim_ref: ObjectReference | None = None
    node_affinity: VolumeNodeAffinity | None = None
    volume_attributes_class_name: str | None = None
    csi: CSIVolumeSource | None = None
    gce_persistent_disk: InTreeVolumeSource | None = None
    aws_elastic_block_store: InTreeVolumeSource | None = None
    azure_disk: InTreeVolumeSource | None = None
    azure_file: InTreeVolumeSource | None = None
    cinder: InTreeVolumeSource | None = None
    vsphere_volume: InTreeVolumeSource | None = None
    portworx_volume: InTreeVolumeSource | None = None


class PersistentVolume(KubeObject, frozen=True):
    """A piece of storage in the cluster."""

    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: ClaimStatus = ClaimStatus()


class TopologySelectorLabelRequirement(Record, frozen=True):
    """One label and the values that are allowed."""

    key: str = ""
    values: tuple[str, ...] = ()


class TopologySelectorTerm(Record, frozen=True):
    """All the labels must match."""

    match_label_expressions: tuple[TopologySelectorLabelRequirement, ...] = ()


class StorageClass(KubeObject, frozen=True):
    """A way to make volumes."""

    provisioner: str = ""
    volume_binding_mode: Literal["Immediate", "WaitForFirstConsumer"] | None = None
    allowed_topologies: tuple[TopologySelectorTerm, ...] = ()


class VolumeLimits(Record, frozen=True):
    """How many volumes of a driver a node can attach."""

    count: int | None = None


class CSINodeDriver(Record, frozen=True):
    """A driver that runs on the node."""

    name: str = ""
    node_id: str = field(default="", name="nodeID")
    topology_keys: tuple[str, ...] = ()
    allocatable: VolumeLimits | None = None


class CSINodeSpec(Record, frozen=True):
    """All drivers of a node."""

    drivers: tuple[CSINodeDriver, ...] = ()


class CSINode(KubeObject, frozen=True):
    """What CSI drivers say about a node of the same name."""

    spec: CSINodeSpec = CSINodeSpec()


class CSIDriverSpec(Record, frozen=True):
    """What a driver can do."""

    storage_capacity: bool | None = None
    prevent_pod_scheduling_if_missing: bool | None = None


class CSIDriver(KubeObject, frozen=True):
    """A driver known to the cluster."""

    spec: CSIDriverSpec = CSIDriverSpec()


class CSIStorageCapacity(KubeObject, frozen=True):
    """How much a class can still make in a part of the cluster."""

    storage_class_name: str = ""
    node_topology: LabelSelector | None = None
    capacity: QuantityText | None = None
    maximum_volume_size: QuantityText | None = None


class AttachmentSource(Record, frozen=True):
    """Which volume is attached."""

    persistent_volume_name: str | None = None


class VolumeAttachmentSpec(Record, frozen=True):
    """A volume, by a driver, on a node."""

    attacher: str = ""
    node_name: str = ""
    source: AttachmentSource = AttachmentSource()


class VolumeAttachment(KubeObject, frozen=True):
    """A volume attached, or about to be, to a node."""

    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()
