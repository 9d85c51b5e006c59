"""Insufficient by how much: what a pod asks for, and the most that any node has left of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kubesched.api.pod import Pod
from kubesched.api.quantity import Family, spell
from kubesched.api.requests import pod_requests, whole
from kubesched.framework.nodes import Nodes
from kubesched.state.cluster import ClusterState

_INSUFFICIENT = "Insufficient "
_NANO, _NANO_PER_MILLI = 10**9, 10**6


@dataclass(frozen=True, slots=True)
class Shortage:
    """A resource of which some nodes have too little left."""

    resource: str
    asked: str
    most_left: str
    """On the node, among those with too little, that has most of it."""
    node: str
    nodes: int
    """How many have too little."""


def shortages(pod: Pod, objections: Iterable[tuple[str, str]], state: ClusterState) -> tuple[Shortage, ...]:
    """From the reasons that were given, as pairs of node and reason."""
    short_of: dict[str, list[str]] = {}
    for node, reason in objections:
        if reason.startswith(_INSUFFICIENT):
            short_of.setdefault(reason.removeprefix(_INSUFFICIENT), []).append(node)
    asked = pod_requests(pod, pod_level=state.features.pod_level_resources)
    return tuple(
        _shortage(resource, whole(resource, asked[resource]), nodes, state)
        for resource, nodes in sorted(short_of.items())
        if resource in asked
    )


def _shortage(resource: str, asked: int, nodes: list[str], state: ClusterState) -> Shortage:
    table = Nodes(state)
    views = (table.view(state.nodes.row_of[name]) for name in nodes)
    lack, node = min((view.requested(resource) - view.allocatable(resource), view.name) for view in views)
    left = max(0, -lack)
    return Shortage(resource, _spelled(resource, asked), _spelled(resource, left), node, len(nodes))


def _spelled(resource: str, amount: int) -> str:
    if resource == "cpu":
        return spell(amount * _NANO_PER_MILLI, Family.DECIMAL)
    family = Family.BINARY if resource in ("memory", "ephemeral-storage") else Family.DECIMAL
    return spell(amount * _NANO, family)
