"""Pods and nodes in a few words. Every method of a builder returns a new one: several may share a beginning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from msgspec.structs import replace

from kubesched.api.affinity import (
    Affinity,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PodAffinity,
    PodAffinityTerm,
    PreferredSchedulingTerm,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)
from kubesched.api.meta import LabelSelector, ObjectMeta, OwnerReference
from kubesched.api.node import ContainerImage, Node, NodeSpec, NodeStatus, Taint
from kubesched.api.pod import (
    Container,
    ContainerPort,
    Pod,
    PodSpec,
    ResourceRequirements,
    SchedulingGate,
    SchedulingGroup,
    Toleration,
)
from kubesched.api.quantity import QuantityText
from kubesched.api.well_known import HOSTNAME, ZONE

Resources = Mapping[str, QuantityText]
Operator = Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
Effect = Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]


def make_pod(name: str, *, namespace: str = "default", uid: str | None = None) -> PodBuilder:
    """A pending pod with one container that asks for nothing."""
    meta = ObjectMeta(name=name, namespace=namespace, uid=f"uid-of-{name}" if uid is None else uid)
    return PodBuilder(Pod(metadata=meta, spec=PodSpec(containers=(Container(name="main"),))))


def make_node(name: str) -> NodeBuilder:
    """An empty node: 4 cpus, 8Gi of memory, room for 110 pods, and its name as hostname."""
    node = Node(metadata=ObjectMeta(name=name, labels={HOSTNAME: name}), spec=NodeSpec(), status=NodeStatus())
    return NodeBuilder(node).capacity(cpu="4", memory="8Gi", pods=110)


@dataclass(frozen=True)
class PodBuilder:
    """A pod in the making."""

    pod: Pod

    def build(self) -> Pod:
        return self.pod

    # -- who it is ----------------------------------------------------------------------------------------------------

    def label(self, labels: Mapping[str, str] | None = None, **more: str) -> PodBuilder:
        return self._meta(labels={**self.pod.metadata.labels, **(labels or {}), **more})

    def annotate(self, annotations: Mapping[str, str] | None = None, **more: str) -> PodBuilder:
        return self._meta(annotations={**self.pod.metadata.annotations, **(annotations or {}), **more})

    def owned_by(self, kind: str, name: str, api_version: str = "apps/v1") -> PodBuilder:
        owner = OwnerReference(api_version=api_version, kind=kind, name=name, controller=True)
        return self._meta(owner_references=(owner,))

    def priority(self, priority: int) -> PodBuilder:
        return self.spec(priority=priority)

    def never_preempting(self) -> PodBuilder:
        return self.spec(preemption_policy="Never")

    def gate(self, name: str) -> PodBuilder:
        return self.spec(scheduling_gates=(*self.pod.spec.scheduling_gates, SchedulingGate(name=name)))

    def group(self, name: str) -> PodBuilder:
        """The PodGroup that it is scheduled with."""
        return self.spec(scheduling_group=SchedulingGroup(pod_group_name=name))

    # -- what it needs ------------------------------------------------------------------------------------------------

    def requests(self, resources: Resources | None = None, **more: QuantityText) -> PodBuilder:
        """What its first container requests."""
        return self._first_container(resources=_requirements(resources, more))

    def image(self, name: str) -> PodBuilder:
        return self._first_container(image=name)

    def host_port(self, port: int, *, ip: str = "", protocol: Literal["TCP", "UDP", "SCTP"] = "TCP") -> PodBuilder:
        claimed = ContainerPort(container_port=port, host_port=port, protocol=protocol, host_ip=ip)
        return self._first_container(ports=(*self.pod.spec.containers[0].ports, claimed))

    def container(self, name: str = "", **requests: QuantityText) -> PodBuilder:
        """One more container."""
        added = Container(name=name, resources=_requirements(None, requests))
        return self.spec(containers=(*self.pod.spec.containers, added))

    def init_container(self, name: str = "", *, sidecar: bool = False, **requests: QuantityText) -> PodBuilder:
        """One more init container; a sidecar keeps running."""
        policy = "Always" if sidecar else ""
        added = Container(name=name, resources=_requirements(None, requests), restart_policy=policy)
        return self.spec(init_containers=(*self.pod.spec.init_containers, added))

    def overhead(self, **resources: QuantityText) -> PodBuilder:
        return self.spec(overhead=resources)

    def pod_level(self, resources: Resources | None = None, **more: QuantityText) -> PodBuilder:
        return self.spec(resources=_requirements(resources, more))

    # -- where it may go ----------------------------------------------------------------------------------------------

    def toleration(
        self,
        key: str = "",
        value: str = "",
        *,
        operator: Literal["Equal", "Exists", "Lt", "Gt", ""] = "",
        effect: Effect | Literal[""] = "",
    ) -> PodBuilder:
        added = Toleration(key=key, operator=operator, value=value, effect=effect)
        return self.spec(tolerations=(*self.pod.spec.tolerations, added))

    def node_selector(self, labels: Mapping[str, str] | None = None, **more: str) -> PodBuilder:
        return self.spec(node_selector={**(labels or {}), **more})

    def requires_node(self, *terms: NodeSelectorTerm) -> PodBuilder:
        """Required node affinity; see `node_term`."""
        old = self._affinity.node_affinity or NodeAffinity()
        selector = NodeSelector(node_selector_terms=terms)
        return self._with_affinity(
            node_affinity=replace(old, required_during_scheduling_ignored_during_execution=selector)
        )

    def prefers_node(self, term: NodeSelectorTerm, *, weight: int = 1) -> PodBuilder:
        """One more preferred term of node affinity."""
        old = self._affinity.node_affinity or NodeAffinity()
        terms = old.preferred_during_scheduling_ignored_during_execution
        added = PreferredSchedulingTerm(weight=weight, preference=term)
        return self._with_affinity(
            node_affinity=replace(old, preferred_during_scheduling_ignored_during_execution=(*terms, added))
        )

    def pod_affinity(self, topology: str, *, weight: int = 0, **labels: str) -> PodBuilder:
        """Wants to be near pods with these labels; with a weight it merely prefers to."""
        return self.pod_affinity_term(pod_term(topology, labels), weight=weight)

    def pod_anti_affinity(self, topology: str, *, weight: int = 0, **labels: str) -> PodBuilder:
        """Wants to be far from pods with these labels; with a weight it merely prefers to."""
        return self.pod_anti_affinity_term(pod_term(topology, labels), weight=weight)

    def pod_affinity_term(self, term: PodAffinityTerm, *, weight: int = 0) -> PodBuilder:
        return self._with_affinity(pod_affinity=_with_term(self._affinity.pod_affinity, term, weight))

    def pod_anti_affinity_term(self, term: PodAffinityTerm, *, weight: int = 0) -> PodBuilder:
        return self._with_affinity(pod_anti_affinity=_with_term(self._affinity.pod_anti_affinity, term, weight))

    def spread(self, topology: str, *, max_skew: int = 1, soft: bool = False, **labels: str) -> PodBuilder:
        """One more spread constraint, over pods with these labels."""
        return self.spread_constraint(
            TopologySpreadConstraint(
                max_skew=max_skew,
                topology_key=topology,
                when_unsatisfiable="ScheduleAnyway" if soft else "DoNotSchedule",
                label_selector=LabelSelector(match_labels=labels),
            )
        )

    def spread_constraint(self, constraint: TopologySpreadConstraint) -> PodBuilder:
        return self.spec(topology_spread_constraints=(*self.pod.spec.topology_spread_constraints, constraint))

    # -- where it is --------------------------------------------------------------------------------------------------

    def on(self, node: str) -> PodBuilder:
        return self.spec(node_name=node)

    def nominated(self, node: str) -> PodBuilder:
        return self.status(nominated_node_name=node)

    def started(self, when: str) -> PodBuilder:
        return self.status(start_time=when)

    def terminating(self) -> PodBuilder:
        return self._meta(deletion_timestamp="2026-01-01T00:00:00Z")

    # -- anything else ------------------------------------------------------------------------------------------------

    def spec(self, **fields: Any) -> PodBuilder:
        return PodBuilder(replace(self.pod, spec=replace(self.pod.spec, **fields)))

    def status(self, **fields: Any) -> PodBuilder:
        return PodBuilder(replace(self.pod, status=replace(self.pod.status, **fields)))

    def _meta(self, **fields: Any) -> PodBuilder:
        return PodBuilder(replace(self.pod, metadata=replace(self.pod.metadata, **fields)))

    def _first_container(self, **fields: Any) -> PodBuilder:
        first, *others = self.pod.spec.containers
        return self.spec(containers=(replace(first, **fields), *others))

    @property
    def _affinity(self) -> Affinity:
        return self.pod.spec.affinity or Affinity()

    def _with_affinity(self, **fields: Any) -> PodBuilder:
        return self.spec(affinity=replace(self._affinity, **fields))


@dataclass(frozen=True)
class NodeBuilder:
    """A node in the making."""

    node: Node

    def build(self) -> Node:
        return self.node

    def capacity(self, resources: Resources | None = None, **more: QuantityText) -> NodeBuilder:
        """What the node offers; what is not mentioned stays as it is."""
        amounts = {**self.node.status.allocatable, **(resources or {}), **more}
        return self.status(allocatable=amounts)

    def label(self, labels: Mapping[str, str] | None = None, **more: str) -> NodeBuilder:
        merged = {**self.node.metadata.labels, **(labels or {}), **more}
        return NodeBuilder(replace(self.node, metadata=replace(self.node.metadata, labels=merged)))

    def zone(self, name: str) -> NodeBuilder:
        return self.label({ZONE: name})

    def taint(self, key: str, value: str = "", effect: Effect = "NoSchedule") -> NodeBuilder:
        return self.spec(taints=(*self.node.spec.taints, Taint(key=key, value=value, effect=effect)))

    def cordoned(self) -> NodeBuilder:
        return self.spec(unschedulable=True)

    def image(self, *names: str, size: int) -> NodeBuilder:
        return self.status(images=(*self.node.status.images, ContainerImage(names=names, size_bytes=size)))

    def declares(self, *features: str) -> NodeBuilder:
        return self.status(declared_features=features)

    def spec(self, **fields: Any) -> NodeBuilder:
        return NodeBuilder(replace(self.node, spec=replace(self.node.spec, **fields)))

    def status(self, **fields: Any) -> NodeBuilder:
        return NodeBuilder(replace(self.node, status=replace(self.node.status, **fields)))


def node_term(key: str, operator: Operator, *values: str) -> NodeSelectorTerm:
    """A term of node affinity on one label, or on the field metadata.name."""
    requirement = NodeSelectorRequirement(key=key, operator=operator, values=values)
    if key == "metadata.name":
        return NodeSelectorTerm(match_fields=(requirement,))
    return NodeSelectorTerm(match_expressions=(requirement,))


def pod_term(
    topology: str,
    labels: Mapping[str, str],
    *,
    namespaces: tuple[str, ...] = (),
    namespace_selector: LabelSelector | None = None,
) -> PodAffinityTerm:
    """A term of pod affinity on pods with these labels; by default in the pod's own namespace."""
    return PodAffinityTerm(
        topology_key=topology,
        label_selector=LabelSelector(match_labels=dict(labels)),
        namespaces=namespaces,
        namespace_selector=namespace_selector,
    )


def _requirements(resources: Resources | None, more: Resources) -> ResourceRequirements:
    return ResourceRequirements(requests={**(resources or {}), **more})


def _with_term(affinity: PodAffinity | None, term: PodAffinityTerm, weight: int) -> PodAffinity:
    old = affinity or PodAffinity()
    if weight:
        soft = old.preferred_during_scheduling_ignored_during_execution
        added = WeightedPodAffinityTerm(weight=weight, pod_affinity_term=term)
        return replace(old, preferred_during_scheduling_ignored_during_execution=(*soft, added))
    hard = old.required_during_scheduling_ignored_during_execution
    return replace(old, required_during_scheduling_ignored_during_execution=(*hard, term))
