"""Binding conditions: devices that take a while to be ready once they are allocated, or that fail to be."""

from __future__ import annotations

from datetime import datetime

from kubesched.api.device_claims import AllocatedDevice, DeviceCondition, ResourceClaim

BINDING_TIMEOUT = "device binding timeout"
BINDING_FAILED = "device binding failed"


class DeviceBindingFailed(Exception):  # noqa: N818 - a driver's word on a device
    """A device of a claim cannot be made ready."""


def must_wait(claim: ResourceClaim) -> bool:
    """Whether a device of the claim has conditions to wait for."""
    allocation = claim.status.allocation
    return allocation is not None and any(device.binding_conditions for device in allocation.devices.results)


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
