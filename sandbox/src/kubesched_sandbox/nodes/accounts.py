"""What a hollow node has, and what its pods hold of it: resources, ports, addresses."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from kubesched.api.kinds import Object
from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.api.quantity import parse_quantity
from kubesched.api.requests import PODS as POD_COUNT
from kubesched.api.requests import pod_requests, whole
from kubesched.api.selectors import NodeRequirements

_EVERY_ADDRESS = "0.0.0.0"


class PodRefusal(NamedTuple):
    """Why a pod is not taken, as a kubelet words it."""

    reason: str
    message: str


class NodeShortage(NamedTuple):
    """A resource that a node has too little of."""

    resource: str
    requested: int
    used: int
    capacity: int

    @property
    def message(self) -> str:
        amounts = f"requested: {self.requested}, used: {self.used}, capacity: {self.capacity}"
        return f"Node didn't have enough resource: {self.resource}, {amounts}"


def requests_of(pod: Object) -> dict[str, int]:
    """What a pod takes of its node, itself included."""
    amounts = pod_requests(msgspec.convert(pod, Pod))
    return {POD_COUNT: 1, **{name: whole(name, amount) for name, amount in amounts.items()}}


def host_ports_of(pod: Object) -> set[tuple[str, str, int]]:
    """The ports of the node that a pod takes: address, protocol, number."""
    inits = pod["spec"].get("initContainers") or ()
    sidecars = [container for container in inits if container.get("restartPolicy") == "Always"]
    return {
        (port.get("hostIP") or _EVERY_ADDRESS, port.get("protocol", "TCP"), port["hostPort"])
        for container in (*pod["spec"]["containers"], *sidecars)
        for port in container.get("ports") or ()
        if port.get("hostPort")
    }


def _collide(port: tuple[str, str, int], other: tuple[str, str, int]) -> bool:
    return port[1:] == other[1:] and (port[0] == other[0] or _EVERY_ADDRESS in (port[0], other[0]))


class NodeAccount:
    """The allocatable resources of one node, and what its pods use: resources, ports, addresses."""

    def __init__(self) -> None:
        self.node: Object = {}
        self.address = ""
        self.network = ""
        self._numbers: dict[str, int] = {}
        """The last part of the address of each pod."""
        self._ports: dict[str, set[tuple[str, str, int]]] = {}
        self._held: dict[str, dict[str, int]] = {}
        self._used: dict[str, int] = {}

    def __contains__(self, uid: str) -> bool:
        return uid in self._held

    def address_for(self, uid: str) -> str:
        """An address of the node's range that no other pod here has."""
        if uid not in self._numbers:
            used = set(self._numbers.values())
            self._numbers[uid] = next((n for n in range(2, 255) if n not in used), 254)
        return f"{self.network}.{self._numbers[uid]}"

    def shortage(self, pod: Object) -> NodeShortage | None:
        """The first resource of which the node does not have what the pod requests beyond what it holds here."""
        allocatable = (self.node.get("status") or {}).get("allocatable") or {}
        held = self._held.get(pod["metadata"]["uid"], {})
        for name, amount in requests_of(pod).items():
            used = self._used.get(name, 0) - held.get(name, 0)
            total = whole(name, parse_quantity(allocatable.get(name, 0)))
            if amount > held.get(name, 0) and used + amount > total:
                return NodeShortage(name, amount, used, total)
        return None

    def refusal(self, pod: Object) -> PodRefusal | None:
        """The first reason not to take the pod; None if it fits."""
        if (shortage := self.shortage(pod)) is not None:
            return PodRefusal(f"OutOf{shortage.resource}", shortage.message)
        required = NodeRequirements(msgspec.convert(pod, Pod))
        if not required.allow_all and not required.allow(msgspec.convert(self.node, Node)):
            why = "node(s) didn't match Pod's node affinity/selector"
            return PodRefusal("NodeAffinity", f"Predicate NodeAffinity failed: {why}")
        taken = [port for ports in self._ports.values() for port in ports]
        if any(_collide(port, other) for port in host_ports_of(pod) for other in taken):
            why = "node(s) didn't have free ports for the requested pod ports"
            return PodRefusal("NodePorts", f"Predicate NodePorts failed: {why}")
        return None

    def take(self, pod: Object) -> None:
        """Account for a pod, with what it requests now."""
        uid = pod["metadata"]["uid"]
        if ports := host_ports_of(pod):
            self._ports[uid] = ports
        self._give_back(uid)
        amounts = self._held[uid] = requests_of(pod)
        for name, amount in amounts.items():
            self._used[name] = self._used.get(name, 0) + amount

    def give_back(self, uid: str) -> None:
        self._ports.pop(uid, None)
        self._numbers.pop(uid, None)
        self._give_back(uid)

    def _give_back(self, uid: str) -> None:
        for name, amount in self._held.pop(uid, {}).items():
            self._used[name] -= amount
