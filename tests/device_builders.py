"""Devices, classes and claims for tests, in as few words as the behaviour at hand needs."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from kubesched.api.device_claims import (
    ALL_DEVICES,
    AllocatedDevice,
    AllocationResult,
    CapacityRequirements,
    ConsumerReference,
    DeviceAllocation,
    DeviceClaim,
    DeviceConstraint,
    DeviceRequest,
    DeviceSubRequest,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimStatus,
)
from kubesched.api.devices import (
    CelSelector,
    Counter,
    CounterConsumption,
    CounterSet,
    Device,
    DeviceAttribute,
    DeviceCapacity,
    DeviceClass,
    DeviceClassSpec,
    DeviceSelector,
    DeviceTaint,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from kubesched.api.meta import ObjectMeta
from kubesched.api.pod import PodResourceClaim
from kubesched.api.quantity import QuantityText
from kubesched.testing import PodBuilder

DRIVER = "gpu.example.com"


def device(
    name: str,
    *,
    capacity: dict[str, DeviceCapacity | QuantityText] | None = None,
    draws: dict[str, QuantityText] | None = None,
    taint: str = "",
    shared: bool = False,
    conditions: tuple[str, ...] = (),
    **attributes: str | int | bool,
) -> Device:
    """A device; it draws from counters of the set "all"."""
    return Device(
        name=name,
        attributes={key: _attribute(value) for key, value in attributes.items()},
        capacity={
            key: value if isinstance(value, DeviceCapacity) else DeviceCapacity(value=value)
            for key, value in (capacity or {}).items()
        },
        consumes_counters=(CounterConsumption(counter_set="all", counters=_counters(draws)),) if draws else (),
        taints=(DeviceTaint(key=taint, effect="NoSchedule"),) if taint else (),
        allow_multiple_allocations=shared,
        binding_conditions=conditions,
        binding_failure_conditions=("broken",) if conditions else (),
    )


def make_slice(
    node: str,
    *devices: Device,
    pool: str = "",
    driver: str = DRIVER,
    name: str = "",
    generation: int = 1,
    of: int = 1,
    **spec: Any,
) -> ResourceSlice:
    """A slice of devices on a node; with an empty name of the node, `spec` says where they are."""
    return ResourceSlice(
        metadata=ObjectMeta(name=name or f"{driver}-{pool or node}"),
        spec=ResourceSliceSpec(
            driver=driver,
            pool=ResourcePool(name=pool or node, generation=generation, resource_slice_count=of),
            node_name=node or None,
            devices=devices,
            **spec,
        ),
    )


def make_counters(node: str, *, of: int = 2, **counters: QuantityText) -> ResourceSlice:
    """The slice with the counters of a node's pool."""
    sets = (CounterSet(name="all", counters=_counters(counters)),)
    return make_slice(node, name=f"counters-{node}", of=of, shared_counters=sets)


def make_class(name: str = "gpu", *expressions: str, resource: str | None = None) -> DeviceClass:
    return DeviceClass(
        metadata=ObjectMeta(name=name),
        spec=DeviceClassSpec(selectors=selectors(*expressions), extended_resource_name=resource),
    )


def selectors(*expressions: str) -> tuple[DeviceSelector, ...]:
    return tuple(DeviceSelector(cel=CelSelector(expression=expression)) for expression in expressions)


def request(
    name: str = "r",
    count: int = 1,
    *expressions: str,
    of: str = "gpu",
    everything: bool = False,
    admin: bool = False,
    tolerates: str = "",
    capacity: dict[str, QuantityText] | None = None,
) -> DeviceRequest:
    exactly = ExactDeviceRequest(
        device_class_name=of,
        count=count,
        selectors=selectors(*expressions),
        allocation_mode=ALL_DEVICES if everything else "ExactCount",
        admin_access=True if admin else None,
        tolerations=(DeviceToleration(key=tolerates, operator="Exists"),) if tolerates else (),
        capacity=CapacityRequirements(requests=capacity) if capacity else None,
    )
    return DeviceRequest(name=name, exactly=exactly)


def first_of(name: str, *alternatives: tuple[str, int, str]) -> DeviceRequest:
    """Alternatives, each with a name, a number of devices and a selector."""
    return DeviceRequest(
        name=name,
        first_available=tuple(
            DeviceSubRequest(name=one, device_class_name="gpu", count=count, selectors=selectors(expression))
            for one, count, expression in alternatives
        ),
    )


def make_claim(name: str, *requests: DeviceRequest, constraints: tuple[DeviceConstraint, ...] = ()) -> ResourceClaim:
    """A claim in the default namespace that nothing was allocated for yet."""
    return ResourceClaim(
        metadata=ObjectMeta(name=name, namespace="default", uid=f"uid-of-{name}"),
        spec=ResourceClaimSpec(devices=DeviceClaim(requests=requests or (request(),), constraints=constraints)),
    )


def allocated(claim: ResourceClaim, *devices: str, reserved_for: str = "", **allocation: Any) -> ResourceClaim:
    """The claim with devices, given as `pool/name`."""
    results = tuple(
        AllocatedDevice(request="r", driver=DRIVER, pool=pool, device=name)
        for pool, name in (text.split("/") for text in devices)
    )
    return ResourceClaim(
        metadata=claim.metadata,
        spec=claim.spec,
        status=ResourceClaimStatus(
            allocation=AllocationResult(devices=DeviceAllocation(results=results), **allocation),
            reserved_for=(ConsumerReference(resource="pods", name="x", uid=reserved_for),) if reserved_for else (),
        ),
    )


def results_changed(claim: ResourceClaim, **changes: Any) -> ResourceClaim:
    """An allocated claim whose devices are held in another way."""
    allocation = claim.status.allocation
    assert allocation is not None
    results = tuple(replace(one, **changes) for one in allocation.devices.results)
    allocation = replace(allocation, devices=replace(allocation.devices, results=results))
    return replace(claim, status=replace(claim.status, allocation=allocation))


def with_claims(pod: PodBuilder, *claims: str) -> PodBuilder:
    """The pod, naming claims."""
    entries = tuple(PodResourceClaim(name=f"claim-{i}", resource_claim_name=name) for i, name in enumerate(claims))
    return pod.spec(resource_claims=entries)


def attribute_is(name: str, value: str | int) -> str:
    """An expression: an attribute of the driver has this value."""
    spelled = str(value) if isinstance(value, int) else f'"{value}"'
    return f'device.attributes["{DRIVER}"].{name} == {spelled}'


def _attribute(value: str | int | bool) -> DeviceAttribute:
    if isinstance(value, bool):
        return DeviceAttribute(bool_value=value)
    return DeviceAttribute(int_value=value) if isinstance(value, int) else DeviceAttribute(string_value=value)


def _counters(amounts: dict[str, QuantityText] | None) -> dict[str, Counter]:
    return {name: Counter(value=value) for name, value in (amounts or {}).items()}
