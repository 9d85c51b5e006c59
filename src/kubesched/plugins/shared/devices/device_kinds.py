"""What tells one device from another, but for its name."""

from __future__ import annotations

import weakref
from functools import lru_cache
from typing import NamedTuple

import msgspec

from kubesched.api.devices import AttributeValue, CapacityPolicy, Device, DeviceTaint
from kubesched.api.quantity import QuantityText, parse_quantity
from kubesched.cel import Version, view_device
from kubesched.cel.device import MODEST
from kubesched.config.features import DEFAULT_FEATURES, Features

_LONGEST = 3 * MODEST

CounterName = tuple[str, str]
"""A counter set, and a counter in it."""


class KindCapacity(NamedTuple):
    """How much a device has of something, exactly and as it was spelled."""

    nano: int
    text: QuantityText
    policy: CapacityPolicy | None


UNKNOWN = ("unknown", "")
"""An attribute of a type that constraints do not know: a list, say."""


class DeviceFrame:
    """All of a device that its being chosen can depend on, but for attributes. By identity: equal ones are one."""

    __slots__ = ("__weakref__", "capacity", "consumes", "driver", "is_shared", "taints")

    def __init__(self, driver: str, device: Device, features: Features = DEFAULT_FEATURES) -> None:
        self.driver = driver
        self.is_shared = device.allow_multiple_allocations and features.device_capacity
        self.capacity = {
            name: KindCapacity(
                parse_quantity(capacity.value).nano(),
                capacity.value,
                capacity.request_policy if features.device_capacity else None,
            )
            for name, capacity in device.capacity.items()
        }
        self.consumes: tuple[tuple[CounterName, int], ...] = tuple(
            ((used.counter_set, name), parse_quantity(counter.value).nano())
            for used in device.consumes_counters
            for name, counter in used.counters.items()
        )
        self.taints: tuple[DeviceTaint, ...] = device.taints if features.device_taints else ()


class DeviceKind:
    """A device as selectors and constraints see it. There are as many as devices, so it has nothing of its own."""

    __slots__ = ("device", "frame")

    def __init__(self, frame: DeviceFrame, device: Device) -> None:
        self.frame = frame
        self.device = device

    @property
    def is_ordinary(self) -> bool:
        """Whether no attribute is such that every expression would break on it, or take longer because of it."""
        return _is_ordinary(self.device)

    def attribute(self, name: str) -> tuple[str, AttributeValue] | None:
        """The value of an attribute by its full name; an own attribute of the driver may go without the domain."""
        attribute = self.device.attributes.get(name)
        if attribute is None:
            domain, slash, own = name.partition("/")
            if slash and domain == self.frame.driver:
                attribute = self.device.attributes.get(own)
        return None if attribute is None else attribute.typed or UNKNOWN


class DeviceKinds:
    """Makes the kind of a device, with the frame that it shares with others. A frame lives as long as it is used."""

    def __init__(self, features: Features = DEFAULT_FEATURES) -> None:
        self._features = features
        self._frames: weakref.WeakValueDictionary[bytes, DeviceFrame] = weakref.WeakValueDictionary()
        self._encode = msgspec.json.Encoder().encode

    def of(self, driver: str, device: Device) -> DeviceKind:
        key = self._encode(
            (driver, device.capacity, device.consumes_counters, device.taints, device.allow_multiple_allocations)
        )
        frame = self._frames.get(key)
        if frame is None:
            frame = self._frames[key] = DeviceFrame(driver, device, self._features)
        return DeviceKind(frame, device)


def _is_ordinary(device: Device) -> bool:
    if len(device.attributes) + len(device.capacity) > MODEST:
        return False
    for name, attribute in device.attributes.items():
        typed = attribute.typed
        if typed is None or len(name) > _LONGEST or (isinstance(typed[1], str) and len(typed[1]) > _LONGEST):
            return False
        if typed[0] == "version" and not _is_version(str(typed[1])):
            return False
    return True


@lru_cache(maxsize=4096)
def _is_version(text: str) -> bool:
    return view_device("", {"version": Version(text)}, {}).problem is None
