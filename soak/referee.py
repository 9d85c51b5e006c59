"""Sees every change of the cluster and cries foul: pods bound twice, devices given twice, nodes that hold too much."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from kubesched.api.kinds import NODES, RESOURCE_CLAIMS, Object
from kubesched.api.quantity import parse_quantity
from kubesched_sandbox.api import ApiEvent

_RESOURCES = ("cpu", "memory", "pods")
Amounts = dict[str, int]
Device = tuple[str, str, str]


class Referee:
    """Knows what every node holds at any moment, from the API server's own changes of nodes, pods and claims.

    They come from the store of a sandbox, or from watches: those of one kind must be shown in order.
    """

    def __init__(self) -> None:
        self.fouls: list[str] = []
        self.bound = 0
        self._offered: dict[str, Amounts] = {}
        self._held: defaultdict[str, dict[str, Amounts]] = defaultdict(dict)
        """By node, what each pod there holds, by the pod's uid."""
        self._keys: dict[str, str] = {}
        self._holders: dict[Device, str] = {}
        """By device, the claim that has it."""

    def truth(self) -> dict[str, Any]:
        """Of each node that has any, the pods and what they ask for in all."""
        return {
            node: {"pods": sorted(self._keys[uid] for uid in pods), "requested": _sum(pods.values())}
            for node, pods in self._held.items()
            if pods
        }

    def see(self, event: ApiEvent) -> None:
        """Something changed."""
        if event.resource is NODES:
            self._offered[event.object["metadata"]["name"]] = _amounts(event.object["status"]["allocatable"])
        elif event.resource is RESOURCE_CLAIMS:
            self._see_claim(event)
        else:
            self._see_pod(event)

    def _see_pod(self, event: ApiEvent) -> None:
        pod, node = event.object, event.object["spec"].get("nodeName", "")
        before = "" if event.old is None else event.old["spec"].get("nodeName", "")
        uid, name = pod["metadata"]["uid"], pod["metadata"]["name"]
        if before and before != node:
            self.fouls.append(f"pod {name} was on {before}, and then was bound to {node}")
        if not node:
            return
        if event.type == "DELETED" or pod["status"].get("phase") in ("Succeeded", "Failed"):
            self._held[node].pop(uid, None)
            self._keys.pop(uid, None)
            return
        self._held[node][uid] = _requests(pod)
        self._keys[uid] = f"{pod['metadata']['namespace']}/{name}"
        if not before:
            self.bound += 1
            self._check_room(node, name)

    def _see_claim(self, event: ApiEvent) -> None:
        name = event.object["metadata"]["name"]
        before = set() if event.old is None else _devices(event.old)
        after = set() if event.type == "DELETED" else _devices(event.object)
        for device in before - after:
            self._holders.pop(device, None)
        for device in after - before:
            holder = self._holders.setdefault(device, name)
            if holder != name:
                self.fouls.append(f"{'/'.join(device)} belongs to claim {holder}, and was given to {name}")

    def _check_room(self, node: str, pod: str) -> None:
        held, offered = _sum(self._held[node].values()), self._offered.get(node, {})
        for resource, amount in offered.items():
            if held[resource] > amount:
                self.fouls.append(f"{node} has {amount} of {resource}; since {pod} was bound it holds {held[resource]}")


def _requests(pod: Object) -> Amounts:
    requests = [container["resources"].get("requests") or {} for container in pod["spec"]["containers"]]
    return {**_sum(_amounts({"cpu": "0", "memory": "0", "pods": "0", **each}) for each in requests), "pods": 1}


def _devices(claim: Object) -> set[Device]:
    allocation = (claim.get("status") or {}).get("allocation") or {}
    results = (allocation.get("devices") or {}).get("results") or ()
    return {(each["driver"], each["pool"], each["device"]) for each in results}


def _amounts(quantities: Mapping[str, str]) -> Amounts:
    """cpu in thousandths, as the scheduler counts."""
    found = {name: parse_quantity(quantities[name]) for name in _RESOURCES}
    return {name: amount.milli() if name == "cpu" else amount.value() for name, amount in found.items()}


def _sum(amounts: Iterable[Amounts]) -> Amounts:
    total = dict.fromkeys(_RESOURCES, 0)
    for each in amounts:
        for name in _RESOURCES:
            total[name] += each[name]
    return total
