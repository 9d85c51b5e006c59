"""Nodes of edits: which nodes a text names, a new node like another, pods that leave with a node; and node pools."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace

from kubesched.api.devices import ResourceSlice
from kubesched.api.meta import KubeObject
from kubesched.api.node import Node, Taint
from kubesched.api.pod import Pod
from kubesched.api.storage import CSINode
from kubesched.api.well_known import HOSTNAME, POOL_LABELS, REGION, ZONE
from kubesched.state.cluster import ClusterState

PASSING_TAINTS = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/", "ToBeDeletedByClusterAutoscaler")
"""Taints of one node in its present state, which a new one would not have."""
INSTANCE_TYPE = "node.kubernetes.io/instance-type"

SMALL_CLUSTER = 30

_NUMBER = re.compile(r"[-.]?[0-9a-f]*\d[0-9a-f]*$")


def lasting(taints: tuple[Taint, ...]) -> tuple[Taint, ...]:
    """The taints that a new node of the same pool has, too."""
    return tuple(taint for taint in taints if not taint.key.startswith(PASSING_TAINTS))


def is_daemon(pod: Pod) -> bool:
    """Whether a DaemonSet made the pod, for its node alone."""
    owner = pod.metadata.controller
    return owner is not None and owner.kind == "DaemonSet"


def belongs_to(obj: KubeObject, node: str) -> bool:
    """Whether the object belongs to this node alone (a CSINode, a ResourceSlice): a new node gets one like it."""
    match obj:
        case CSINode():
            return obj.name == node
        case ResourceSlice():
            return obj.spec.node_name == node
        case Pod():
            return obj.spec.node_name == node and is_daemon(obj)
    return False


def new_node(model: Node, name: str, belongings: Iterable[KubeObject] = ()) -> Iterator[KubeObject]:
    """The node, and its own of what belongs to the model, daemons included."""
    labels = {**model.metadata.labels, HOSTNAME: name} if HOSTNAME in model.metadata.labels else model.metadata.labels
    yield replace(
        model,
        metadata=replace(model.metadata, name=name, uid=f"node/{name}", labels=labels, resource_version=""),
        spec=replace(model.spec, taints=lasting(model.spec.taints), unschedulable=False, provider_id=""),
    )
    for obj in belongings:
        meta = replace(
            obj.metadata, name=f"{obj.name}-{name}", uid=f"{obj.metadata.uid or obj.key}/{name}", resource_version=""
        )
        match obj:
            case CSINode():
                yield replace(obj, metadata=replace(meta, name=name))
            case ResourceSlice():
                pool = replace(obj.spec.pool, name=f"{obj.spec.pool.name}-{name}")
                yield replace(obj, metadata=meta, spec=replace(obj.spec, node_name=name, pool=pool))
            case Pod():
                yield replace(obj, metadata=meta, spec=replace(obj.spec, node_name=name))


MIRROR = "kubernetes.io/config.mirror"
"""Marks a pod that a kubelet runs from a file of its own."""
_SHOWN = 8
SHORT = {"zone": (ZONE,), "region": (REGION,), "pool": POOL_LABELS, "node": (HOSTNAME,)}
"""Labels that may be meant by a short key, where nodes have no label of that very name."""


def nodes_meant(nodes: Iterable[Node], text: str) -> set[str]:
    """The nodes with a label, for `key=value`; else the node of that name. None if there are no such nodes.

    `zone=a`, `region=a` and `pool=a` mean the labels that Kubernetes and its providers have for these.
    """
    key, equals, value = text.partition("=")
    if not equals:
        return {node.name for node in nodes if node.name == text}
    return {node.name for node in nodes if label_of(node, key) == value}


def label_of(node: Node, key: str) -> str | None:
    """The value of a label, which may be named by a short key; None if the node does not have it."""
    return next((value for label in (key, *SHORT.get(key, ())) if (value := node.metadata.labels.get(label))), None)


def whats_wrong(nodes: Collection[Node], text: str) -> str:
    """Why the text means no node: which label is missing and which there are, or which name is near."""
    key, equals, value = text.partition("=")
    if not equals:
        near = difflib.get_close_matches(text, [node.name for node in nodes], n=1)
        return f"there is no such node{f'; did you mean {near[0]}?' if near else ''}"
    keys = (key, *SHORT.get(key, ()))
    key = next((label for label in keys if any(label in node.metadata.labels for node in nodes)), key)
    values = sorted({node.metadata.labels[key] for node in nodes if key in node.metadata.labels})
    if values:
        some = ", ".join(values[:_SHOWN]) + (", ..." if len(values) > _SHOWN else "")
        return f"no node has the label {key} with the value {value!r}; there are {some}"
    near = difflib.get_close_matches(key, {key for node in nodes for key in node.metadata.labels}, n=1, cutoff=0.3)
    return f"no node has a label {key!r}{f'; did you mean {near[0]}?' if near else ''}"


def leaves(pod: Pod) -> bool:
    """Whether a drain evicts the pod. DaemonSet and static pods stay, as with `kubectl drain --ignore-daemonsets`."""
    return not (is_daemon(pod) or pod.is_finished or pod.is_terminating or MIRROR in pod.metadata.annotations)


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
    objects = (*state.objects.all(CSINode), *state.objects.all(ResourceSlice), *pods)
    belongings = [obj for obj in objects if belongs_to(obj, model.name)]
    return new_node(model, f"{model.name}-new-{number}", belongings)
