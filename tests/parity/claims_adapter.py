"""Claims in the decision recordings: what is said of devices, and an API that takes what is written about them."""

from __future__ import annotations

from typing import Any

import msgspec

from kubesched.api.device_claims import AllocatedDevice, AllocationResult, DeviceRequest, ResourceClaim
from kubesched.api.merge_patch import apply_merge_patch
from kubesched.framework.client import ClusterClient
from kubesched.framework.decision import Decision
from kubesched.framework.plugin import Plugin
from kubesched.plugins.dynamic_resources import DynamicResources
from kubesched.plugins.dynamic_resources.attempt import NOTES, ClaimAttempt
from kubesched.plugins.dynamic_resources.giving_back import idle_of
from kubesched.plugins.shared.devices.answers import ClusterDevices
from kubesched.state.cluster import ClusterState

Json = dict[str, Any]


class ClaimApi(ClusterClient):
    """Holds claims as an API server would; the state has every change at once."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._version = 0

    async def get(self, kind: str, name: str, namespace: str = "") -> Json:
        return msgspec.to_builtins(self._stored(name, namespace))  # type: ignore[no-any-return]

    async def create(self, kind: str, obj: Json) -> Json:
        name = f"{obj['metadata']['generateName']}0"
        return self._store({**obj, "metadata": {**obj["metadata"], "name": name, "uid": f"uid-{name}"}})

    async def replace(self, kind: str, obj: Json, *, subresource: str = "") -> Json:
        return self._store(obj)

    async def patch(self, kind: str, name: str, patch: Json, *, namespace: str = "", subresource: str = "") -> Json:
        """What is patched of pods is their status, which the recordings do not look at."""
        if kind != "ResourceClaim":
            return {}
        return self._store(apply_merge_patch(msgspec.to_builtins(self._stored(name, namespace)), patch))

    async def delete(self, kind: str, name: str, *, namespace: str = "", uid: str = "") -> None:
        self._state.delete(self._stored(name, namespace))

    def _stored(self, name: str, namespace: str) -> ResourceClaim:
        stored = self._state.objects.get(ResourceClaim, name, namespace)
        assert stored is not None
        return stored

    def _store(self, obj: Json) -> Json:
        self._version += 1
        stored = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(self._version)}}
        self._state.apply(msgspec.convert(stored, ResourceClaim))
        return stored


def attempt_of(decision: Decision) -> ClaimAttempt | None:
    return decision.cycle.find(NOTES)


def node_allocations(decision: Decision, plugin: Plugin | None, feasible: list[str], state: ClusterState) -> Json:
    """What the claims of a pod would get on each node that fits."""
    attempt = attempt_of(decision)
    if attempt is None or not isinstance(plugin, DynamicResources) or attempt.variants is None:
        return {}
    found: Json = {}
    for name in feasible:
        row = state.nodes.row_of[name]
        variant = attempt.variant_at(row)
        allocations = plugin.allocations_on(decision.cycle, row)
        if allocations is None:
            continue
        entry = found[name] = {claim.name: _allocation(one) for claim, one in zip(variant.claims, allocations)}
        extended = attempt.extended_claim
        if extended is not None and extended.name in entry and variant.extended.requests:
            entry[extended.name]["requests"] = [_request(one) for one in variant.extended.requests]
            entry[extended.name]["mappings"] = [
                f"{one.container_name} {one.resource_name} {one.request_name}" for one in variant.extended.mappings
            ]
    return found


def deallocatable(decision: Decision, plugin: Plugin | None) -> list[str]:
    attempt = attempt_of(decision)
    if attempt is None or decision.diagnosis is None or not isinstance(plugin, DynamicResources):
        return []
    unavailable = plugin.in_the_way(attempt, decision.diagnosis)
    return sorted(claim.name for claim in idle_of(unavailable, decision.pod.uid))


def in_use(state: ClusterState) -> Json:
    """The devices in use, with pending allocations."""
    ledger = state.companion(ClusterDevices).ledger
    ledger.refresh()
    entry: Json = {}
    devices = sorted("/".join(device) for device in ledger.devices_in_use())
    capacity = {"/".join(device): amounts for device, amounts in ledger.capacity_in_use().items()}
    if devices:
        entry["devices"] = devices
    if capacity:
        entry["capacity"] = capacity
    return entry


def _request(request: DeviceRequest) -> Json:
    assert request.exactly is not None
    return {"name": request.name, "class": request.exactly.device_class_name, "count": request.exactly.count}


def _allocation(allocation: AllocationResult) -> Json:
    entry: Json = {"devices": [_device(device) for device in allocation.devices.results]}
    if allocation.node_selector is not None:
        entry["nodeSelector"] = msgspec.json.decode(msgspec.json.encode(allocation.node_selector))
    return entry


def _device(device: AllocatedDevice) -> Json:
    entry: Json = {
        "request": device.request,
        "driver": device.driver,
        "pool": device.pool,
        "device": device.device,
        "adminAccess": bool(device.admin_access),
        "shared": device.share_id is not None,
        "consumedCapacity": dict(device.consumed_capacity),
        "tolerations": len(device.tolerations),
        "bindingConditions": list(device.binding_conditions),
        "bindingFailureConditions": list(device.binding_failure_conditions),
    }
    return {name: value for name, value in entry.items() if value}
