"""The claims of a pod, sorted by what is still to be done for them."""

from __future__ import annotations

from dataclasses import dataclass

from kubesched.api.pod import Pod
from kubesched.api.storage import PersistentVolumeClaim, StorageClass
from kubesched.framework.status import Status, error, unresolvable
from kubesched.plugins.shared.volume_claims import claim_not_found, claims_used, class_of, is_bound, why_foreign
from kubesched.plugins.volume_binding.assumed import Assumed
from kubesched.state.objects import ObjectStore

UNBOUND_IMMEDIATE = unresolvable("pod has unbound immediate PersistentVolumeClaims")

Claims = tuple[PersistentVolumeClaim, ...]


@dataclass(frozen=True)
class PodClaims:
    """Claims that have a volume, and claims whose volume is chosen, or made, together with the node."""

    bound: Claims = ()
    delayed: Claims = ()


def why_not_ready(pod: Pod, objects: ObjectStore) -> str:
    """Why the pod cannot have one of its claims, whatever the node. Empty if it can have them all."""
    for use in claims_used(pod):
        claim = objects.get(PersistentVolumeClaim, use.name, pod.namespace)
        if claim is None and use.is_ephemeral:
            return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{use.name}"'
        if claim is None:
            return claim_not_found(use.name)
        if claim.status.phase == "Lost":
            volume = claim.spec.volume_name
            return f'persistentvolumeclaim "{use.name}" bound to non-existent persistentvolume "{volume}"'
        if claim.metadata.deletion_timestamp:
            return f'persistentvolumeclaim "{use.name}" is being deleted'
        if use.is_ephemeral and (foreign := why_foreign(pod, claim)):
            return foreign
    return ""


def claims_of(pod: Pod, assumed: Assumed[PersistentVolumeClaim], objects: ObjectStore) -> PodClaims | Status:
    """The claims of a pod that all are there; or, if one should have its volume by now, that the pod must wait."""
    bound: list[PersistentVolumeClaim] = []
    delayed: list[PersistentVolumeClaim] = []
    must_wait = False
    for use in claims_used(pod):
        claim = assumed.get(use.name, pod.namespace)
        if claim is None:
            return error(f'error getting PVC "{pod.namespace}/{use.name}"')
        if is_bound(claim):
            bound.append(claim)
            continue
        storage_class = objects.get(StorageClass, class_of(claim)) if class_of(claim) else None
        if storage_class is not None and storage_class.volume_binding_mode is None:
            return error(f'VolumeBindingMode not set for StorageClass "{storage_class.name}"')
        waits = storage_class is not None and storage_class.volume_binding_mode == "WaitForFirstConsumer"
        if waits and not claim.spec.volume_name:
            delayed.append(claim)
        else:
            must_wait = True
    return UNBOUND_IMMEDIATE if must_wait else PodClaims(tuple(bound), tuple(delayed))
