"""What a node has and has given away: a kubelet admits no pod that does not fit.

So the mistakes of a scheduler that overcommits, or that breaks a pod's own rules, show here.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from kubesched.api.kinds import Object
from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.api.quantity import parse_quantity
from kubesched.api.requests import PODS, pod_requests, whole
from kubesched.api.selectors import NodeRequirements

_EVERY_ADDRESS = "0.0.0.0"


class PodRefusal(NamedTuple):
    """Why a pod is not taken, as a kubelet words it."""

    reason: str
    message: str


def requests_of(pod: Object) -> dict[str, int]:
    """What a pod takes of its node, itself included."""
    amounts = pod_requests(msgspec.convert(pod, Pod))
    return {PODS: 1, **{name: whole(name, amount) for name, amount in amounts.items()}}


def host_ports_of(pod: Object) -> set[tuple[str, str, int]]:
    """The ports of the node that a pod takes: address, protocol, number."""
    sidecars = [each for each in pod["spec"].get("initContainers") or () if each.get("restartPolicy") == "Always"]
    return {
        (port.get("hostIP") or _EVERY_ADDRESS, port.get("protocol", "TCP"), port["hostPort"])
        for container in (*pod["spec"]["containers"], *sidecars)
        for port in container.get("ports") or ()
        if port.get("hostPort")
    }


def _collide(one: tuple[str, str, int], other: tuple[str, str, int]) -> bool:
    return one[1:] == other[1:] and (one[0] == other[0] or _EVERY_ADDRESS in (one[0], other[0]))


class NodeAccount:
    """The account of one node."""

    def __init__(self) -> None:
        self._ports: dict[str, set[tuple[str, str, int]]] = {}
        self._held: dict[str, dict[str, int]] = {}
        self._used: dict[str, int] = {}

    def __contains__(self, uid: str) -> bool:
        return uid in self._held

    def refusal(self, pod: Object, node: Object) -> PodRefusal | None:
        """The first reason not to take the pod; None if it fits."""
        allocatable = (node.get("status") or {}).get("allocatable") or {}
        for name, amount in requests_of(pod).items():
            used = self._used.get(name, 0)
            total = whole(name, parse_quantity(allocatable.get(name, 0)))
            if amount and used + amount > total:
                shortage = f"resource: {name}, requested: {amount}, used: {used}, capacity: {total}"
                return PodRefusal(f"OutOf{name}", f"Node didn't have enough {shortage}")
        required = NodeRequirements(msgspec.convert(pod, Pod))
        if not required.allow_all and not required.allow(msgspec.convert(node, Node)):
            why = "node(s) didn't match Pod's node affinity/selector"
            return PodRefusal("NodeAffinity", f"Predicate NodeAffinity failed: {why}")
        taken = [port for ports in self._ports.values() for port in ports]
        if any(_collide(port, other) for port in host_ports_of(pod) for other in taken):
            why = "node(s) didn't have free ports for the requested pod ports"
            return PodRefusal("NodePorts", f"Predicate NodePorts failed: {why}")
        return None

    def take(self, pod: Object) -> None:
        uid = pod["metadata"]["uid"]
        if uid not in self._held:
            if ports := host_ports_of(pod):
                self._ports[uid] = ports
            amounts = self._held[uid] = requests_of(pod)
            for name, amount in amounts.items():
                self._used[name] = self._used.get(name, 0) + amount

    def give_back(self, uid: str) -> None:
        self._ports.pop(uid, None)
        for name, amount in self._held.pop(uid, {}).items():
            self._used[name] -= amount
