"""Numbers devices that are equal in the attributes that a request's selectors read, though their serials differ.

Nodes whose devices are alike, and of which the same are in use, share one search.
"""

from __future__ import annotations

import weakref
from array import array
from itertools import count
from typing import NamedTuple

import msgspec

from kubesched.cel import Names
from kubesched.plugins.shared.devices.device_kinds import DeviceKind
from kubesched.plugins.shared.devices.inventory import Inventory

_MOST_KEPT = 1 << 12
"""The most entries of `_numbers`, and of `_alike`. Where all devices differ, a number is not worth finding again."""
_BYTES_PER_LOOK, _BYTES_PER_INVENTORY = 400, 170

_encode = msgspec.json.Encoder().encode


class InventoryView(NamedTuple):
    """An inventory as it looks to a demand."""

    shape: int
    """Equal for inventories in which every search ends in the same places, if their use is equal."""
    numbers: array[int]
    """Per spot; equal for devices that look alike."""


class DeviceEquivalence:
    """Devices that are equal in the attributes (`names`) that selectors read have one number; None for any.

    It keeps no device, and lives as long as a demand that looks with it.
    """

    _count = count()
    """No number comes again, so what is forgotten is at worst found out once more."""

    def __init__(self, names: Names | None) -> None:
        self._names = None if names is None else tuple(name.partition("/") for name in sorted(names))
        self._numbers: dict[object, int] = {}
        self._alike: dict[object, InventoryView] = {}
        self._views: weakref.WeakKeyDictionary[Inventory, InventoryView] = weakref.WeakKeyDictionary()
        self._spots = 0

    @property
    def size(self) -> int:
        """Bytes, about."""
        looks = _BYTES_PER_LOOK * (len(self._numbers) + len(self._alike))
        return looks + _BYTES_PER_INVENTORY * len(self._views) + 16 * self._spots

    def number_of(self, kind: DeviceKind) -> int:
        looks = self._looks(kind)
        number = self._numbers.get(looks)
        if number is None:
            if len(self._numbers) >= _MOST_KEPT:
                self._numbers.clear()
            number = self._numbers[looks] = next(self._count)
        return number

    def view(self, inventory: Inventory) -> InventoryView:
        view = self._views.get(inventory)
        if view is None:
            view = self._views[inventory] = self._view_like(
                array("q", (self.number_of(spot.kind) for spot in inventory.spots)),
                tuple(pool.outline for pool in inventory.pools),
            )
        return view

    def _view_like(self, numbers: array[int], pools: tuple[object, ...]) -> InventoryView:
        key = numbers.tobytes(), pools
        view = self._alike.get(key)
        if view is None:
            if len(self._alike) >= _MOST_KEPT:
                self._alike.clear()
            view = self._alike[key] = InventoryView(next(self._count), numbers)
            self._spots += len(numbers)
        return view

    def _looks(self, kind: DeviceKind) -> object:
        attributes = kind.device.attributes
        if self._names is None or not kind.is_ordinary:
            return kind.frame, _encode(attributes)
        values = []
        for domain, slash, name in self._names:
            values.append(attributes.get(f"{domain}{slash}{name}"))
            values.append(attributes.get(name) if domain == kind.frame.driver else None)
        return kind.frame, tuple(values)
