"""Nodes that can be bought, as objects for the engine: each with the daemons that it would run."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from itertools import count

from msgspec.structs import replace

from kubesched.api.meta import KubeObject, ObjectMeta, OwnerReference
from kubesched.api.node import Node, NodeSpec, NodeStatus
from kubesched.api.pod import Pod
from kubesched.api.well_known import HOSTNAME
from kubesched.planning.kinds import KindReader
from kubesched.planning.oracle import Oracle
from kubesched.planning.prices import InstanceType
from kubesched.simulate.cluster import ClusterModel
from kubesched.simulate.kinds import DaemonSet
from kubesched.simulate.placement import model_of


@dataclass(frozen=True, eq=False)
class NodeOffers:
    """Types of nodes, and the daemons of each."""

    types: tuple[InstanceType, ...]
    daemons: tuple[tuple[Pod, ...], ...]
    """By type."""

    @classmethod
    def to(cls, cluster: ClusterModel, types: Sequence[InstanceType]) -> NodeOffers:
        """The offers for a cluster: a trial with a node of each type shows which DaemonSets have a pod there."""
        templates = list(filter(None, map(model_of, cluster.all(DaemonSet))))
        with Oracle(cluster) as oracle:
            rows = oracle.add_objects(_node(type_, f"offer/{t}") for t, type_ in enumerate(types))
            reader = KindReader(cluster)
            fits = [reader.possible_rows(pod)[rows] for pod in templates]
        daemons = (tuple(pod for pod, runs in zip(templates, fits) if runs[t]) for t in range(len(types)))
        return cls(tuple(types), tuple(daemons))

    def objects(self, t: int, name: str) -> list[KubeObject]:
        """A node of the type with its daemons."""
        return [_node(self.types[t], name), *(_daemon_on(pod, name) for pod in self.daemons[t])]

    def new_name(self, t: int, taken: Container[str]) -> str:
        """For one more node of the type."""
        title = self.types[t].name.replace("/", "-")
        return next(name for i in count() if (name := f"{title}-{i}") not in taken)


def _node(type_: InstanceType, name: str) -> Node:
    labels = {**type_.labels, HOSTNAME: name}
    amounts: dict[str, str | int | float] = {**type_.allocatable}
    return Node(
        api_version="v1",
        kind="Node",
        metadata=ObjectMeta(name=name, uid=f"node/{name}", labels=labels),
        spec=NodeSpec(taints=type_.taints),
        status=NodeStatus(allocatable=amounts),
    )


def _daemon_on(template: Pod, node: str) -> Pod:
    owner = OwnerReference(api_version="apps/v1", kind="DaemonSet", name=template.name, controller=True)
    name = f"{template.name}-{node}"
    meta = replace(template.metadata, name=name, uid=f"{template.key}/{node}", owner_references=(owner,))
    return replace(template, metadata=meta, spec=replace(template.spec, node_name=node))
