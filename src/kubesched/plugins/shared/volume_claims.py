"""How pods use persistent storage: the claims they name, and those made for their ephemeral volumes."""

from __future__ import annotations

from typing import NamedTuple

from kubesched.api.pod import Pod, Volume
from kubesched.api.storage import PersistentVolume, PersistentVolumeClaim
from kubesched.api.well_known import BIND_COMPLETED, STORAGE_CLASS


class ClaimUse(NamedTuple):
    """A claim behind a volume of a pod. The claim of an ephemeral volume is made for this pod and must belong to it."""

    name: str
    is_ephemeral: bool


def claims_used(pod: Pod) -> list[ClaimUse]:
    """The claims behind a pod's volumes, in their order."""
    uses = (claim_behind(pod, volume) for volume in pod.spec.volumes)
    return [use for use in uses if use is not None]


def claim_behind(pod: Pod, volume: Volume) -> ClaimUse | None:
    """The claim behind one volume of a pod, if there is one."""
    if volume.persistent_volume_claim is not None:
        return ClaimUse(volume.persistent_volume_claim.claim_name, is_ephemeral=False)
    return None if volume.ephemeral is None else ClaimUse(f"{pod.name}-{volume.name}", is_ephemeral=True)


def why_foreign(pod: Pod, claim: PersistentVolumeClaim) -> str:
    """Why a claim cannot serve an ephemeral volume of the pod: it was made for another pod. Empty if it can."""
    owner = claim.metadata.controller
    if owner is not None and owner.uid == pod.uid:
        return ""
    return f"PVC {claim.key} was not created for pod {pod.key} (pod is not owner)"


def class_of(obj: PersistentVolumeClaim | PersistentVolume) -> str:
    """The storage class of a claim or volume; an annotation from before the field existed still goes first."""
    return obj.metadata.annotations.get(STORAGE_CLASS, obj.spec.storage_class_name or "")


def is_bound(claim: PersistentVolumeClaim) -> bool:
    """Whether the claim has its volume and the controller has finished with both."""
    return bool(claim.spec.volume_name) and BIND_COMPLETED in claim.metadata.annotations


def claim_not_found(name: str) -> str:
    return f'persistentvolumeclaim "{name}" not found'
