"""VolumeBinding's advice: create the claims, classes and volumes that are missing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from kubesched.api.meta import ObjectMeta
from kubesched.api.pod import Pod
from kubesched.api.storage import (
    ClaimStatus,
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeSpec,
    StorageClass,
    VolumeResources,
)
from kubesched.api.well_known import BIND_COMPLETED, DEFAULT_STORAGE_CLASS, NO_PROVISIONER
from kubesched.framework.advice import AdvicePlugin, ObjectEdit, RemedyKind, RemedyProposal, created
from kubesched.framework.cycle import Cycle
from kubesched.framework.nodes import Nodes
from kubesched.plugins.shared.volume_claims import claims_used, class_of, is_bound
from kubesched.state.cluster import ClusterState

ANY_PROVISIONER = "provisioner.example.com"


class VolumeAdvice(AdvicePlugin):
    """Proposes the objects without which the pod's claims cannot be bound."""

    def remedies(self, cycle: Cycle, nearest: Nodes, only_here: Nodes) -> Iterator[RemedyProposal]:
        return _missing_objects(cycle.pod, cycle.state)


def _missing_objects(pod: Pod, state: ClusterState) -> Iterator[RemedyProposal]:
    """Claims, classes and volumes that are missing."""
    objects = state.objects
    for use in claims_used(pod):
        claim = objects.get(PersistentVolumeClaim, use.name, pod.namespace)
        if claim is None:
            if not use.is_ephemeral:
                yield from _missing_claim(pod.namespace, use.name, state)
            continue
        if is_bound(claim):
            continue
        class_name = class_of(claim)
        if class_name and objects.get(StorageClass, class_name) is None:
            text = f"Create the StorageClass {class_name}, which the claim {claim.name} asks for"
            edits = (created(_new_class(class_name, state)),)
            yield RemedyProposal(RemedyKind.PROVIDE_VOLUME, text, edits, 1.0, f"class {class_name}")
        size = claim.spec.resources.requests.get("storage")
        text = f"Give the claim {claim.name} a PersistentVolume{f' of {size}' if size else ''}"
        binding = created(_volume_for(claim)), ObjectEdit(claim, _as_bound)
        yield RemedyProposal(RemedyKind.PROVIDE_VOLUME, text, binding, 2.0, f"claim {claim.name}")


def _missing_claim(namespace: str, name: str, state: ClusterState) -> Iterator[RemedyProposal]:
    """The claim, of a class that makes volumes once a pod needs them; else one with a volume of its own."""
    classes = sorted(state.objects.all(StorageClass), key=lambda c: (not _is_default(c), c.name))
    waiting = [c for c in classes if c.volume_binding_mode == "WaitForFirstConsumer"]
    provisioning = [c for c in waiting if c.provisioner != NO_PROVISIONER]
    for place, storage_class in enumerate(provisioning[:3]):
        claim = _claim(namespace, name, storage_class.name)
        text = f"Create the PersistentVolumeClaim {name}, of class {storage_class.name}"
        yield RemedyProposal(RemedyKind.PROVIDE_VOLUME, text, (created(claim),), place / 10, f"claim {name}")
    claim = _claim(namespace, name, "")
    text = f"Create the PersistentVolumeClaim {name}, with a PersistentVolume"
    edits = (created(_as_bound(claim)), created(_volume_for(claim)))
    yield RemedyProposal(RemedyKind.PROVIDE_VOLUME, text, edits, 1.0, f"claim {name}")


def _is_default(storage_class: StorageClass) -> bool:
    return storage_class.metadata.annotations.get(DEFAULT_STORAGE_CLASS) == "true"


def _claim(namespace: str, name: str, class_name: str) -> PersistentVolumeClaim:
    spec = PersistentVolumeClaimSpec(
        access_modes=("ReadWriteOnce",),
        resources=VolumeResources(requests={"storage": "1Gi"}),
        storage_class_name=class_name,
    )
    meta = ObjectMeta(name=name, namespace=namespace, uid=f"claim/{namespace}/{name}")
    return PersistentVolumeClaim(metadata=meta, spec=spec, status=ClaimStatus(phase="Pending"))


def _new_class(name: str, state: ClusterState) -> StorageClass:
    """A class of the provisioner that others have, which makes volumes where they are needed."""
    provisioners = [c.provisioner for c in state.objects.all(StorageClass) if c.provisioner != NO_PROVISIONER]
    return StorageClass(
        metadata=ObjectMeta(name=name, uid=f"class/{name}"),
        provisioner=provisioners[0] if provisioners else ANY_PROVISIONER,
        volume_binding_mode="WaitForFirstConsumer",
    )


def _as_bound(claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
    annotations: dict[str, Any] = {**claim.metadata.annotations, BIND_COMPLETED: "yes"}
    return replace(
        claim,
        metadata=replace(claim.metadata, annotations=annotations),
        spec=replace(claim.spec, volume_name=_volume_name(claim)),
        status=replace(claim.status, phase="Bound"),
    )


def _volume_for(claim: PersistentVolumeClaim) -> PersistentVolume:
    """A volume that every node can reach."""
    spec = claim.spec
    owner = ObjectReference(
        kind="PersistentVolumeClaim", namespace=claim.namespace, name=claim.name, uid=claim.metadata.uid
    )
    return PersistentVolume(
        metadata=ObjectMeta(name=_volume_name(claim), uid=f"volume/{claim.key}"),
        spec=PersistentVolumeSpec(
            capacity=spec.resources.requests,
            access_modes=spec.access_modes,
            storage_class_name=class_of(claim),
            volume_mode=spec.volume_mode,
            claim_ref=owner,
        ),
        status=ClaimStatus(phase="Bound"),
    )


def _volume_name(claim: PersistentVolumeClaim) -> str:
    return f"for-{claim.namespace}-{claim.name}"
