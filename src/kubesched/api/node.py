"""Nodes: what they offer, what keeps pods away, what they already hold."""

from __future__ import annotations

from typing import Literal

from kubesched.api.meta import KubeObject, Record
from kubesched.api.pod import ResourceList


class Taint(Record, frozen=True):
    """Keeps away pods that do not tolerate it."""

    key: str
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]
    value: str = ""


class ContainerImage(Record, frozen=True):
    """An image present on the node, under all its names."""

    names: tuple[str, ...] = ()
    size_bytes: int = 0


class NodeCondition(Record, frozen=True):
    """One observed condition."""

    type: str = ""
    status: str = ""


class NodeSpec(Record, frozen=True):
    """What an operator said about the node."""

    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()
    provider_id: str = ""


class NodeStatus(Record, frozen=True):
    """What the kubelet said about the node. Of its capacity only what is allocatable counts."""

    allocatable: ResourceList = {}
    images: tuple[ContainerImage, ...] = ()
    conditions: tuple[NodeCondition, ...] = ()
    declared_features: tuple[str, ...] = ()


class Node(KubeObject, frozen=True):
    """A machine that runs pods."""

    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()
