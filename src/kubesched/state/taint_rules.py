"""DeviceTaintRules: slices as if their devices carried the taints of all rules that select them."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from kubesched.api.devices import Device, DeviceTaintRule, ResourceSlice
from kubesched.state.objects import ObjectStore


def tainted(slice_: ResourceSlice, rules: Iterable[DeviceTaintRule]) -> ResourceSlice:
    """The slice with the taints of these rules; the slice itself if none selects a device of it."""
    concerning = [rule for rule in rules if concerns(rule, slice_)]
    if not concerning:
        return slice_
    devices = tuple(_tainted(device, concerning) for device in slice_.spec.devices)
    return replace(slice_, spec=replace(slice_.spec, devices=devices))


def concerns(rule: DeviceTaintRule, slice_: ResourceSlice) -> bool:
    """Whether the rule selects devices of the pool that the slice is part of."""
    selector, spec = rule.spec.device_selector, slice_.spec
    return selector is None or (selector.driver in (None, spec.driver) and selector.pool in (None, spec.pool.name))


def _tainted(device: Device, rules: Iterable[DeviceTaintRule]) -> Device:
    more = [rule.spec.taint for rule in rules if _named(rule) in (None, device.name)]
    return replace(device, taints=(*device.taints, *more)) if more else device


def _named(rule: DeviceTaintRule) -> str | None:
    return rule.spec.device_selector.device if rule.spec.device_selector is not None else None


class TaintedSlices:
    """The slices of a store, with the taints of its rules."""

    def __init__(self, objects: ObjectStore, *, by_rules: bool) -> None:
        """Without `by_rules` (the gate DRADeviceTaintRules) slices are as they were published."""
        self._objects = objects
        self._by_rules = by_rules

    def of(self, slice_: ResourceSlice) -> ResourceSlice:
        return tainted(slice_, self._objects.all(DeviceTaintRule)) if self._by_rules else slice_

    def all(self) -> dict[str, ResourceSlice]:
        """By name, in order."""
        return {one.key: self.of(one) for one in sorted(self._objects.all(ResourceSlice), key=lambda one: one.key)}
