"""Claims in a simulated cluster: does at once what the controllers and drivers of storage and devices would do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import msgspec
from msgspec.structs import replace

from kubesched.api.device_claims import (
    AllocatedDeviceStatus,
    DeviceCondition,
    ResourceClaim,
    ResourceClaimStatus,
    ResourceClaimTemplate,
)
from kubesched.api.kinds import Object
from kubesched.api.meta import KubeObject, ObjectMeta, Record
from kubesched.api.node import Node
from kubesched.api.pod import Pod, PodResourceClaimStatus
from kubesched.api.storage import (
    ClaimStatus,
    CSINode,
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from kubesched.api.well_known import BIND_COMPLETED, NO_PROVISIONER, SELECTED_NODE
from kubesched.controllers.volumes import (
    best_volume,
    class_of,
    ephemeral_claim,
    is_claimed_by,
    provisioned_volume,
    resource_claim,
)
from kubesched.framework.client import NOT_FOUND, ClientError
from kubesched.framework.decision import Decision
from kubesched.plugins.dynamic_resources.attempt import NOTES
from kubesched.plugins.dynamic_resources.extended import IN_MEMORY_NAME
from kubesched.plugins.dynamic_resources.writes import ReserveClaim, UnreserveClaim, apply_to_claim
from kubesched.plugins.shared.devices.answers import ClusterDevices
from kubesched.plugins.shared.devices.ledger import resource_claim_names
from kubesched.simulate.admission import admitted_claim
from kubesched.state.cluster import ClusterState

BOUND = ClaimStatus(phase="Bound")

Notify = Callable[[KubeObject | None, KubeObject | None], None]
"""Called with an object before and after a change."""
Templates = Mapping[str, ResourceClaimTemplate]
"""By `namespace/name`."""


class SimulatedVolumes:
    """PersistentVolumeClaims and PersistentVolumes; `notify` gets every change of one."""

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
        stored = self._volumes if isinstance(obj, PersistentVolume) else self._claims
        del stored[obj.key]
        self._notify(obj, None)

    def pod_created(self, pod: Pod) -> None:
        """Ephemeral volumes get a claim that belongs to the pod."""
        for volume in pod.spec.volumes:
            name = f"{pod.namespace}/{pod.name}-{volume.name}"
            if volume.ephemeral is None or volume.ephemeral.volume_claim_template is None or name in self._claims:
                continue
            claim = msgspec.convert(ephemeral_claim(_plain(pod), _plain(volume)), PersistentVolumeClaim)
            meta = replace(claim.metadata, namespace=pod.namespace, uid=f"claim/{pod.uid}/{volume.name}")
            claim = admitted_claim(replace(claim, metadata=meta), self._classes.values())
            self._store_claim(claim)
            self._bind_at_once(claim)

    def pod_gone(self, pod: Pod) -> None:
        """With the pod go the claims that were made for it alone, and their volumes."""
        for volume in pod.spec.volumes:
            if volume.ephemeral is None:
                continue
            claim = self._claims.pop(f"{pod.namespace}/{pod.name}-{volume.name}", None)
            if claim is None:
                continue
            self._notify(claim, None)
            own_volume = self._volumes.pop(claim.spec.volume_name, None)
            if own_volume is not None:
                self._notify(own_volume, None)

    def _bind_at_once(self, claim: PersistentVolumeClaim) -> None:
        """A claim that need not wait for a pod gets the best volume that is there, or one that is made for it."""
        if claim.spec.volume_name:
            return
        plain_claim = _plain(claim)
        storage_class = self._classes.get(class_of(plain_claim))
        if storage_class is not None and storage_class.volume_binding_mode == "WaitForFirstConsumer":
            return
        free = (volume for volume in self._volumes.values() if volume.status.phase != "Bound")
        volumes = [_plain(volume) for volume in free]
        reserved = next((volume for volume in volumes if is_claimed_by(volume, plain_claim)), None)
        best = reserved or best_volume(plain_claim, volumes)
        if best is not None:
            self._bind(claim, self._volumes[best["metadata"]["name"]])
        elif storage_class is not None and storage_class.provisioner != NO_PROVISIONER:
            self._provision(claim)

    def _provision(self, claim: PersistentVolumeClaim) -> None:
        plain_claim, node_name = _plain(claim), claim.metadata.annotations.get(SELECTED_NODE, "")
        storage_class = self._classes.get(class_of(plain_claim), StorageClass())
        node, csi_node = self._nodes.get(node_name), self._csi_nodes.get(node_name)
        volume = provisioned_volume(
            plain_claim,
            _plain(storage_class),
            None if node is None else _plain(node),
            None if csi_node is None else _plain(csi_node),
        )
        if volume is not None:
            volume["metadata"]["name"] = f"pvc-{claim.namespace}-{claim.name}"
            self._bind(claim, msgspec.convert(volume, PersistentVolume))

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
        """A higher resourceVersion: by it VolumeBinding sees that its assumed claim or volume was written."""
        self._version += 1
        return replace(metadata, resource_version=f"{metadata.resource_version.partition('.')[0]}.{self._version}")


def _plain(record: Record) -> Object:
    """As JSON, with what every stored object has."""
    plain: Object = msgspec.to_builtins(record)
    return {**plain, "metadata": {"uid": "", **plain.get("metadata", {})}, "spec": plain.get("spec", {})}


def templates_in(objects: Iterable[KubeObject]) -> dict[str, ResourceClaimTemplate]:
    return {obj.key: obj for obj in objects if isinstance(obj, ResourceClaimTemplate)}


def claims_made_for(pod: Pod, templates: Templates) -> tuple[Pod, list[ResourceClaim]]:
    """The claims that are made from templates for a pod, and the pod with their names in its status.

    Where a template is missing nothing is made, and the pod waits for it.
    """
    statuses, claims = list(pod.status.resource_claim_statuses), []
    names = {status.name for status in statuses}
    for entry in pod.spec.resource_claims:
        template = templates.get(f"{pod.namespace}/{entry.resource_claim_template_name}")
        if entry.name in names or entry.resource_claim_template_name is None or template is None:
            continue
        plain = resource_claim(msgspec.to_builtins(pod), msgspec.to_builtins(entry), msgspec.to_builtins(template))
        claim, name = msgspec.convert(plain, ResourceClaim), f"{pod.name}-{entry.name}"
        meta = replace(
            claim.metadata, name=name, generate_name="", namespace=pod.namespace, uid=f"claim/{pod.uid}/{entry.name}"
        )
        claims.append(replace(claim, metadata=meta))
        statuses.append(PodResourceClaimStatus(name=entry.name, resource_claim_name=name))
    if not claims:
        return pod, []
    return replace(pod, status=replace(pod.status, resource_claim_statuses=tuple(statuses))), claims


class DeviceClaims:
    """ResourceClaims; `notify` gets every change of one."""

    def __init__(self, objects: Iterable[KubeObject], notify: Notify) -> None:
        objects = list(objects)
        self._notify = notify
        self._templates = templates_in(objects)
        self._claims = {obj.key: obj for obj in objects if isinstance(obj, ResourceClaim)}
        self._extended: dict[str, str] = {}
        """By uid of a pod: the name of the claim that was made for its extended resources."""
        self._version = 0

    def pod_created(self, pod: Pod) -> Pod:
        """The pod, with the claims that were made for it."""
        pod, claims = claims_made_for(pod, self._templates)
        for claim in claims:
            self.store(claim)
        return pod

    def pod_gone(self, pod: Pod) -> None:
        """With the pod go the claims that were made for it alone; others that no pod uses give back their devices."""
        for claim in self._claims_of(pod):
            owner = claim.metadata.controller
            if claim.is_reserved_for(pod.uid):
                claim = apply_to_claim(UnreserveClaim(claim, pod.uid), claim)
                if not claim.status.reserved_for:
                    claim = replace(claim, status=ResourceClaimStatus())
                self.store(claim)
            if owner is not None and owner.uid == pod.uid:
                self.delete(claim)

    def find(self, key: str) -> ResourceClaim | None:
        return self._claims.get(key)

    def objects(self) -> list[ResourceClaim]:
        """All claims as they are now."""
        return list(self._claims.values())

    def create(self, claim: ResourceClaim) -> ResourceClaim:
        """A claim for the extended resources of a pod, which gets its name here."""
        self._version += 1
        name = claim.name or f"{claim.metadata.generate_name}{self._version}"
        meta = replace(claim.metadata, name=name, uid=f"claim/{claim.namespace}/{name}")
        self._extended.update((owner.uid, name) for owner in meta.owner_references)
        return self.store(replace(claim, metadata=meta))

    def _claims_of(self, pod: Pod) -> list[ResourceClaim]:
        """Claims that the pod names, that were made for it from templates, and the one for its extended resources."""
        names = dict.fromkeys((*resource_claim_names(pod), self._extended.pop(pod.uid, "")))
        keys = (f"{pod.namespace}/{name}" for name in names)
        return [self._claims[key] for key in keys if key in self._claims]

    def store(self, claim: ResourceClaim) -> ResourceClaim:
        """The claim as it is now: devices that take a while to be ready are ready at once."""
        self._version += 1
        claim = with_devices_ready(claim)
        claim = replace(claim, metadata=replace(claim.metadata, resource_version=str(self._version)))
        before = self._claims.get(claim.key)
        self._claims[claim.key] = claim
        self._notify(before, claim)
        return claim

    def delete(self, claim: ResourceClaim) -> None:
        self._notify(self._claims.pop(claim.key), None)


def release_claims(pod: Pod, state: ClusterState) -> None:
    """Deallocate the claims that only this pod uses."""
    extended, others = claims_of(pod, state)
    if extended is not None:
        state.delete(extended)
    for claim in others:
        if all(consumer.uid == pod.uid for consumer in claim.status.reserved_for):
            state.apply(replace(claim, status=ResourceClaimStatus()))


def claims_of(pod: Pod, state: ClusterState) -> tuple[ResourceClaim | None, list[ResourceClaim]]:
    """The claim for the pod's extended resources, if one was made; and all others that it has."""
    ledger = state.companion(ClusterDevices).ledger
    claims = [ledger.claim(name, pod.namespace) for name in resource_claim_names(pod)]
    return ledger.extended_claim_of(pod), [claim for claim in claims if claim is not None]


