"""Extended resources that a device class serves: on nodes without a device plugin for them, devices are allocated."""

from __future__ import annotations

from kubesched.api.devices import IMPLICIT_PREFIX, DeviceClass
from kubesched.api.requests import is_extended, pod_requests
from kubesched.framework.cycle import Cycle
from kubesched.state.objects import ObjectStore


def extended_resources(cycle: Cycle) -> frozenset[str]:
    """The extended resources that the pod asks for; worked out once per kind of pod."""
    memo = cycle.facts.memo
    if extended_resources not in memo:
        asked = pod_requests(cycle.pod)
        memo[extended_resources] = frozenset(n for n, amount in asked.items() if amount.amount and _may_be_served(n))
    found: frozenset[str] = memo[extended_resources]
    return found


def served_by_devices(cycle: Cycle) -> frozenset[str]:
    """Those of them that a device class serves."""
    wanted = extended_resources(cycle)
    if not wanted:
        return wanted
    return frozenset(name for name in wanted if is_served(name, cycle.state.objects))


def is_served(resource: str, objects: ObjectStore) -> bool:
    """Whether some device class stands for the extended resource, by its own name or by one it was given."""
    return any(
        resource in (device_class.spec.extended_resource_name, IMPLICIT_PREFIX + device_class.name)
        for device_class in objects.all(DeviceClass)
    )


def _may_be_served(name: str) -> bool:
    return is_extended(name) or name.startswith(IMPLICIT_PREFIX)
