"""What a node has and has given away: a kubelet takes no pod that does not fit, whoever bound it."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from kubesched.api.pod import Pod
from kubesched.api.quantity import parse_quantity
from kubesched.api.requests import PODS, pod_requests, whole
from kubesched.sandbox.kinds import Object


class Refusal(NamedTuple):
    """Why a pod is not taken, as a kubelet words it."""

    reason: str
    message: str


def requests_of(pod: Object) -> dict[str, int]:
    """What a pod takes of its node, itself included."""
    amounts = pod_requests(msgspec.convert(pod, Pod))
    return {PODS: 1, **{name: whole(name, amount) for name, amount in amounts.items()}}


class Capacity:
    """The account of one node."""

    def __init__(self) -> None:
        self._held: dict[str, dict[str, int]] = {}
        self._used: dict[str, int] = {}

    def __contains__(self, uid: str) -> bool:
        return uid in self._held

    def refusal(self, pod: Object, allocatable: Object) -> Refusal | None:
        """The first resource of which too little is left for the pod; None if it fits."""
        for name, amount in requests_of(pod).items():
            used = self._used.get(name, 0)
            total = whole(name, parse_quantity(allocatable.get(name, 0)))
            if amount and used + amount > total:
                told = f"resource: {name}, requested: {amount}, used: {used}, capacity: {total}"
                return Refusal(f"OutOf{name}", f"Node didn't have enough {told}")
        return None

    def take(self, pod: Object) -> None:
        uid = pod["metadata"]["uid"]
        if uid not in self._held:
            amounts = self._held[uid] = requests_of(pod)
            for name, amount in amounts.items():
                self._used[name] = self._used.get(name, 0) + amount

    def give_back(self, uid: str) -> None:
        for name, amount in self._held.pop(uid, {}).items():
            self._used[name] -= amount
