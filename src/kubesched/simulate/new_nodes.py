"""A new node like one that is there, under its own name, with what drivers and daemons add to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from kubesched.api.devices import ResourceSlice
from kubesched.api.meta import KubeObject
from kubesched.api.node import Node, Taint
from kubesched.api.pod import Pod
from kubesched.api.storage import CSINode
from kubesched.api.well_known import HOSTNAME

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
