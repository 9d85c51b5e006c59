"""What must be written to the API so that a pod's claims get their volumes: the record that pre_bind works from."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from kubesched.api.storage import ObjectReference, PersistentVolume, PersistentVolumeClaim
from kubesched.state.facts import StateKey

SELECTED_NODE = "volume.kubernetes.io/selected-node"
"""On a claim: the node for which its volume is to be made."""

_BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
"""On a volume: that nobody had promised it to the claim beforehand."""


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
        meta = msgspec.structs.replace(meta, annotations={_BOUND_BY_CONTROLLER: "yes", **meta.annotations})
    owner = ObjectReference(
        kind="PersistentVolumeClaim", namespace=claim.namespace, name=claim.name, uid=claim.metadata.uid
    )
    spec = msgspec.structs.replace(volume.spec, claim_ref=owner)
    return msgspec.structs.replace(volume, metadata=meta, spec=spec)


def made_for(claim: PersistentVolumeClaim, node_name: str) -> PersistentVolumeClaim:
    """The claim, asking for a volume to be made for a node."""
    annotations = {**claim.metadata.annotations, SELECTED_NODE: node_name}
    return msgspec.structs.replace(claim, metadata=msgspec.structs.replace(claim.metadata, annotations=annotations))