def settle_claims(decision: Decision, state: ClusterState) -> None:
    """Store what Reserve assumed of the pod's claims, as if it had been written and the watch had shown it."""
    attempt = decision.cycle.find(NOTES)
    if attempt is None:
        return
    ledger = state.companion(ClusterDevices).ledger
    for index, claim in enumerate(attempt.claims):
        allocation = attempt.allocations.get(index)
        if attempt.is_reserved(claim) or (allocation is None and claim.status.allocation is None):
            continue
        bound = apply_to_claim(ReserveClaim(claim, attempt.consumers[index], allocation, now=""), claim)
        if claim.name == IN_MEMORY_NAME:
            meta = replace(bound.metadata, name=f"{decision.pod.name}-extended-resources")
            bound = replace(bound, metadata=meta)
        state.apply(with_devices_ready(bound))
        ledger.refresh()
        if allocation is not None:
            ledger.release(claim)


def with_devices_ready(claim: ResourceClaim) -> ResourceClaim:
    """The claim, with a driver's word that all conditions of its devices are met."""
    allocation = claim.status.allocation
    if allocation is None:
        return claim
    ready = tuple(
        AllocatedDeviceStatus(
            driver=device.driver,
            pool=device.pool,
            device=device.device,
            conditions=tuple(DeviceCondition(type=name, status="True") for name in device.binding_conditions),
        )
        for device in allocation.devices.results
        if device.binding_conditions
    )
    return replace(claim, status=replace(claim.status, devices=ready)) if ready else claim
