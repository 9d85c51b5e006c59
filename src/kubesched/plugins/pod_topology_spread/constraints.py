"""The spread constraints that apply to a pod: its own, or the defaults with a selector from its services and owner."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kubesched.api.affinity import TopologySpreadConstraint
from kubesched.api.meta import KubeObject, OwnerReference
from kubesched.api.pod import Pod
from kubesched.api.selectors import Requirement, Selector, compile_selector, selector_from_labels
from kubesched.api.well_known import HOSTNAME, ZONE
from kubesched.api.workloads import ReplicaSet, ReplicationController, Service, StatefulSet
from kubesched.config.args import PodTopologySpreadArgs
from kubesched.framework.cycle import Cycle
from kubesched.state.objects import ObjectStore

SYSTEM_DEFAULTS = (
    TopologySpreadConstraint(topology_key=HOSTNAME, when_unsatisfiable="ScheduleAnyway", max_skew=3),
    TopologySpreadConstraint(topology_key=ZONE, when_unsatisfiable="ScheduleAnyway", max_skew=5),
)

_KINDS_WITH_SELECTORS: tuple[type[KubeObject], ...] = (Service, ReplicationController, ReplicaSet, StatefulSet)


class SpreadConstraint(NamedTuple):
    """One constraint, compiled."""

    max_skew: int
    topology_key: str
    selector: Selector
    min_domains: int
    honors_affinity: bool
    honors_taints: bool


ByAction = dict[str, tuple[SpreadConstraint, ...]]
"""Constraints by their whenUnsatisfiable."""


class SpreadConstraints:
    """Finds the constraints of pods under one configuration."""

    def __init__(self, args: PodTopologySpreadArgs, *, match_label_keys: bool = True) -> None:
        self.system_defaulted = args.defaulting_type == "System"
        self._defaults = SYSTEM_DEFAULTS if self.system_defaulted else args.default_constraints
        self._match_label_keys = match_label_keys
        self._actions_by_default = {constraint.when_unsatisfiable for constraint in self._defaults}

    def hard(self, cycle: Cycle) -> tuple[SpreadConstraint, ...]:
        """The constraints that filter nodes: `DoNotSchedule`."""
        return self._of(cycle, "DoNotSchedule")

    def soft(self, cycle: Cycle) -> tuple[SpreadConstraint, ...]:
        """The constraints that only score nodes: `ScheduleAnyway`."""
        return self._of(cycle, "ScheduleAnyway")

    def _of(self, cycle: Cycle, action: str) -> tuple[SpreadConstraint, ...]:
        if cycle.pod.spec.topology_spread_constraints:
            return cycle.shared_facts.derived(self._compile_own, cycle.pod).get(action, ())
        return self._by_default(cycle).get(action, ()) if action in self._actions_by_default else ()

    def _by_default(self, cycle: Cycle) -> ByAction:
        pod, objects = cycle.pod, cycle.state.objects
        if not pod.metadata.owner_references and not objects.in_namespace(Service, pod.namespace):
            return {}
        # The same for all equivalent pods that have the same owners, until one of the objects looked at changes.
        versions = tuple(map(objects.version, _KINDS_WITH_SELECTORS))
        valid_for = (pod.namespace, pod.metadata.owner_references, versions)
        return cycle.shared_facts.derived_at(valid_for, self._compile_defaults, cycle)

    def _compile_own(self, pod: Pod) -> ByAction:
        return self._compile(pod.spec.topology_spread_constraints, pod)

    def _compile_defaults(self, cycle: Cycle) -> ByAction:
        selector = default_selector(cycle.pod, cycle.state.objects)
        return {} if selector.is_empty else self._compile(self._defaults, cycle.pod, selector)

    def _compile(
        self, constraints: Iterable[TopologySpreadConstraint], pod: Pod, selector: Selector | None = None
    ) -> ByAction:
        by_action: dict[str, list[SpreadConstraint]] = {}
        for c in constraints:
            compiled = SpreadConstraint(
                max_skew=c.max_skew,
                topology_key=c.topology_key,
                selector=self._selector(c, pod) if selector is None else selector,
                min_domains=1 if c.min_domains is None else c.min_domains,
                honors_affinity=c.node_affinity_policy != "Ignore",
                honors_taints=c.node_taints_policy == "Honor",
            )
            by_action.setdefault(c.when_unsatisfiable, []).append(compiled)
        return {action: tuple(compiled) for action, compiled in by_action.items()}

    def _selector(self, constraint: TopologySpreadConstraint, pod: Pod) -> Selector:
        """The selector with matchLabelKeys worked in; the API server may have done that already, which does no harm."""
        labels = pod.metadata.labels
        keys = constraint.match_label_keys if self._match_label_keys else ()
        own_labels = {key: labels[key] for key in keys if key in labels}
        return compile_selector(constraint.label_selector).also(selector_from_labels(own_labels).requirements)


def default_selector(pod: Pod, objects: ObjectStore) -> Selector:
    """What the services that select the pod and its owner have in common: the pods that are like it."""
    labels: dict[str, str] = {}
    for service in objects.in_namespace(Service, pod.namespace):
        selector = service.spec.selector
        if selector and selector.items() <= pod.metadata.labels.items():
            labels.update(selector)
    owner = pod.metadata.controller
    if owner is None:
        return selector_from_labels(labels)
    if owner.kind == "ReplicationController" and owner.api_version == "v1":
        controller = objects.get(ReplicationController, owner.name, pod.namespace)
        return selector_from_labels(labels | (controller.spec.selector if controller else {}))
    return selector_from_labels(labels).also(_requirements_of(owner, pod.namespace, objects))


def _requirements_of(owner: OwnerReference, namespace: str, objects: ObjectStore) -> Iterable[Requirement]:
    kind = {"ReplicaSet": ReplicaSet, "StatefulSet": StatefulSet}.get(owner.kind)
    if kind is None or owner.api_version != "apps/v1":
        return ()
    record = objects.get(kind, owner.name, namespace)
    return () if record is None else compile_selector(record.spec.selector).requirements  # type: ignore[attr-defined]
