"""Groups devices that are equal in the attributes that a request's selectors read, though their serials differ.

Nodes whose devices are alike, and of which the same are in use, share one search.
"""

from __future__ import annotations

import weakref
from itertools import count

from kubesched.api.devices import DeviceAttribute
from kubesched.plugins.shared.devices.device_kinds import DeviceKind
from kubesched.plugins.shared.devices.inventory import Inventory
from kubesched.plugins.shared.devices.selecting import Names

_SHAPES_KEPT = 1 << 13


class DeviceEquivalence:
    """Groups devices that are equal in the attributes (`names`) that a request's selectors read; None for any."""

    _numbers = count()

    def __init__(self, names: Names | None) -> None:
        self._names = None if names is None else tuple(name.partition("/") for name in sorted(names))
        self._first: weakref.WeakValueDictionary[object, DeviceKind] = weakref.WeakValueDictionary()
        self._shapes: dict[object, int] = {}

    def of(self, kind: DeviceKind) -> DeviceKind:
        """The first kind of device that was seen and is equal to this one for the demand."""
        if self._names is None or not kind.is_ordinary:
            return kind
        if self not in kind.like:
            # The kind itself keeps the answer, so that both go when the last such device is gone: with None for itself,
            # or it would never go.
            first = self._first.setdefault(self._looks(kind, self._names), kind)
            kind.like[self] = first if first is not kind else None
        return kind.like[self] or kind

    def shape_of(self, inventory: Inventory) -> int:
        """A number: equal for inventories in which every search ends in the same places, if their use is equal."""
        shape = inventory.shapes.get(self)
        if shape is None:
            if len(self._shapes) > _SHAPES_KEPT:
                self._shapes.clear()  # numbers never come again, so at worst a search is repeated
            key = tuple(pool.shape(self.of) for pool in inventory.pools)
            shape = self._shapes.get(key)
            if shape is None:
                shape = self._shapes[key] = next(self._numbers)
            inventory.shapes[self] = shape
        return shape

    def _looks(self, kind: DeviceKind, names: tuple[tuple[str, str, str], ...]) -> object:
        attributes = kind.device.attributes
        seen: list[DeviceAttribute | None] = []
        for domain, slash, name in names:
            seen.append(attributes.get(f"{domain}{slash}{name}"))
            seen.append(attributes.get(name) if domain == kind.driver else None)
        return kind.frame, tuple(seen)
