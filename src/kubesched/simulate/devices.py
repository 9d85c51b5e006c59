"""Claims in a simulated cluster: what the controller of claims and the drivers of devices would do, at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from kubesched.api.device_claims import (
    AllocatedDeviceStatus,
    DeviceCondition,
    ResourceClaim,
    ResourceClaimStatus,
    ResourceClaimTemplate,
)
from kubesched.api.meta import KubeObject
from kubesched.api.pod import Pod, PodResourceClaimStatus
from kubesched.controllers.volumes import resource_claim
from kubesched.framework.decision import Decision
from kubesched.plugins.dynamic_resources.attempt import NOTES
from kubesched.plugins.dynamic_resources.extended import IN_MEMORY_NAME
from kubesched.plugins.dynamic_resources.writes import ReserveClaim, UnreserveClaim, applied
from kubesched.plugins.shared.devices.answers import ClusterDevices
from kubesched.simulate.volumes import Notify
from kubesched.state.cluster import ClusterState

replace = msgspec.structs.replace

Templates = Mapping[str, ResourceClaimTemplate]
"""By `namespace/name`."""


def templates_in(objects: Iterable[KubeObject]) -> dict[str, ResourceClaimTemplate]:
    return {obj.key: obj for obj in objects if isinstance(obj, ResourceClaimTemplate)}


def made_for(pod: Pod, templates: Templates) -> tuple[Pod, list[ResourceClaim]]:
    """The claims that are made from templates for a pod, and the pod with their names in its status.

    Where a template is missing nothing is made, and the pod waits for it.
    """
    statuses, claims = list(pod.status.resource_claim_statuses), []
    known = {status.name for status in statuses}
    for entry in pod.spec.resource_claims:
        template = templates.get(f"{pod.namespace}/{entry.resource_claim_template_name}")
        if entry.name in known or entry.resource_claim_template_name is None or template is None:
            continue
        made = resource_claim(msgspec.to_builtins(pod), msgspec.to_builtins(entry), msgspec.to_builtins(template))
        claim, name = msgspec.convert(made, ResourceClaim), f"{pod.name}-{entry.name}"
        meta = replace(
            claim.metadata, name=name, generate_name="", namespace=pod.namespace, uid=f"claim/{pod.uid}/{entry.name}"
        )
        claims.append(replace(claim, metadata=meta))
        statuses.append(PodResourceClaimStatus(name=entry.name, resource_claim_name=name))
    if not claims:
        return pod, []
    return replace(pod, status=replace(pod.status, resource_claim_statuses=tuple(statuses))), claims


class DeviceClaims:
    """All claims; the world is given every change."""

    def __init__(self, objects: Iterable[KubeObject], notify: Notify) -> None:
        given = list(objects)
        self._notify = notify
        self._templates = templates_in(given)
        self._claims = {obj.key: obj for obj in given if isinstance(obj, ResourceClaim)}
        self._extended: dict[str, str] = {}
        """By uid of a pod: the name of the claim that was made for its extended resources."""
        self._version = 0

    def pod_created(self, pod: Pod) -> Pod:
        """The pod, with the claims that were made for it."""
        pod, claims = made_for(pod, self._templates)
        for claim in claims:
            self.store(claim)
        return pod

    def pod_gone(self, pod: Pod) -> None:
        """With the pod go the claims that were made for it alone; others that no pod uses give back their devices."""
        for claim in self._claims_of(pod):
            owner = claim.metadata.controller
            if claim.is_reserved_for(pod.uid):
                claim = applied(UnreserveClaim(claim, pod.uid), claim)
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
        named = [entry.resource_claim_name for entry in pod.spec.resource_claims]
        made = [status.resource_claim_name for status in pod.status.resource_claim_statuses]
        names = [*named, *made, self._extended.pop(pod.uid, None)]
        keys = dict.fromkeys(f"{pod.namespace}/{name}" for name in names if name is not None)
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
    """Claims that only this pod uses are as if it had never been placed."""
    extended, others = claims_of(pod, state)
    if extended is not None:
        state.delete(extended)
    for claim in others:
        if all(consumer.uid == pod.uid for consumer in claim.status.reserved_for):
            state.apply(replace(claim, status=ResourceClaimStatus()))


def claims_of(pod: Pod, state: ClusterState) -> tuple[ResourceClaim | None, list[ResourceClaim]]:
    """The claim for the pod's extended resources, if one was made; and all others that it has."""
    ledger = state.companion(ClusterDevices).ledger
    named = [entry.resource_claim_name for entry in pod.spec.resource_claims]
    made = [status.resource_claim_name for status in pod.status.resource_claim_statuses]
    names = dict.fromkeys(name for name in (*named, *made) if name is not None)
    found = [ledger.claim(name, pod.namespace) for name in names]
    return ledger.extended_claim_of(pod), [claim for claim in found if claim is not None]


def settle_claims(decision: Decision, state: ClusterState) -> None:
    """What was set aside for a pod is its own from now on, as if it had been written and the watch had shown it."""
    attempt = decision.cycle.find(NOTES)
    if attempt is None:
        return
    ledger = state.companion(ClusterDevices).ledger
    for index, claim in enumerate(attempt.claims):
        allocation = attempt.allocations.get(index)
        if attempt.is_reserved(claim) or (allocation is None and claim.status.allocation is None):
            continue
        written = applied(ReserveClaim(claim, attempt.consumers[index], allocation, now=""), claim)
        if claim.name == IN_MEMORY_NAME:
            meta = replace(written.metadata, name=f"{decision.pod.name}-extended-resources")
            written = replace(written, metadata=meta)
        state.apply(with_devices_ready(written))
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
