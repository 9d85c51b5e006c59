"""Pools: the nodes that an operator, or an autoscaler, adds and removes together; and one more node of a pool."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from kubesched.api.devices import ResourceSlice
from kubesched.api.meta import KubeObject
from kubesched.api.node import Node, Taint
from kubesched.api.storage import CSINode
from kubesched.api.well_known import POOL_LABELS, ZONE
from kubesched.simulate.nodes import belongs_to, lasting, new_node
from kubesched.state.cluster import ClusterState

INSTANCE_TYPE = "node.kubernetes.io/instance-type"

SMALL_CLUSTER = 30

_NUMBER = re.compile(r"[-.]?[0-9a-f]*\d[0-9a-f]*$")


@dataclass(frozen=True, slots=True)
class NodePool:
    """Some nodes, and what a new one in each of their zones would be like."""

    name: str
    models: tuple[Node, ...]
    """A node per zone and list of taints."""
    others: tuple[Node, ...] = ()
    """Nodes that differ from those in their labels or in what they offer; only of a small cluster."""

    @property
    def title(self) -> str:
        return f"pool {self.name}" if self.name else f"the kind of {self.models[0].name}"


def pool_of(node: Node) -> str:
    """The name of a node's pool: what a label says, its type, or what is left of its name without a number."""
    labels = node.metadata.labels
    for key in (*POOL_LABELS, INSTANCE_TYPE):
        if labels.get(key):
            return labels[key]
    return _NUMBER.sub("", node.name)


def pools_of(state: ClusterState) -> tuple[NodePool, ...]:
    """All pools by name. The node that offers most stands for others of its zone with the same taints."""
    table = state.nodes
    members: dict[str, dict[tuple[str, tuple[Taint, ...]], list[Node]]] = {}
    for row in np.flatnonzero(table.live[: table.size]).tolist():
        node = table.node(row)
        alike = node.metadata.labels.get(ZONE, ""), lasting(node.spec.taints)
        members.setdefault(pool_of(node), {}).setdefault(alike, []).append(node)
    return tuple(_pool(name, alike, state) for name, alike in sorted(members.items()))


def _pool(name: str, alike: Mapping[tuple[str, tuple[Taint, ...]], list[Node]], state: ClusterState) -> NodePool:
    keys = sorted(alike, key=lambda key: (key[0], len(key[1])))
    models = [max(alike[key], key=lambda node: _offers(state, node)) for key in keys]
    others = [node for nodes in alike.values() for node in nodes if node not in models]
    return NodePool(name, tuple(models), tuple(others) if state.nodes.live_count <= SMALL_CLUSTER else ())


def _offers(state: ClusterState, node: Node) -> tuple[int, ...]:
    return tuple(state.nodes.allocatable[:, state.nodes.row_of[node.name]].tolist())


def one_more(state: ClusterState, model: Node, number: int = 1) -> Iterator[KubeObject]:
    """A new node like the model, empty but for its daemons; with what drivers say about it."""
    row = state.nodes.row_of[model.name]
    pods = (placed.pod for placed in state.pods.pods_on(row))
    known = (*state.objects.all(CSINode), *state.objects.all(ResourceSlice), *pods)
    belongings = [obj for obj in known if belongs_to(obj, model.name)]
    return new_node(model, f"{model.name}-new-{number}", belongings)
