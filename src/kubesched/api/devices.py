"""Devices as drivers publish them in ResourceSlices, and the classes by which they are asked for."""

from __future__ import annotations

from typing import Any

from msgspec import field

from kubesched.api.affinity import NodeSelector
from kubesched.api.meta import KubeObject, Record
from kubesched.api.quantity import QuantityText

IMPLICIT_PREFIX = "deviceclass.resource.kubernetes.io/"
"""Before the name of a class: the extended resource that every class serves."""

AttributeValue = int | bool | str
Configuration = dict[str, Any]
"""Parameters for a driver, handed on as they are."""


class DeviceAttribute(Record, frozen=True):
    """One property of a device; exactly one of the fields is set."""

    int_value: int | None = field(default=None, name="int")
    bool_value: bool | None = field(default=None, name="bool")
    string_value: str | None = field(default=None, name="string")
    version_value: str | None = field(default=None, name="version")
    int_values: tuple[int, ...] | None = field(default=None, name="ints")
    bool_values: tuple[bool, ...] | None = field(default=None, name="bools")
    string_values: tuple[str, ...] | None = field(default=None, name="strings")
    version_values: tuple[str, ...] | None = field(default=None, name="versions")

    @property
    def values(self) -> tuple[AttributeValue, ...] | None:
        """Those of a list; None if it is none."""
        lists = (self.int_values, self.bool_values, self.string_values, self.version_values)
        return next((values for values in lists if values is not None), None)

    @property
    def typed(self) -> tuple[str, AttributeValue] | None:
        """The type and the value; None if it is of a type that is not known."""
        for kind, value in (
            ("string", self.string_value),
            ("int", self.int_value),
            ("bool", self.bool_value),
            ("version", self.version_value),
        ):
            if value is not None:
                return kind, value
        return None


class CapacityRange(Record, frozen=True):
    """Amounts from a minimum to a maximum, in steps."""

    min: QuantityText | None = None
    max: QuantityText | None = None
    step: QuantityText | None = None


class CapacityPolicy(Record, frozen=True):
    """Which shares of a capacity may be asked for, and how much is taken by default."""

    default: QuantityText | None = None
    valid_values: tuple[QuantityText, ...] = ()
    valid_range: CapacityRange | None = None


class DeviceCapacity(Record, frozen=True):
    """How much a device has of something."""

    value: QuantityText = "0"
    request_policy: CapacityPolicy | None = None


class Counter(Record, frozen=True):
    """An amount in a counter set."""

    value: QuantityText = "0"


class CounterSet(Record, frozen=True):
    """What the partitions of a larger device draw from."""

    name: str = ""
    counters: dict[str, Counter] = {}


class CounterConsumption(Record, frozen=True):
    """What a device draws from one counter set."""

    counter_set: str = ""
    counters: dict[str, Counter] = {}
    compatibility_groups: tuple[str, ...] = ()


class DeviceTaint(Record, frozen=True):
    """Keeps away requests that do not tolerate it."""

    key: str = ""
    value: str = ""
    effect: str = ""


class Device(Record, frozen=True):
    """One device of a slice."""

    name: str = ""
    attributes: dict[str, DeviceAttribute] = {}
    capacity: dict[str, DeviceCapacity] = {}
    consumes_counters: tuple[CounterConsumption, ...] = ()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    taints: tuple[DeviceTaint, ...] = ()
    binds_to_node: bool = False
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    allow_multiple_allocations: bool = False


class ResourcePool(Record, frozen=True):
    """The pool that a slice is part of. Only slices of the newest generation count."""

    name: str = ""
    generation: int = 0
    resource_slice_count: int = 1


class ResourceSliceSpec(Record, frozen=True):
    """Devices, or counters for devices in other slices of the pool; and the nodes from which they can be used."""

    driver: str = ""
    pool: ResourcePool = ResourcePool()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    per_device_node_selection: bool = False
    devices: tuple[Device, ...] = ()
    shared_counters: tuple[CounterSet, ...] = ()


class ResourceSlice(KubeObject, frozen=True):
    """A part of a pool of devices."""

    spec: ResourceSliceSpec = ResourceSliceSpec()


class DeviceTaintSelector(Record, frozen=True):
    """Devices by driver, pool and name; what is not said, any."""

    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class DeviceTaintRuleSpec(Record, frozen=True):
    """A taint, and the devices that it is for; without a selector all."""

    device_selector: DeviceTaintSelector | None = None
    taint: DeviceTaint = DeviceTaint()


class DeviceTaintRule(KubeObject, frozen=True):
    """Taints devices of others, as an administrator wants it."""

    spec: DeviceTaintRuleSpec = DeviceTaintRuleSpec()


class CelSelector(Record, frozen=True):
    """An expression over one device."""

    expression: str = ""


class DeviceSelector(Record, frozen=True):
    """A condition on devices. CEL is the only kind there is."""

    cel: CelSelector | None = None


class DeviceClassConfiguration(Record, frozen=True):
    """Parameters for drivers whose devices are of the class."""

    opaque: Configuration | None = None


class DeviceClassSpec(Record, frozen=True):
    """Which devices are of the class, and what they stand for."""

    selectors: tuple[DeviceSelector, ...] = ()
    config: tuple[DeviceClassConfiguration, ...] = ()
    extended_resource_name: str | None = None


class DeviceClass(KubeObject, frozen=True):
    """A kind of device."""

    spec: DeviceClassSpec = DeviceClassSpec()
