"""The kinds of objects that kubesched reads, by the name in their `kind` field."""

from __future__ import annotations

from kubesched.api.device_claims import ResourceClaim, ResourceClaimTemplate
from kubesched.api.devices import DeviceClass, ResourceSlice
from kubesched.api.meta import KubeObject
from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.api.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from kubesched.api.workloads import (
    Namespace,
    PodDisruptionBudget,
    PriorityClass,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)

KINDS: dict[str, type[KubeObject]] = {
    kind.__name__: kind
    for kind in (
        CSIDriver,
        CSINode,
        CSIStorageCapacity,
        DeviceClass,
        Namespace,
        Node,
        PersistentVolume,
        PersistentVolumeClaim,
        Pod,
        PodDisruptionBudget,
        PriorityClass,
        ReplicaSet,
        ReplicationController,
        ResourceClaim,
        ResourceClaimTemplate,
        ResourceSlice,
        Service,
        StatefulSet,
        StorageClass,
        VolumeAttachment,
    )
}
