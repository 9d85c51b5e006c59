"""ResourceClaims: what devices are asked for, and which were allocated."""

from __future__ import annotations

from typing import Any

from msgspec import field

from kubesched.api.affinity import NodeSelector
from kubesched.api.devices import Configuration, DeviceSelector
from kubesched.api.meta import KubeObject, ObjectMeta, Record
from kubesched.api.quantity import QuantityText

EXACT_COUNT = "ExactCount"
ALL_DEVICES = "All"

EXTENDED_RESOURCE_CLAIM = "resource.kubernetes.io/extended-resource-claim"
"""On a claim that a scheduler made for the extended resources of a pod: the annotation that says so."""

FINALIZER = "resource.kubernetes.io/delete-protection"
"""Keeps an allocated claim from being deleted while a pod may use it."""


class DeviceToleration(Record, frozen=True):
    """A taint that a request accepts. For how long makes no difference to scheduling."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class CapacityRequirements(Record, frozen=True):
    """How much of its capacities a device must still have."""

    requests: dict[str, QuantityText] = {}


class DeviceDemand(Record, frozen=True):
    """A number of devices of a class, or all there are."""

    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = EXACT_COUNT
    count: int = 1
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None
    derived_attributes: tuple[Configuration, ...] = ()


class ExactDeviceRequest(DeviceDemand, frozen=True):
    """The one demand of a request."""

    admin_access: bool | None = None


class DeviceSubRequest(DeviceDemand, frozen=True):
    """One of several alternatives."""

    name: str = ""


class DeviceRequest(Record, frozen=True):
    """A request of a claim: either exactly this, or the first alternative that is available."""

    name: str = ""
    exactly: ExactDeviceRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] = ()


class DeviceConstraint(Record, frozen=True):
    """Devices of some requests, or of all, must have an attribute in common, or none twice."""

    requests: tuple[str, ...] = ()
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class DeviceClaimConfiguration(Record, frozen=True):
    """Parameters for the drivers of some requests, or of all."""

    requests: tuple[str, ...] = ()
    opaque: Configuration | None = None


class DeviceClaim(Record, frozen=True):
    """All that a claim asks for."""

    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[DeviceClaimConfiguration, ...] = ()


class ResourceClaimSpec(Record, frozen=True):
    """The devices that a claim requests."""

    devices: DeviceClaim = DeviceClaim()


class AllocatedDevice(Record, frozen=True):
    """One device given to a request."""

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    share_id: str | None = field(default=None, name="shareID")
    consumed_capacity: dict[str, QuantityText] = {}

    @property
    def id(self) -> tuple[str, str, str]:
        """Driver, pool and name: a device of its own in the cluster."""
        return self.driver, self.pool, self.device


class AllocationConfiguration(DeviceClaimConfiguration, frozen=True):
    """The same, and whether the class or the claim gave them."""

    source: str = ""


class DeviceAllocation(Record, frozen=True):
    """The devices of a claim, in the order in which they were chosen."""

    results: tuple[AllocatedDevice, ...] = ()
    config: tuple[AllocationConfiguration, ...] = ()


class AllocationResult(Record, frozen=True):
    """Devices, and the nodes from which all of them can be used; no selector means all nodes."""

    devices: DeviceAllocation = DeviceAllocation()
    node_selector: NodeSelector | None = None
    allocation_timestamp: str | None = None

    @property
    def must_wait(self) -> bool:
        """Whether a device has conditions to wait for."""
        return any(device.binding_conditions for device in self.devices.results)


class ConsumerReference(Record, frozen=True):
    """A consumer for whom a claim is reserved: a pod, or all pods of a group."""

    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class DeviceCondition(Record, frozen=True):
    """One observed condition of an allocated device."""

    type: str = ""
    status: str = ""
    observed_generation: int = 0
    last_transition_time: str | None = None
    reason: str = ""
    message: str = ""


class AllocatedDeviceStatus(Record, frozen=True):
    """What a driver says of an allocated device."""

    driver: str = ""
    pool: str = ""
    device: str = ""
    share_id: str | None = field(default=None, name="shareID")
    conditions: tuple[DeviceCondition, ...] | None = None
    data: Any = None
    network_data: dict[str, Any] | None = None


class ResourceClaimStatus(Record, frozen=True):
    """What was given, and to whom."""

    allocation: AllocationResult | None = None
    reserved_for: tuple[ConsumerReference, ...] = ()
    devices: tuple[AllocatedDeviceStatus, ...] = ()


class ResourceClaim(KubeObject, frozen=True):
    """Devices that pods of a namespace may use."""

    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()

    def is_reserved_for(self, uid: str) -> bool:
        return any(consumer.uid == uid for consumer in self.status.reserved_for)


class ResourceClaimTemplateSpec(Record, frozen=True):
    """The claim that is made for each pod."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceClaimSpec = ResourceClaimSpec()


class ResourceClaimTemplate(KubeObject, frozen=True):
    """A claim to be made for every pod that names it."""

    spec: ResourceClaimTemplateSpec = ResourceClaimTemplateSpec()
