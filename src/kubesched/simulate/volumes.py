"""Claims and volumes in a simulated cluster: what the controllers and drivers of storage would do, at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from kubesched.api.kinds import Object
from kubesched.api.meta import KubeObject, ObjectMeta, Record
from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.api.storage import (
    ClaimStatus,
    CSINode,
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from kubesched.api.well_known import BIND_COMPLETED, NO_PROVISIONER, SELECTED_NODE
from kubesched.controllers.volumes import best_volume, class_of, ephemeral_claim, is_claimed_by, provisioned_volume
from kubesched.framework.client import NOT_FOUND, ClientError
from kubesched.simulate.admission import admitted_claim

replace = msgspec.structs.replace

BOUND = ClaimStatus(phase="Bound")

Notify = Callable[[KubeObject | None, KubeObject | None], None]
"""Called with an object before and after a change."""


class SimulatedVolumes:
    """All claims and volumes; the world is given every change."""

    def __init__(self, objects: Iterable[KubeObject], notify: Notify) -> None:
        self._notify = notify
        self._version = 0
        self._claims: dict[str, PersistentVolumeClaim] = {}
        self._volumes: dict[str, PersistentVolume] = {}
        self._classes: dict[str, StorageClass] = {}
        self._nodes: dict[str, Node] = {}
        self._csi_nodes: dict[str, CSINode] = {}
        for obj in objects:
            self.learn(obj)

    def learn(self, obj: KubeObject) -> None:
        """An object that is there; those of other kinds do not matter."""
        match obj:
            case PersistentVolumeClaim():
                self._claims[obj.key] = obj
            case PersistentVolume():
                self._volumes[obj.name] = obj
            case StorageClass():
                self._classes[obj.name] = obj
            case Node():
                self._nodes[obj.name] = obj
            case CSINode():
                self._csi_nodes[obj.name] = obj

    def objects(self) -> list[KubeObject]:
        """All claims and volumes as they are now."""
        return [*self._volumes.values(), *self._claims.values()]

    def settle(self) -> None:
        """Claims of classes that do not wait for a pod get their volume now."""
        for claim in list(self._claims.values()):
            self._bind_at_once(claim)

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
        self._notify(obj, None)

    def pod_created(self, pod: Pod) -> None:
        """Ephemeral volumes get a claim that belongs to the pod."""
        for volume in pod.spec.volumes:
            name = f"{pod.namespace}/{pod.name}-{volume.name}"
            if volume.ephemeral is None or volume.ephemeral.volume_claim_template is None or name in self._claims:
                continue
            claim = msgspec.convert(ephemeral_claim(_plain(pod), _plain(volume)), PersistentVolumeClaim)
            meta = replace(claim.metadata, namespace=pod.namespace, uid=f"claim/{pod.uid}/{volume.name}")
            made = admitted_claim(replace(claim, metadata=meta), self._classes.values())
            self._store_claim(made)
            self._bind_at_once(made)

    def pod_gone(self, pod: Pod) -> None:
        """With the pod go the claims that were made for it alone, and their volumes."""
        for volume in pod.spec.volumes:
            if volume.ephemeral is None:
                continue
            claim = self._claims.pop(f"{pod.namespace}/{pod.name}-{volume.name}", None)
            if claim is None:
                continue
            self._notify(claim, None)
            held = self._volumes.pop(claim.spec.volume_name, None)
            if held is not None:
                self._notify(held, None)

    def _bind_at_once(self, claim: PersistentVolumeClaim) -> None:
        """A claim that need not wait for a pod gets the best volume that is there, or one that is made for it."""
        if claim.spec.volume_name:
            return
        wanted = _plain(claim)
        storage_class = self._classes.get(class_of(wanted))
        if storage_class is not None and storage_class.volume_binding_mode == "WaitForFirstConsumer":
            return
        free = (volume for volume in self._volumes.values() if volume.status.phase != "Bound")
        volumes = [_plain(volume) for volume in free]
        reserved = next((volume for volume in volumes if is_claimed_by(volume, wanted)), None)
        found = reserved or best_volume(wanted, volumes)
        if found is not None:
            self._bind(claim, self._volumes[found["metadata"]["name"]])
        elif storage_class is not None and storage_class.provisioner != NO_PROVISIONER:
            self._provision(claim)

    def _provision(self, claim: PersistentVolumeClaim) -> None:
        wanted, node_name = _plain(claim), claim.metadata.annotations.get(SELECTED_NODE, "")
        storage_class = self._classes.get(class_of(wanted), StorageClass())
        node, csi_node = self._nodes.get(node_name), self._csi_nodes.get(node_name)
        made = provisioned_volume(
            wanted,
            _plain(storage_class),
            None if node is None else _plain(node),
            None if csi_node is None else _plain(csi_node),
        )
        if made is not None:
            made["metadata"]["name"] = f"pvc-{claim.namespace}-{claim.name}"
            self._bind(claim, msgspec.convert(made, PersistentVolume))

    def _bind(self, claim: PersistentVolumeClaim, volume: PersistentVolume) -> None:
        reference = ObjectReference(
            kind="PersistentVolumeClaim", namespace=claim.namespace, name=claim.name, uid=claim.metadata.uid
        )
        spec = replace(volume.spec, claim_ref=reference)
        self._store_volume(replace(volume, spec=spec, status=replace(volume.status, phase="Bound")))
        annotations = {**claim.metadata.annotations, BIND_COMPLETED: "yes"}
        bound_claim = replace(
            claim,
            metadata=replace(claim.metadata, annotations=annotations),
            spec=replace(claim.spec, volume_name=volume.name),
            status=BOUND,
        )
        self._store_claim(bound_claim)

    def _store_volume(self, volume: PersistentVolume) -> None:
        volume = replace(volume, metadata=self._next_version(volume.metadata))
        self._notify(self._volumes.get(volume.name), volume)
        self._volumes[volume.name] = volume

    def _store_claim(self, claim: PersistentVolumeClaim) -> None:
        claim = replace(claim, metadata=self._next_version(claim.metadata))
        self._notify(self._claims.get(claim.key), claim)
        self._claims[claim.key] = claim

    def _next_version(self, metadata: ObjectMeta) -> ObjectMeta:
        """By another version VolumeBinding sees that what it assumed of an object has come true."""
        self._version += 1
        return replace(metadata, resource_version=f"{metadata.resource_version.partition('.')[0]}.{self._version}")


def _plain(record: Record) -> Object:
    """As JSON, with what every stored object has."""
    plain: Object = msgspec.to_builtins(record)
    return {**plain, "metadata": {"uid": "", **plain.get("metadata", {})}, "spec": plain.get("spec", {})}
