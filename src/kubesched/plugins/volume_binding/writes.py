"""What must be written to the API so that a pod's claims get their volumes, and the wait until they have them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from kubesched.api.meta import KubeObject
from kubesched.api.pod import Pod
from kubesched.api.storage import ObjectReference, PersistentVolume, PersistentVolumeClaim
from kubesched.api.well_known import BIND_COMPLETED, BOUND_BY_CONTROLLER, SELECTED_NODE
from kubesched.framework.client import NOT_FOUND, TIMEOUT, ClientError, ClusterClient, Json
from kubesched.state.cluster import ClusterState
from kubesched.state.facts import StateKey
from kubesched.state.objects import ObjectStore

_PROVISIONING_FAILED = "ProvisioningFailed"


@dataclass(frozen=True)
class VolumeWrites:
    """Volumes and claims as they should become, for a pod on its node."""

    node_name: str
    volumes: tuple[PersistentVolume, ...] = ()
    """Each with a reference to the claim it is to be bound to."""
    claims: tuple[PersistentVolumeClaim, ...] = ()
    """Each naming the node that its volume is to be made for."""


RESERVED = StateKey[VolumeWrites]("VolumeBinding/reserved")
"""Where in the notes of a cycle the writes are found."""


def bound_to(volume: PersistentVolume, claim: PersistentVolumeClaim) -> PersistentVolume:
    """The volume, given to the claim. One that belongs to it already stays the very same object."""
    reference = volume.spec.claim_ref
    if reference is not None and reference.uid == claim.metadata.uid:
        return volume
    meta = volume.metadata
    if reference is None:
        meta = msgspec.structs.replace(meta, annotations={BOUND_BY_CONTROLLER: "yes", **meta.annotations})
    owner = ObjectReference(
        kind="PersistentVolumeClaim", namespace=claim.namespace, name=claim.name, uid=claim.metadata.uid
    )
    spec = msgspec.structs.replace(volume.spec, claim_ref=owner)
    return msgspec.structs.replace(volume, metadata=meta, spec=spec)


def made_for(claim: PersistentVolumeClaim, node_name: str) -> PersistentVolumeClaim:
    """The claim, asking for a volume to be made for a node."""
    annotations = {**claim.metadata.annotations, SELECTED_NODE: node_name}
    return msgspec.structs.replace(claim, metadata=msgspec.structs.replace(claim.metadata, annotations=annotations))


async def bind_volumes(
    client: ClusterClient, pod: Pod, writes: VolumeWrites, state: ClusterState, *, within: float
) -> None:
    """Return when all claims of the writes are bound; ClientError if that cannot or does not happen."""
    for volume in writes.volumes:
        await client.patch("PersistentVolume", volume.name, _volume_patch(volume))
    for claim in writes.claims:
        await client.patch("PersistentVolumeClaim", claim.name, _claim_patch(claim), namespace=claim.namespace)

    awaited = _awaited(writes)

    def are_bound() -> bool:
        if state.placed(pod) is None:  # deleted or finished meanwhile, and forgotten
            raise ClientError(NOT_FOUND, f'binding volumes: pod does not exist any more: pod "{pod.name}" not found')
        return all(_is_bound(key, writes.node_name, claim, state.objects) for key, claim in awaited.items())

    def claims_and_volumes() -> Iterator[tuple[type[KubeObject], str]]:
        for namespace, name in awaited:
            yield PersistentVolumeClaim, f"{namespace}/{name}"
            claim = state.objects.get(PersistentVolumeClaim, name, namespace)
            if claim is not None and claim.spec.volume_name:
                yield PersistentVolume, claim.spec.volume_name

    if not await client.wait(pod, are_bound, objects=claims_and_volumes, within=within):
        raise ClientError(TIMEOUT, f"binding volumes: timed out waiting for the condition after {within:g}s")


def _volume_patch(volume: PersistentVolume) -> Json:
    """A merge patch that gives a volume to its claim, unless the volume changed meanwhile."""
    reference = volume.spec.claim_ref
    assert reference is not None
    claim = {field: value for field, value in msgspec.structs.asdict(reference).items() if value}
    metadata = {"annotations": volume.metadata.annotations, **_as_it_was(volume)}
    return {"metadata": metadata, "spec": {"claimRef": {"apiVersion": "v1", **claim}}}


def _claim_patch(claim: PersistentVolumeClaim) -> Json:
    """A merge patch that asks for a claim's volume to be made for a node, unless the claim changed meanwhile."""
    return {"metadata": {"annotations": claim.metadata.annotations, **_as_it_was(claim)}}


def _as_it_was(obj: PersistentVolume | PersistentVolumeClaim) -> Json:
    return {"uid": obj.metadata.uid, "resourceVersion": obj.metadata.resource_version}


def _awaited(writes: VolumeWrites) -> dict[tuple[str, str], PersistentVolumeClaim | None]:
    """By namespace and name the claims to be bound; those whose volume is to be made, as they were written."""
    awaited: dict[tuple[str, str], PersistentVolumeClaim | None] = {
        (volume.spec.claim_ref.namespace, volume.spec.claim_ref.name): None
        for volume in writes.volumes
        if volume.spec.claim_ref
    }
    return awaited | {(claim.namespace, claim.name): claim for claim in writes.claims}


def _is_bound(key: tuple[str, str], node_name: str, sent: PersistentVolumeClaim | None, objects: ObjectStore) -> bool:
    namespace, name = key
    claim = objects.get(PersistentVolumeClaim, name, namespace)
    if claim is None:
        raise ClientError(NOT_FOUND, f'binding volumes: persistentvolumeclaim "{name}" not found')
    if claim.spec.volume_name:
        volume = objects.get(PersistentVolume, claim.spec.volume_name)
        return volume is not None and BIND_COMPLETED in claim.metadata.annotations
    if sent is None or claim.metadata.resource_version == sent.metadata.resource_version:
        return False  # the watch has yet to show what was written
    if claim.metadata.annotations.get(SELECTED_NODE) != node_name:
        # The provisioner takes its mark away when it cannot make the volume there: another node must be found.
        raise ClientError(_PROVISIONING_FAILED, f'binding volumes: provisioning failed for PVC "{name}"')
    return False
