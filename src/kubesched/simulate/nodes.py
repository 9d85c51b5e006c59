"""Nodes that come and go: new ones like a model, those that a text means, and the pods that a drain evicts."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Iterator

from msgspec.structs import replace

from kubesched.api.devices import ResourceSlice
from kubesched.api.meta import KubeObject
from kubesched.api.node import Node, Taint
from kubesched.api.pod import Pod
from kubesched.api.storage import CSINode
from kubesched.api.well_known import HOSTNAME, POOL_LABELS, REGION, ZONE

PASSING_TAINTS = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/", "ToBeDeletedByClusterAutoscaler")
"""Taints of one node in its present state, which a new one would not have."""


def lasting(taints: tuple[Taint, ...]) -> tuple[Taint, ...]:
    """Those that a new node of the same sort has."""
    return tuple(taint for taint in taints if not taint.key.startswith(PASSING_TAINTS))


def belongs_to(obj: KubeObject, node: str) -> bool:
    """Whether the object is about this node alone, so that a new node has one like it."""
    match obj:
        case CSINode():
            return obj.name == node
        case ResourceSlice():
            return obj.spec.node_name == node
        case Pod():
            owner = obj.metadata.controller
            return obj.spec.node_name == node and owner is not None and owner.kind == "DaemonSet"
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


_MIRROR = "kubernetes.io/config.mirror"
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
    return next((found for each in (key, *SHORT.get(key, ())) if (found := node.metadata.labels.get(each))), None)


def whats_wrong(nodes: Collection[Node], text: str) -> str:
    """Why the text means no node: which label is missing and which there are, or which name is near."""
    key, equals, value = text.partition("=")
    if not equals:
        near = difflib.get_close_matches(text, [node.name for node in nodes], n=1)
        return f"there is no such node{f'; did you mean {near[0]}?' if near else ''}"
    keys = (key, *SHORT.get(key, ()))
    key = next((each for each in keys if any(each in node.metadata.labels for node in nodes)), key)
    values = sorted({node.metadata.labels[key] for node in nodes if key in node.metadata.labels})
    if values:
        some = ", ".join(values[:_SHOWN]) + (", ..." if len(values) > _SHOWN else "")
        return f"no node has the label {key} with the value {value!r}; there are {some}"
    near = difflib.get_close_matches(key, {key for node in nodes for key in node.metadata.labels}, n=1, cutoff=0.3)
    return f"no node has a label {key!r}{f'; did you mean {near[0]}?' if near else ''}"


def leaves(pod: Pod) -> bool:
    """Daemons and what the kubelet runs by itself stay, as with `kubectl drain --ignore-daemonsets`."""
    owner = pod.metadata.controller
    is_daemon = owner is not None and owner.kind == "DaemonSet"
    return not (is_daemon or pod.is_finished or pod.is_terminating or _MIRROR in pod.metadata.annotations)
