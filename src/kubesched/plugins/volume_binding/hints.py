"""What may help a pod whose volumes could not be had: almost any news about storage, a few of them with conditions."""

from __future__ import annotations

from kubesched.api.pod import Pod
from kubesched.api.storage import CSIDriver, CSINode, CSIStorageCapacity, StorageClass
from kubesched.framework.events import Action, Hint, Interest, Kind
from kubesched.plugins.shared.csi_nodes import MIGRATED_ANNOTATION
from kubesched.plugins.shared.hinting import after_used_claim, queue_if, waits_for
from kubesched.plugins.volume_binding.provisioning import largest_volume
from kubesched.state.cluster import ClusterState

_NEW_OR_CHANGED = Action.ADD | Action.UPDATE


def interests() -> tuple[Interest, ...]:
    return (
        waits_for(Kind.STORAGE_CLASS, _NEW_OR_CHANGED, after_class),
        waits_for(Kind.PERSISTENT_VOLUME_CLAIM, _NEW_OR_CHANGED, after_used_claim),
        waits_for(Kind.PERSISTENT_VOLUME, _NEW_OR_CHANGED),
        waits_for(Kind.NODE, Action.ADD | Action.UPDATE_NODE_LABEL),
        waits_for(Kind.CSI_NODE, _NEW_OR_CHANGED, after_csi_node),
        waits_for(Kind.CSI_DRIVER, Action.UPDATE, after_driver),
        waits_for(Kind.CSI_STORAGE_CAPACITY, _NEW_OR_CHANGED, after_capacity),
    )


def after_class(pod: Pod, old: StorageClass | None, new: StorageClass, state: ClusterState) -> Hint:
    """A class is new, or makes volumes in other places than before; nothing else of it can change."""
    return queue_if(old is None or old.allowed_topologies != new.allowed_topologies)


def after_csi_node(pod: Pod, old: CSINode | None, new: CSINode, state: ClusterState) -> Hint:
    """Drivers took over from other in-tree plugins than before."""
    return queue_if(old is None or _migrated(old) != _migrated(new))


def after_driver(pod: Pod, old: CSIDriver, new: CSIDriver, state: ClusterState) -> Hint:
    """A driver no longer reports capacity. Claims are not looked at, only volumes that the pod itself names."""
    is_used = any(volume.csi is not None and volume.csi.driver == new.name for volume in pod.spec.volumes)
    return queue_if(is_used and bool(old.spec.storage_capacity) and not new.spec.storage_capacity)


def after_capacity(pod: Pod, old: CSIStorageCapacity | None, new: CSIStorageCapacity, state: ClusterState) -> Hint:
    """There is a new report, or room for a larger volume than before."""
    return queue_if(old is None or largest_volume(new) > largest_volume(old))


def _migrated(csi_node: CSINode) -> str:
    return csi_node.metadata.annotations.get(MIGRATED_ANNOTATION, "")
