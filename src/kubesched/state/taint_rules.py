"""DeviceTaintRules: slices as if their devices carried the taints of all rules that select them."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter

from msgspec.structs import replace

from kubesched.api.devices import Device, DeviceTaintRule, ResourceSlice
from kubesched.state.objects import ObjectStore


def tainted(slice_: ResourceSlice, rules: Iterable[DeviceTaintRule]) -> ResourceSlice:
    """The slice with the taints of these rules; the slice itself if none selects a device of it."""
    selecting = [rule for rule in rules if concerns(rule, slice_)]
    if not selecting:
        return slice_
    devices = tuple(_with_taints(device, selecting) for device in slice_.spec.devices)
    return replace(slice_, spec=replace(slice_.spec, devices=devices))


def concerns(rule: DeviceTaintRule, slice_: ResourceSlice) -> bool:
    """Whether the rule selects devices of the pool that the slice is part of."""
    selector, spec = rule.spec.device_selector, slice_.spec
    return selector is None or (selector.driver in (None, spec.driver) and selector.pool in (None, spec.pool.name))


def _with_taints(device: Device, rules: Iterable[DeviceTaintRule]) -> Device:
    selectors = ((rule, rule.spec.device_selector) for rule in rules)
    taints = [rule.spec.taint for rule, selector in selectors if not selector or selector.device in (None, device.name)]
    return replace(device, taints=(*device.taints, *taints)) if taints else device


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
        return {
            slice_.key: self.of(slice_) for slice_ in sorted(self._objects.all(ResourceSlice), key=attrgetter("key"))
        }
