"""What the API server would refuse in slices, claims and their templates, as far as it bears on scheduling."""

from __future__ import annotations

from collections.abc import Mapping

from kubesched.api.device_claims import (
    ALL_DEVICES,
    EXACT_COUNT,
    DeviceClaim,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimTemplate,
)
from kubesched.api.devices import Counter, Device, DeviceAttribute, DeviceCapacity, DeviceClass, ResourceSlice
from kubesched.simulate.findings import Findings

_MOST_DEVICES = 128
_MOST_COUNT = 2**31 - 1
_EFFECTS = ("None", "NoSchedule", "NoExecute")
_OPERATORS = ("", "Equal", "Exists")


def check_slice(found: Findings, obj: ResourceSlice) -> None:
    """A slice: what it says of its pool, of nodes and of devices."""
    spec = obj.spec
    for path, value in (("spec.driver", spec.driver), ("spec.pool.name", spec.pool.name)):
        if not value:
            found.say(path, "required field is missing")
    found.number("spec.pool.resourceSliceCount", spec.pool.resource_slice_count, low=1)
    said = (bool(spec.node_name), spec.node_selector is not None, spec.all_nodes, spec.per_device_node_selection)
    if sum(said) != 1 and not (spec.shared_counters and not any(said)):
        found.say("spec", "exactly one of nodeName, nodeSelector, allNodes and perDeviceNodeSelection is needed")
    found.node_selector("spec.nodeSelector", spec.node_selector)
    if spec.devices and spec.shared_counters:
        found.say("spec.sharedCounters", "counters and devices are in different slices")
    if len(spec.devices) > _MOST_DEVICES:
        found.say("spec.devices", f"a slice has at most {_MOST_DEVICES} devices")
    for i, counters in enumerate(spec.shared_counters):
        _counters(found, f"spec.sharedCounters[{i}].counters", counters.counters)
    for i, device in enumerate(spec.devices):
        _device(found, f"spec.devices[{i}]", device)


def check_class(found: Findings, obj: DeviceClass) -> None:
    """A class: its selectors must be of the one kind there is."""
    for i, selector in enumerate(obj.spec.selectors):
        if selector.cel is None:
            found.say(f"spec.selectors[{i}].cel", "required field is missing")


def check_claim(found: Findings, obj: ResourceClaim) -> None:
    """A claim, with what was allocated for it."""
    _claim(found, "spec.devices", obj.spec.devices)
    allocation = obj.status.allocation
    if allocation is None:
        return
    path = "status.allocation"
    found.time(f"{path}.allocationTimestamp", allocation.allocation_timestamp or "")
    found.node_selector(f"{path}.nodeSelector", allocation.node_selector)
    for i, device in enumerate(allocation.devices.results):
        for name, text in device.consumed_capacity.items():
            found.quantity(f"{path}.devices.results[{i}].consumedCapacity.{name}", text)


def check_template(found: Findings, obj: ResourceClaimTemplate) -> None:
    """The claim that is to be made from it."""
    _claim(found, "spec.spec.devices", obj.spec.spec.devices)


def _device(found: Findings, path: str, device: Device) -> None:
    if not device.name:
        found.say(f"{path}.name", "required field is missing")
    for name, attribute in device.attributes.items():
        _attribute(found, f"{path}.attributes.{name}", attribute)
    for name, capacity in device.capacity.items():
        _capacity(found, f"{path}.capacity.{name}", capacity)
    for i, used in enumerate(device.consumes_counters):
        _counters(found, f"{path}.consumesCounters[{i}].counters", used.counters)
    for i, taint in enumerate(device.taints):
        found.label_key(f"{path}.taints[{i}].key", taint.key)
        found.one_of(f"{path}.taints[{i}].effect", taint.effect, _EFFECTS)
    found.node_selector(f"{path}.nodeSelector", device.node_selector)


def _attribute(found: Findings, path: str, attribute: DeviceAttribute) -> None:
    values = (attribute.int_value, attribute.bool_value, attribute.string_value, attribute.version_value)
    if sum(value is not None for value in values) != 1:
        found.say(path, "exactly one of int, bool, string and version is needed")


def _capacity(found: Findings, path: str, capacity: DeviceCapacity) -> None:
    found.quantity(f"{path}.value", capacity.value)
    policy = capacity.request_policy
    if policy is None:
        return
    path = f"{path}.requestPolicy"
    if policy.default is not None:
        found.quantity(f"{path}.default", policy.default)
    for i, value in enumerate(policy.valid_values):
        found.quantity(f"{path}.validValues[{i}]", value)
    allowed = policy.valid_range
    if allowed is None:
        return
    if allowed.min is None:
        found.say(f"{path}.validRange.min", "required field is missing")
    for name, text in (("min", allowed.min), ("max", allowed.max), ("step", allowed.step)):
        read = found.quantity(f"{path}.validRange.{name}", text) if text is not None else None
        if name == "step" and read is not None and read.value() < 1:
            found.say(f"{path}.validRange.step", f"{text!r} is not at least 1")


def _counters(found: Findings, path: str, counters: Mapping[str, Counter]) -> None:
    for name, counter in counters.items():
        found.quantity(f"{path}.{name}.value", counter.value)


def _claim(found: Findings, path: str, devices: DeviceClaim) -> None:
    for i, request in enumerate(devices.requests):
        here = f"{path}.requests[{i}]"
        if not request.name:
            found.say(f"{here}.name", "required field is missing")
        if (request.exactly is None) == (not request.first_available):
            found.say(here, "exactly one of exactly and firstAvailable is needed")
        if request.exactly is not None:
            _request(found, f"{here}.exactly", request.exactly)
        for k, alternative in enumerate(request.first_available):
            if not alternative.name:
                found.say(f"{here}.firstAvailable[{k}].name", "required field is missing")
            _request(found, f"{here}.firstAvailable[{k}]", alternative)
    for i, constraint in enumerate(devices.constraints):
        if (constraint.match_attribute is None) == (constraint.distinct_attribute is None):
            found.say(f"{path}.constraints[{i}]", "exactly one of matchAttribute and distinctAttribute is needed")


def _request(found: Findings, path: str, request: ExactDeviceRequest | DeviceSubRequest) -> None:
    if not request.device_class_name:
        found.say(f"{path}.deviceClassName", "required field is missing")
    found.one_of(f"{path}.allocationMode", request.allocation_mode, (EXACT_COUNT, ALL_DEVICES))
    found.number(f"{path}.count", request.count, low=1, high=_MOST_COUNT)
    for i, selector in enumerate(request.selectors):
        if selector.cel is None:
            found.say(f"{path}.selectors[{i}].cel", "required field is missing")
    for i, toleration in enumerate(request.tolerations):
        found.one_of(f"{path}.tolerations[{i}].operator", toleration.operator, _OPERATORS)
    for name, text in (request.capacity.requests if request.capacity else {}).items():
        found.quantity(f"{path}.capacity.requests.{name}", text)
