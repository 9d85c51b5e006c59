"""What tells one device from another, but for its name: devices that are alike are looked at once."""

from __future__ import annotations

import weakref
from typing import NamedTuple

import msgspec

from kubesched.api.devices import AttributeValue, CapacityPolicy, Device, DeviceTaint
from kubesched.api.quantity import QuantityText, parse_quantity

CounterName = tuple[str, str]
"""A counter set, and a counter in it."""


class Capacity(NamedTuple):
    """How much a device has of something, exactly and as it was spelled."""

    nano: int
    text: QuantityText
    policy: CapacityPolicy | None


class DeviceKind:
    """All of a device that its being chosen can depend on. Compared by identity: alike devices share one."""

    __slots__ = ("__weakref__", "capacity", "consumes", "device", "driver", "is_shared", "taints")

    def __init__(self, driver: str, device: Device) -> None:
        self.driver = driver
        self.device = device
        """One such device."""
        self.is_shared = device.allow_multiple_allocations
        self.capacity = {
            name: Capacity(parse_quantity(given.value).nano(), given.value, given.request_policy)
            for name, given in device.capacity.items()
        }
        self.consumes: tuple[tuple[CounterName, int], ...] = tuple(
            ((used.counter_set, name), parse_quantity(counter.value).nano())
            for used in device.consumes_counters
            for name, counter in used.counters.items()
        )
        self.taints: tuple[DeviceTaint, ...] = device.taints

    def attribute(self, name: str) -> tuple[str, AttributeValue] | None:
        """The value of an attribute by its full name; an own attribute of the driver may go without the domain."""
        found = self.device.attributes.get(name)
        if found is None:
            domain, slash, own = name.partition("/")
            if slash and domain == self.driver:
                found = self.device.attributes.get(own)
        return None if found is None else found.typed


class DeviceKinds:
    """Finds or makes the kind of a device. A kind lives as long as somebody uses it."""

    def __init__(self) -> None:
        self._known: weakref.WeakValueDictionary[bytes, DeviceKind] = weakref.WeakValueDictionary()
        self._encode = msgspec.json.Encoder().encode

    def of(self, driver: str, device: Device) -> DeviceKind:
        fingerprint = self._encode(
            (
                driver,
                device.attributes,
                device.capacity,
                device.consumes_counters,
                device.taints,
                device.allow_multiple_allocations,
            )
        )
        found = self._known.get(fingerprint)
        if found is None:
            found = self._known[fingerprint] = DeviceKind(driver, device)
        return found
