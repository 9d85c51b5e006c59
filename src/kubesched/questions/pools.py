"""Pools: the nodes that an operator, or an autoscaler, adds and removes together; and one more node of a pool."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace

from kubesched.api.devices import ResourceSlice
from kubesched.api.meta import KubeObject
from kubesched.api.node import Node, Taint
from kubesched.api.pod import Pod
from kubesched.api.storage import CSINode
from kubesched.api.well_known import HOSTNAME, ZONE
from kubesched.state.cluster import ClusterState

POOL_LABELS = (
    "karpenter.sh/nodepool",
    "cloud.google.com/gke-nodepool",
    "eks.amazonaws.com/nodegroup",
    "alpha.eksctl.io/nodegroup-name",
    "kubernetes.azure.com/agentpool",
    "agentpool",
    "doks.digitalocean.com/node-pool",
    "node-pool",
    "nodepool",
    "pool",
)
"""Labels that name the pool of a node, the most telling first."""
INSTANCE_TYPE = "node.kubernetes.io/instance-type"

PASSING_TAINTS = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/", "ToBeDeletedByClusterAutoscaler")
"""Taints of one node in its present state, which a new one would not have."""

SMALL_CLUSTER = 30

_NUMBER = re.compile(r"[-.]?[0-9a-f]*\d[0-9a-f]*$")


@dataclass(frozen=True, slots=True)
class Pool:
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


def pools_of(state: ClusterState) -> tuple[Pool, ...]:
    """All pools by name. The node that offers most stands for others of its zone with the same taints."""
    table = state.nodes
    members: dict[str, dict[tuple[str, tuple[Taint, ...]], list[Node]]] = {}
    for row in np.flatnonzero(table.live[: table.size]).tolist():
        node = table.node(row)
        alike = node.metadata.labels.get(ZONE, ""), _lasting(node.spec.taints)
        members.setdefault(pool_of(node), {}).setdefault(alike, []).append(node)
    return tuple(_pool(name, alike, state) for name, alike in sorted(members.items()))


def _pool(name: str, alike: Mapping[tuple[str, tuple[Taint, ...]], list[Node]], state: ClusterState) -> Pool:
    keys = sorted(alike, key=lambda key: (key[0], len(key[1])))
    models = [max(alike[key], key=lambda node: _offers(state, node)) for key in keys]
    others = [node for nodes in alike.values() for node in nodes if node not in models]
    return Pool(name, tuple(models), tuple(others) if state.nodes.live_count <= SMALL_CLUSTER else ())


def _lasting(taints: tuple[Taint, ...]) -> tuple[Taint, ...]:
    return tuple(taint for taint in taints if not taint.key.startswith(PASSING_TAINTS))


def _offers(state: ClusterState, node: Node) -> tuple[int, ...]:
    return tuple(state.nodes.allocatable[:, state.nodes.row_of[node.name]].tolist())


def one_more(state: ClusterState, model: Node, number: int = 1) -> Iterator[KubeObject]:
    """A new node like the model, empty but for its daemons; with what drivers say about it."""
    name = f"{model.name}-new-{number}"
    labels = {**model.metadata.labels, HOSTNAME: name} if HOSTNAME in model.metadata.labels else model.metadata.labels
    yield replace(
        model,
        metadata=replace(model.metadata, name=name, uid=f"node/{name}", labels=labels, resource_version=""),
        spec=replace(model.spec, taints=_lasting(model.spec.taints), unschedulable=False, provider_id=""),
    )
    csi_node = state.objects.get(CSINode, model.name)
    if csi_node is not None:
        yield replace(csi_node, metadata=replace(csi_node.metadata, name=name, uid=f"csinode/{name}"))
    for part in state.objects.all(ResourceSlice):
        if part.spec.node_name == model.name:
            slice_name = f"{part.name}-new-{number}"
            pool = replace(part.spec.pool, name=f"{part.spec.pool.name}-new-{number}")
            yield replace(
                part,
                metadata=replace(part.metadata, name=slice_name, uid=f"slice/{slice_name}"),
                spec=replace(part.spec, node_name=name, pool=pool),
            )
    for placed in state.pods.pods_on(state.nodes.row_of[model.name]):
        owner = placed.pod.metadata.controller
        if owner is not None and owner.kind == "DaemonSet":
            yield _daemon(placed.pod, name)


def _daemon(pod: Pod, node: str) -> Pod:
    meta = replace(pod.metadata, name=f"{pod.name}-{node}", uid=f"{pod.uid or pod.key}/{node}", resource_version="")
    return replace(pod, metadata=meta, spec=replace(pod.spec, node_name=node))
