"""An overview of a cluster for agents: nodes by pool and zone, how full they are, and how many pods wait."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from kubesched.simulate.cluster import ClusterModel
from kubesched.simulate.meter import UtilisationMeter
from kubesched.simulate.nodes import pool_of


@dataclass(frozen=True, slots=True)
class RequestedShare:
    """What is requested of a resource, as a fraction of what nodes offer."""

    resource: str
    requested: float


@dataclass(frozen=True, slots=True)
class ClusterOverview:
    """The cluster as it is now."""

    nodes: int
    unschedulable_nodes: int
    """Cordoned ones."""
    zones: dict[str, int]
    """Nodes by zone."""
    pools: dict[str, int]
    """Nodes by pool."""
    pods: int
    """Pods that have a node."""
    pending: int
    pending_by_namespace: dict[str, int]
    requested: tuple[RequestedShare, ...]
    profiles: tuple[str, ...]
    """The schedulers that the configuration has profiles for."""


def overview(cluster: ClusterModel) -> ClusterOverview:
    """Counts of the cluster as it is now. Nothing is changed."""
    state, pending = cluster.state, cluster.pending()
    namespaces = Counter(pod.namespace for pod in pending)
    nodes = [node for node in state.nodes.nodes if node is not None]
    zones: dict[str, int] = {}
    used: tuple[RequestedShare, ...] = ()
    if nodes:
        meter = UtilisationMeter(state)
        meter.read(0.0, running=0, pending=0, placed=0)
        zones = {zone.name: zone.nodes for zone in meter.by_zone(0.0)}
        shares = meter.total(0.0).resources
        used = tuple(RequestedShare(name, round(share.end, 4)) for name, share in shares.items())
    return ClusterOverview(
        nodes=len(nodes),
        unschedulable_nodes=sum(node.spec.unschedulable for node in nodes),
        zones=zones,
        pools=dict(Counter(map(pool_of, nodes)).most_common()),
        pods=int(state.nodes.pod_count[state.nodes.live].sum()),
        pending=len(pending),
        pending_by_namespace=dict(namespaces.most_common()),
        requested=used,
        profiles=tuple(cluster.profiles),
    )
