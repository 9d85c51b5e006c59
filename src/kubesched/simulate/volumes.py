"""Claims and volumes in a simulated cluster: what the controllers and drivers of storage would do, at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from kubesched.api.meta import KubeObject, ObjectMeta, OwnerReference
from kubesched.api.pod import Pod
from kubesched.api.storage import (
    ClaimStatus,
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeSpec,
    StorageClass,
)
from kubesched.api.well_known import BIND_COMPLETED, NO_PROVISIONER, SELECTED_NODE
from kubesched.framework.client import NOT_FOUND, ClientError
from kubesched.simulate.admission import admitted_claim

replace = msgspec.structs.replace

BOUND = ClaimStatus(phase="Bound")

Tell = Callable[[KubeObject | None, KubeObject | None], None]
"""Called with an object before and after a change."""


class Volumes:
    """All claims and volumes; every change is told."""

    def __init__(self, objects: Iterable[KubeObject], tell: Tell) -> None:
        self._tell = tell
        self._claims: dict[str, PersistentVolumeClaim] = {}
        self._volumes: dict[str, PersistentVolume] = {}
        self._classes: dict[str, StorageClass] = {}
        for obj in objects:
            match obj:
                case PersistentVolumeClaim():
                    self._claims[obj.key] = obj
                case PersistentVolume():
                    self._volumes[obj.name] = obj
                case StorageClass():
                    self._classes[obj.name] = obj

    def settle(self) -> None:
        """Claims of classes that do not wait for a pod get their volume now."""
        for claim in list(self._claims.values()):
            self._provision_at_once(claim)

    def find(self, kind: str, key: str) -> PersistentVolume | PersistentVolumeClaim | None:
        return self._volumes.get(key) if kind == "PersistentVolume" else self._claims.get(key)

    def volume_changed(self, volume: PersistentVolume) -> None:
        """A volume that was given to a claim is bound to it."""
        reference = volume.spec.claim_ref
        if reference is None:
            self._store_volume(volume)
            return
        claim = self._claims.get(f"{reference.namespace}/{reference.name}")
        if claim is None:
            raise ClientError(NOT_FOUND, f'persistentvolumeclaims "{reference.name}" not found')
        self._bind(claim, volume)

    def claim_changed(self, claim: PersistentVolumeClaim) -> None:
        """A claim that names a node for its volume gets one."""
        if claim.metadata.annotations.get(SELECTED_NODE) and not claim.spec.volume_name:
            self._provision(claim)
        else:
            self._store_claim(claim)

    def delete(self, obj: PersistentVolume | PersistentVolumeClaim) -> None:
        held = self._volumes if isinstance(obj, PersistentVolume) else self._claims
        del held[obj.key]
        self._tell(obj, None)

    def pod_created(self, pod: Pod) -> None:
        """Ephemeral volumes get a claim that belongs to the pod."""
        for volume in pod.spec.volumes:
            template = volume.ephemeral.volume_claim_template if volume.ephemeral else None
            name = f"{pod.name}-{volume.name}"
            if template is None or f"{pod.namespace}/{name}" in self._claims:
                continue
            owner = OwnerReference(api_version="v1", kind="Pod", name=pod.name, uid=pod.uid, controller=True)
            meta = ObjectMeta(
                name=name,
                namespace=pod.namespace,
                uid=f"claim/{pod.uid}/{volume.name}",
                labels=template.metadata.labels,
                owner_references=(owner,),
            )
            claim = PersistentVolumeClaim(metadata=meta, spec=template.spec)
            made = admitted_claim(claim, self._classes.values())
            self._store_claim(made)
            self._provision_at_once(made)

    def pod_gone(self, pod: Pod) -> None:
        """With the pod go the claims that were made for it alone, and their volumes."""
        for volume in pod.spec.volumes:
            if volume.ephemeral is None:
                continue
            claim = self._claims.pop(f"{pod.namespace}/{pod.name}-{volume.name}", None)
            if claim is None:
                continue
            self._tell(claim, None)
            held = self._volumes.pop(claim.spec.volume_name, None)
            if held is not None:
                self._tell(held, None)

    def _provision_at_once(self, claim: PersistentVolumeClaim) -> None:
        found = self._classes.get(claim.spec.storage_class_name or "")
        if found is None or found.volume_binding_mode != "Immediate" or claim.spec.volume_name:
            return
        if found.provisioner != NO_PROVISIONER:
            self._provision(claim)

    def _provision(self, claim: PersistentVolumeClaim) -> None:
        reference = ObjectReference(
            kind="PersistentVolumeClaim", namespace=claim.namespace, name=claim.name, uid=claim.metadata.uid
        )
        spec = PersistentVolumeSpec(
            capacity=claim.spec.resources.requests,
            access_modes=claim.spec.access_modes,
            storage_class_name=claim.spec.storage_class_name or "",
            volume_mode=claim.spec.volume_mode,
            claim_ref=reference,
        )
        self._bind(claim, PersistentVolume(metadata=ObjectMeta(name=f"pvc-{claim.namespace}-{claim.name}"), spec=spec))

    def _bind(self, claim: PersistentVolumeClaim, volume: PersistentVolume) -> None:
        self._store_volume(replace(volume, status=replace(volume.status, phase="Bound")))
        annotations = {**claim.metadata.annotations, BIND_COMPLETED: "yes"}
        bound_claim = replace(
            claim,
            metadata=replace(claim.metadata, annotations=annotations),
            spec=replace(claim.spec, volume_name=volume.name),
            status=BOUND,
        )
        self._store_claim(bound_claim)

    def _store_volume(self, volume: PersistentVolume) -> None:
        self._tell(self._volumes.get(volume.name), volume)
        self._volumes[volume.name] = volume

    def _store_claim(self, claim: PersistentVolumeClaim) -> None:
        self._tell(self._claims.get(claim.key), claim)
        self._claims[claim.key] = claim
