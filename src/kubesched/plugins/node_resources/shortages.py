"""Insufficient by how much: what a pod asks for, and the most that any node has left of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kubesched.api.quantity import Family, spell
from kubesched.framework.nodes import NodeView
from kubesched.framework.plugin import Details, Section

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


def details_of(shortages: Iterable[Shortage]) -> Details:
    """The shortages, and a table of them."""
    found = tuple(shortages)
    rows = tuple(
        (short.resource, str(short.nodes), short.asked, f"{short.most_left} on {short.node}") for short in found
    )
    columns = ("Only missing", "Nodes", "Asked for", "Most that is left")
    return Details((Section(columns=columns, rows=rows, right=("Nodes", "Asked for")),) if rows else (), found)


def shortage_of(resource: str, asked: int, nodes: list[NodeView]) -> Shortage:
    """What these nodes have too little of."""
    lack, name = min((node.requested(resource) - node.allocatable(resource), node.name) for node in nodes)
    return Shortage(resource, _spelled(resource, asked), _spelled(resource, max(0, -lack)), name, len(nodes))


def _spelled(resource: str, amount: int) -> str:
    if resource == "cpu":
        return spell(amount * _NANO_PER_MILLI, Family.DECIMAL)
    family = Family.BINARY if resource in ("memory", "ephemeral-storage") else Family.DECIMAL
    return spell(amount * _NANO, family)
