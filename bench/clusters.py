"""The shapes that are measured: those of kube-scheduler's published figures, and a few of our own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec.structs import replace

from kubesched.api.affinity import (
    Affinity,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PodAffinity,
    PodAffinityTerm,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)
from kubesched.api.meta import LabelSelector, ObjectMeta
from kubesched.api.node import Node, NodeStatus
from kubesched.api.pod import Container, Pod, PodSpec, PodStatus, ResourceRequirements, Volume
from kubesched.state.cluster import ClusterState

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
ZONES = 10

PodMaker = Callable[[int], Pod]


def node(i: int) -> Node:
    """A node of 32 cpus in one of ten zones."""
    name = f"node-{i:05d}"
    offered: dict[str, str | int | float] = {
        "cpu": "32",
        "memory": "256Gi",
        "pods": "110",
        "ephemeral-storage": "200Gi",
    }
    labels = {
        HOSTNAME: name,
        ZONE: f"zone-{i % ZONES}",
        "topology.kubernetes.io/region": "region-1",
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
    }
    return Node(metadata=ObjectMeta(name=name, labels=labels), status=NodeStatus(allocatable=offered))


def empty_cluster(nodes: int) -> ClusterState:
    state = ClusterState()
    for i in range(nodes):
        state.apply(node(i))
    return state


def full_cluster(nodes: int, pods_per_node: int = 10) -> ClusterState:
    """Every node filled to the last cpu with pods of low priority, started one after another."""
    state = empty_cluster(nodes)
    cpu = f"{32000 // pods_per_node}m"
    for i in range(nodes * pods_per_node):
        started = f"2026-01-{1 + i % 28:02d}T{i % 24:02d}:{i % 60:02d}:00Z"
        status = PodStatus(phase="Running", start_time=started)
        state.apply(pod(i, "filler", cpu=cpu, node_name=f"node-{i % nodes:05d}", status=status, priority=i % 3))
    return state


def pod(
    i: int,
    kind: str,
    *,
    cpu: str = "100m",
    memory: str = "500Mi",
    affinity: Affinity | None = None,
    spread: tuple[TopologySpreadConstraint, ...] = (),
    node_name: str = "",
    priority: int = 0,
    status: PodStatus = PodStatus(),  # noqa: B008  (frozen)
) -> Pod:
    """One container, a label of its kind, no owner and no service; its token in a volume of its own, as an API server
    mounts it into nearly every pod."""
    requests = ResourceRequirements(requests={"cpu": cpu, "memory": memory})
    return Pod(
        metadata=ObjectMeta(name=f"{kind}-{i}", namespace="default", uid=f"{kind}-{i}", labels={"app": kind}),
        spec=PodSpec(
            containers=(Container(name="c", image="registry.example/app:1", resources=requests),),
            affinity=affinity,
            topology_spread_constraints=spread,
            node_name=node_name,
            priority=priority,
            volumes=(Volume(name=f"kube-api-access-{i}"),),
        ),
        status=status,
    )


def manifest(record: Node | Pod) -> dict[str, Any]:
    """The same as an API server is given it."""
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(record))
    return plain


def _like(kind: str) -> LabelSelector:
    return LabelSelector(match_labels={"app": kind})


def spread_over_zones(kind: str, when: str) -> PodMaker:
    constraint = TopologySpreadConstraint(
        max_skew=5,
        topology_key=ZONE,
        when_unsatisfiable=when,  # type: ignore[arg-type]
        label_selector=_like(kind),
    )
    return lambda i: pod(i, kind, spread=(constraint,))


def in_some_zones(kind: str) -> PodMaker:
    zones = NodeSelectorRequirement(key=ZONE, operator="In", values=("zone-1", "zone-2"))
    required = NodeSelector(node_selector_terms=(NodeSelectorTerm(match_expressions=(zones,)),))
    affinity = Affinity(node_affinity=NodeAffinity(required_during_scheduling_ignored_during_execution=required))
    return lambda i: pod(i, kind, affinity=affinity)


def of_daemon_set(i: int) -> Pod:
    """A pod for one node, as the controller of DaemonSets makes them: no two are alike."""
    name = NodeSelectorRequirement(key="metadata.name", operator="In", values=(f"node-{i:05d}",))
    required = NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(name,)),))
    affinity = Affinity(node_affinity=NodeAffinity(required_during_scheduling_ignored_during_execution=required))
    return pod(i, "daemonset", affinity=affinity)


def of_indexed_job(i: int) -> Pod:
    """A pod with a label that no other has, as those of an indexed Job or a StatefulSet."""
    made = pod(i, "indexed")
    labels = {**made.metadata.labels, "batch.kubernetes.io/job-completion-index": str(i)}
    return replace(made, metadata=replace(made.metadata, labels=labels))


def near_its_own(kind: str) -> PodMaker:
    term = PodAffinityTerm(topology_key=HOSTNAME, label_selector=_like(kind))
    preferred = (WeightedPodAffinityTerm(weight=1, pod_affinity_term=term),)
    affinity = Affinity(pod_affinity=PodAffinity(preferred_during_scheduling_ignored_during_execution=preferred))
    return lambda i: pod(i, kind, affinity=affinity)


def away_from_its_own(kind: str) -> PodMaker:
    term = PodAffinityTerm(topology_key=HOSTNAME, label_selector=_like(kind))
    affinity = Affinity(pod_anti_affinity=PodAffinity(required_during_scheduling_ignored_during_execution=(term,)))
    return lambda i: pod(i, kind, affinity=affinity)


PLACED: dict[str, PodMaker] = {
    "basic": lambda i: pod(i, "basic"),
    "node-affinity": in_some_zones("node-affinity"),
    "spread-soft": spread_over_zones("spread-soft", "ScheduleAnyway"),
    "spread-hard": spread_over_zones("spread-hard", "DoNotSchedule"),
    "preferred-affinity": near_its_own("preferred-affinity"),
    "required-anti-affinity": away_from_its_own("required-anti-affinity"),
    "fills-a-node": lambda i: pod(i, "fills-a-node", cpu="20"),
    "daemonset": of_daemon_set,
    "indexed": of_indexed_job,
}
"""Pods that are placed one after another on an empty cluster."""
