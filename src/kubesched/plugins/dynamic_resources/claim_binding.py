"""Before a pod is bound: its claims are allocated and reserved in the API, and their devices waited for; or undone."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache

import msgspec

from kubesched.api.device_claims import AllocatedDevice, ConsumerReference, DeviceCondition, ResourceClaim
from kubesched.framework.client import NOT_FOUND, TIMEOUT, ClientError, SchedulerMode
from kubesched.framework.plugin import PluginContext
from kubesched.framework.status import Status, error
from kubesched.plugins.dynamic_resources.attempt import ClaimAttempt
from kubesched.plugins.dynamic_resources.extended import IN_MEMORY_NAME
from kubesched.plugins.dynamic_resources.joining import JoinedConsumers
from kubesched.plugins.dynamic_resources.writes import (
    ClaimGoneAnotherWayError,
    DeleteClaim,
    ReserveClaim,
    write_claim,
)
from kubesched.plugins.shared.devices.ledger import Ledger, identity_of

BINDING_TIMEOUT = "device binding timeout"
BINDING_FAILED = "device binding failed"


class DeviceBindingFailed(Exception):  # noqa: N818 - a driver's word on a device
    """A device of a claim cannot be made ready."""


def must_wait(claim: ResourceClaim) -> bool:
    """Whether a device of the claim has conditions to wait for."""
    allocation = claim.status.allocation
    return allocation is not None and allocation.must_wait


def awaited_drivers(claim: ResourceClaim) -> set[str]:
    """The drivers of devices that have conditions to wait for."""
    allocation = claim.status.allocation
    results = () if allocation is None else allocation.devices.results
    return {device.driver for device in results if device.binding_conditions}


def has_all_ready(claim: ResourceClaim) -> bool:
    """Whether all devices of an allocated claim are. Raises DeviceBindingFailed."""
    allocation = claim.status.allocation
    if allocation is None:
        return False
    for device in allocation.devices.results:
        if not device.binding_conditions:
            continue
        conditions = _conditions_of(device, claim)
        if conditions is None:
            return False
        for name in device.binding_failure_conditions:
            failed = conditions.get(name)
            if failed is not None and failed.status == "True":
                raise DeviceBindingFailed(
                    f'{BINDING_FAILED}: claim={claim.name}, reason={failed.reason}, message="{failed.message}"'
                )
        for name in device.binding_conditions:
            if name not in conditions or conditions[name].status != "True":
                return False
    return True


def is_too_late(claim: ResourceClaim, now: float, timeout: float) -> bool:
    """Whether devices of the claim should have been ready by now."""
    allocation = claim.status.allocation
    if allocation is None or allocation.allocation_timestamp is None or not must_wait(claim):
        return False
    return datetime.fromisoformat(allocation.allocation_timestamp).timestamp() + timeout < now


def is_lost(claim: ResourceClaim, now: float, timeout: float) -> bool:
    """Whether it makes no sense to wait for the devices any longer."""
    try:
        return not has_all_ready(claim) and is_too_late(claim, now, timeout)
    except DeviceBindingFailed:
        return True


def _conditions_of(device: AllocatedDevice, claim: ResourceClaim) -> dict[str, DeviceCondition] | None:
    for status in claim.status.devices:
        if (status.driver, status.pool, status.device) == device.id:
            return {condition.type: condition for condition in status.conditions or ()}
    return None


_CREATED_CLAIMS = "scheduler_resourceclaim_creates_total"
_CREATED_CLAIMS_BY_OWNER = "dynamic_resource_allocation_resourceclaim_creates_total"
_AWAITED_DEVICES = "scheduler_dra_bindingconditions_allocations_total"
_AWAITED_SECONDS = "scheduler_dra_bindingconditions_wait_duration_seconds"

_DEVICE_FAILED = "DeviceBindingFailed"
_METRIC_RESULTS = {TIMEOUT: "timeout", _DEVICE_FAILED: "failure"}


@dataclass(frozen=True)
class ClaimBinding:
    """Writes the claims of one attempt."""

    attempt: ClaimAttempt
    ledger: Ledger
    consumers: JoinedConsumers
    context: PluginContext

    async def bind(self) -> None:
        """All claims of the pod are allocated and reserved. ClientError, or ClaimGoneAnotherWayError."""
        for index, claim in enumerate(self.attempt.claims):
            if not self.attempt.is_reserved(claim):
                # A pod that gives way to another is not stopped in the middle of a write, whose devices would be given
                # to others though the claim may have them.
                await self.context.handle.to_the_end(self._bind_in_turn(index))

    async def wait_for_devices(self, node_name: str, timeout: float) -> None:
        """Return when all devices are ready; ClientError if they are not in time, or will not be."""
        attempt, now = self.attempt, self.context.now
        if not any(map(must_wait, attempt.claims)):
            return
        note = f"waiting for binding conditions for device on node {node_name}"
        self.context.client.record_event(
            attempt.pod, related=None, type="Normal", reason="BindingConditionsPending", action="Scheduling", note=note
        )
        started = now()
        try:
            is_ready = lambda: self._are_ready(timeout)  # noqa: E731
            claims = [(ResourceClaim, claim.key) for claim in attempt.claims]
            if not await self.context.client.wait(attempt.pod, is_ready, objects=lambda: claims, within=timeout):
                raise ClientError(TIMEOUT, f"{BINDING_TIMEOUT}: context deadline exceeded")
        except ClientError as failure:
            self._count_wait(now() - started, _METRIC_RESULTS.get(failure.reason, "error"))
            raise
        self._count_wait(now() - started, "success")

    def _count_wait(self, seconds: float, result: str) -> None:
        profile, handle = self.attempt.pod.spec.scheduler_name, self.context.handle
        for driver in sorted({driver for claim in self.attempt.claims for driver in awaited_drivers(claim)}):
            handle.count(_AWAITED_DEVICES, profile, driver, result)
            handle.measure(_AWAITED_SECONDS, seconds, profile, driver, result)

    async def undo(self) -> Status | None:
        """Write what is due because the attempt failed. If that fails too, the next attempt comes here again."""
        attempt, failed = self.attempt, []
        writes, attempt.writes = attempt.writes, []
        for write in writes:
            try:
                await write_claim(self.context.client, write)
            except (ClientError, ClaimGoneAnotherWayError) as failure:
                failed.append(f"claim {write.claim.key}: {failure}")
                continue
            if isinstance(write, DeleteClaim):
                self.ledger.forget(write.claim)
        return error(*failed) if failed else None

    # -- one claim ----------------------------------------------------------------------------------------------------

    async def _bind_in_turn(self, index: int) -> None:
        """Pods that share a claim would all but one have written to what is outdated; the first writes for all."""
        attempt = self.attempt
        claim, allocation = identity_of(attempt.claims[index]), attempt.allocations.get(index)
        with self.consumers.joined(claim, allocation, attempt.consumers[index]) as beside:
            async with self.context.handle.turn(claim):
                await self._bind(index, beside)

    async def _bind(self, index: int, beside: Collection[ConsumerReference]) -> None:
        attempt = self.attempt
        pod, claim, allocation = attempt.pod, attempt.claims[index], attempt.allocations.get(index)
        is_extended = claim is attempt.extended_claim
        if is_extended and allocation is None:
            return  # a device plugin of the node serves the pod
        set_aside = claim
        try:
            if is_extended and claim.name == IN_MEMORY_NAME:
                claim = attempt.claims[index] = await self._create(claim)
            is_shared = self.context.handle.mode is SchedulerMode.BATCHED or pod.spec.scheduling_group is not None
            write = ReserveClaim(claim, attempt.consumers[index], allocation, self._timestamp(), is_shared, beside)
            written = self._find_written(write) or await self._write(write)
        finally:
            if allocation is not None:
                del attempt.allocations[index]  # it is released once, for other pods may count on it too
                self.ledger.release(set_aside)
        if is_extended:
            await self._name_in_pod(written)
        attempt.claims[index] = written

    def _find_written(self, write: ReserveClaim) -> ResourceClaim | None:
        """The claim, if another pod that shares it has written just what is to be written."""
        claim = self.ledger.claim(write.claim.name, write.claim.namespace) if write.is_shared else None
        if claim is None or not claim.is_reserved_for(write.consumer.uid):
            return None
        allocation, expected = claim.status.allocation, write.allocation
        is_same = allocation is not None and (expected is None or allocation.devices == expected.devices)
        return claim if is_same and claim.metadata.uid == write.claim.metadata.uid else None

    async def _write(self, write: ReserveClaim) -> ResourceClaim:
        fields = "allocation and reservation" if write.allocation is not None else "reservation"
        try:
            claim = self.ledger.claim(write.claim.name, write.claim.namespace)
            written = await write_claim(self.context.client, write, claim or write.claim)
        except ClientError as failure:
            raise ClientError(failure.reason, f"add {fields} to claim {write.claim.key}: {failure}") from failure
        assert written is not None
        self.ledger.assume(written)
        return written

    def _timestamp(self) -> str:
        """When the devices began to be made ready; only that feature asks."""
        if not self.context.features.device_binding_conditions:
            return ""
        return _timestamp_text(int(self.context.now()))

    async def _create(self, claim: ResourceClaim) -> ResourceClaim:
        nameless = msgspec.structs.replace(claim, metadata=msgspec.structs.replace(claim.metadata, name="", uid=""))
        result = "failure"
        try:
            created = await self.context.client.create("ResourceClaim", msgspec.to_builtins(nameless))
            result = "success"
        except ClientError as failure:
            message = f"create claim for extended resources {claim.key}: {failure}"
            raise ClientError(failure.reason, message) from failure
        finally:
            if self.context.features.release.claims_by_owner:
                self.context.handle.count(_CREATED_CLAIMS_BY_OWNER, result, "false", "", "Pod")
            else:
                self.context.handle.count(_CREATED_CLAIMS, result)
        return msgspec.convert(created, ResourceClaim)

    async def _name_in_pod(self, claim: ResourceClaim) -> None:
        """Write into the pod's status which claim serves its extended resources, and how."""
        pod, mappings = self.attempt.pod, self.attempt.mappings
        if not mappings:
            # As in kube-scheduler, where a pod with claims of its own cannot use the device plugin of a node for a
            # resource that a class serves as well.
            message = f"nil or empty request mappings, no update of pod {pod.key} ExtendedResourceClaimStatus"
            raise ClientError("Invalid", message)
        served = {"resourceClaimName": claim.name, "requestMappings": msgspec.to_builtins(mappings)}
        patch = {"metadata": {"uid": pod.uid}, "status": {"extendedResourceClaimStatus": served}}
        try:
            await self.context.client.patch("Pod", pod.name, patch, namespace=pod.namespace, subresource="status")
        except ClientError as failure:
            message = f"update pod {pod.key} ExtendedResourceClaimStatus: {failure}"
            raise ClientError(failure.reason, message) from failure

    def _are_ready(self, timeout: float) -> bool:
        """Whether all devices are ready. ClientError if they will not be."""
        attempt = self.attempt
        for index, claim_before in enumerate(attempt.claims):
            claim = self.ledger.claim(claim_before.name, claim_before.namespace)
            if claim is None:
                raise ClientError(NOT_FOUND, f'could not find ResourceClaim "{claim_before.key}"')
            attempt.claims[index] = claim
            try:
                if has_all_ready(claim):
                    continue
            except DeviceBindingFailed as failure:
                raise ClientError(_DEVICE_FAILED, str(failure)) from failure
            if is_too_late(claim, self.context.now(), timeout):
                raise ClientError(TIMEOUT, f"{BINDING_TIMEOUT}: claim={claim.name}")
            return False
        return True


@lru_cache(maxsize=1)
def _timestamp_text(second: int) -> str:
    """A time as the API has it. Many claims are written within one second, and the text is dear to make."""
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
