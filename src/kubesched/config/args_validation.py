"""The mistakes in the arguments of in-tree plugins, all at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from kubesched.api.affinity import NodeSelectorRequirement, NodeSelectorTerm, TopologySpreadConstraint
from kubesched.api.schema import Mistake
from kubesched.api.selectors import label_key_fault, label_requirement_faults
from kubesched.config.args import (
    DefaultPreemptionArgs,
    DynamicResourcesArgs,
    InterPodAffinityArgs,
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PodTopologySpreadArgs,
    ResourceSpec,
    UtilizationShapePoint,
    VolumeBindingArgs,
)
from kubesched.config.features import Features
from kubesched.config.mistakes import duplicate, forbidden, invalid, out_of_range, required, unsupported

SCORING_STRATEGIES = ("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio")
MAX_SHAPE_SCORE = 10
_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")


def validate_args(path: str, plugin: str, args: Any, features: Features) -> Iterator[Mistake]:
    """All mistakes in the arguments of an in-tree plugin; other plugins check their own.

    By mistake kube-scheduler has the check of NodeResourcesFit under the name NodeResourcesFitArgs, so that the
    arguments are checked only when the plugin is built, and a plugin of that other name is always refused. So it is
    here.
    """
    if plugin == "NodeResourcesFitArgs":
        yield invalid(path, args, "has to be NodeResourcesFitArgs; the plugin is called NodeResourcesFit")
    elif plugin in _GATED_CHECKS:
        yield from _GATED_CHECKS[plugin](path, args, features)
    elif plugin in _CHECKS:
        yield from _CHECKS[plugin](path, args)


def _default_preemption(path: str, args: DefaultPreemptionArgs) -> Iterator[Mistake]:
    percentage, absolute = args.min_candidate_nodes_percentage, args.min_candidate_nodes_absolute
    percentage_path, absolute_path = f"{path}.minCandidateNodesPercentage", f"{path}.minCandidateNodesAbsolute"
    yield from out_of_range(percentage_path, percentage, 0, 100)
    if absolute < 0:
        yield invalid(absolute_path, absolute, "must not be negative")
    if percentage == 0 and absolute == 0:
        yield invalid(percentage_path, 0, "must not be zero together with minCandidateNodesAbsolute")
        yield invalid(absolute_path, 0, "must not be zero together with minCandidateNodesPercentage")


def _dynamic_resources(path: str, args: DynamicResourcesArgs, features: Features) -> Iterator[Mistake]:
    if args.filter_timeout is not None:
        here = f"{path}.filterTimeout"
        if not features.device_search_timeout:
            yield forbidden(here, _needs("DRASchedulerFilterTimeout"))
        elif args.filter_timeout < 0:
            yield invalid(here, str(args.filter_timeout), "must not be negative")
    if args.binding_timeout is not None:
        here = f"{path}.bindingTimeout"
        if not features.device_binding_conditions:
            yield forbidden(here, _needs("DRADeviceBindingConditions"))
        elif args.binding_timeout < 1:
            yield invalid(here, str(args.binding_timeout), "must be at least 1s")


def _inter_pod_affinity(path: str, args: InterPodAffinityArgs) -> Iterator[Mistake]:
    yield from out_of_range(f"{path}.hardPodAffinityWeight", args.hard_pod_affinity_weight, 0, 100)


def _node_affinity(path: str, args: NodeAffinityArgs) -> Iterator[Mistake]:
    affinity = args.added_affinity
    if affinity is None:
        return
    here = f"{path}.addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
    if selector := affinity.required_during_scheduling_ignored_during_execution:
        for i, term in enumerate(selector.node_selector_terms):
            yield from _node_selector_term(f"{here}[{i}]", term)
    here = f"{path}.addedAffinity.preferredDuringSchedulingIgnoredDuringExecution"
    for i, preferred in enumerate(affinity.preferred_during_scheduling_ignored_during_execution):
        if preferred.weight != 0:  # kube-scheduler ignores terms of weight 0
            yield from _node_selector_term(f"{here}[{i}]", preferred.preference)


def _node_selector_term(path: str, term: NodeSelectorTerm) -> Iterator[Mistake]:
    for i, requirement in enumerate(term.match_expressions):
        yield from _label_requirement(f"{path}.matchExpressions[{i}]", requirement)
    for i, requirement in enumerate(term.match_fields):
        here = f"{path}.matchFields[{i}]"
        if requirement.operator not in ("In", "NotIn"):
            yield unsupported(f"{here}.operator", requirement.operator, ("In", "NotIn"))
        elif len(requirement.values) != 1:
            yield invalid(f"{here}.values", requirement.values, "must have exactly one value")


def _label_requirement(path: str, requirement: NodeSelectorRequirement) -> Iterator[Mistake]:
    if requirement.operator not in _OPERATORS:
        yield unsupported(f"{path}.operator", requirement.operator, _OPERATORS)
        return
    for field, value, fault in label_requirement_faults(requirement):
        yield invalid(f"{path}.{field}", value, fault)


def _balanced_allocation(path: str, args: NodeResourcesBalancedAllocationArgs) -> Iterator[Mistake]:
    seen: set[str] = set()
    for i, resource in enumerate(args.resources):
        here = f"{path}.resources[{i}]"
        if resource.name in seen:
            yield duplicate(f"{here}.name", resource.name)
        seen.add(resource.name)
        if resource.weight != 1:
            yield invalid(f"{here}.weight", resource.weight, "must be 1")


def _pod_topology_spread(path: str, args: PodTopologySpreadArgs) -> Iterator[Mistake]:
    if args.defaulting_type not in ("System", "List"):
        yield unsupported(f"{path}.defaultingType", args.defaulting_type, ("System", "List"))
    elif args.defaulting_type == "System" and args.default_constraints:
        detail = 'must be "List" when there are defaultConstraints'
        yield invalid(f"{path}.defaultingType", "System", detail)
    seen = set()
    for i, constraint in enumerate(args.default_constraints):
        here = f"{path}.defaultConstraints[{i}]"
        yield from _default_constraint(here, constraint)
        identity = (constraint.topology_key, constraint.when_unsatisfiable)
        if identity in seen:
            yield duplicate(here, identity)
        seen.add(identity)


def _default_constraint(path: str, constraint: TopologySpreadConstraint) -> Iterator[Mistake]:
    key, action = constraint.topology_key, constraint.when_unsatisfiable
    if constraint.max_skew <= 0:
        yield invalid(f"{path}.maxSkew", constraint.max_skew, "must be greater than zero")
    if not key:
        yield required(f"{path}.topologyKey", "must not be empty")
    elif fault := label_key_fault(key):
        yield invalid(f"{path}.topologyKey", key, fault)
    if not action:
        yield required(f"{path}.whenUnsatisfiable", "must not be empty")
    elif action not in ("DoNotSchedule", "ScheduleAnyway"):
        yield unsupported(f"{path}.whenUnsatisfiable", action, ("DoNotSchedule", "ScheduleAnyway"))
    if constraint.label_selector is not None:
        yield forbidden(f"{path}.labelSelector", "the selector comes from the services and owners of a pod")


def _volume_binding(path: str, args: VolumeBindingArgs, features: Features) -> Iterator[Mistake]:
    if args.bind_timeout_seconds < 0:
        yield invalid(f"{path}.bindTimeoutSeconds", args.bind_timeout_seconds, "must not be negative")
    if features.storage_capacity_scoring:
        yield from validate_shape(f"{path}.shape", args.shape or ())
    elif args.shape is not None:
        points = [{"utilization": point.utilization, "score": point.score} for point in args.shape]
        yield invalid(f"{path}.shape", points, _needs("StorageCapacityScoring"))


def _needs(gate: str) -> str:
    return f"needs the feature gate {gate}, which is off"


def validate_node_resources_fit(path: str, args: NodeResourcesFitArgs) -> Iterator[Mistake]:
    """All mistakes in the arguments of NodeResourcesFit, which checks them when it is built."""
    for i, resource in enumerate(args.ignored_resources):
        if fault := label_key_fault(resource):
            yield invalid(f"{path}.ignoredResources[{i}]", resource, fault)
    for i, group in enumerate(args.ignored_resource_groups):
        here = f"{path}.ignoredResourceGroups[{i}]"
        if "/" in group:
            yield invalid(here, group, "must not contain a slash")
        if fault := label_key_fault(group):
            yield invalid(here, group, fault)
    here, strategy = f"{path}.scoringStrategy", args.scoring_strategy
    if strategy.type not in SCORING_STRATEGIES:
        yield unsupported(f"{here}.type", strategy.type, SCORING_STRATEGIES)
    yield from validate_weights(f"{here}.resources", strategy.resources)
    ratio = strategy.requested_to_capacity_ratio
    here = f"{here}.requestedToCapacityRatio"
    if strategy.type != "RequestedToCapacityRatio":
        if ratio is not None:
            yield forbidden(here, "only for type RequestedToCapacityRatio")
    elif ratio is None:
        yield required(here, "for type RequestedToCapacityRatio")
    else:
        yield from validate_shape(f"{here}.shape", ratio.shape)


def validate_weights(path: str, resources: tuple[ResourceSpec, ...]) -> Iterator[Mistake]:
    """All resources whose weight is out of bounds."""
    for i, resource in enumerate(resources):
        yield from out_of_range(f"{path}[{i}].weight", resource.weight, 1, 100)


def validate_shape(path: str, shape: tuple[UtilizationShapePoint, ...]) -> Iterator[Mistake]:
    """All mistakes in a broken line: its points must go up in utilization, within bounds."""
    if not shape:
        yield required(path, "needs at least one point")
    for i in range(1, len(shape)):
        if shape[i - 1].utilization >= shape[i].utilization:
            detail = "utilization must increase from point to point"
            yield invalid(f"{path}[{i}].utilization", shape[i].utilization, detail)
            break
    for i, point in enumerate(shape):
        yield from out_of_range(f"{path}[{i}].utilization", point.utilization, 0, 100)
        yield from out_of_range(f"{path}[{i}].score", point.score, 0, MAX_SHAPE_SCORE)


_CHECKS: dict[str, Callable[[str, Any], Iterator[Mistake]]] = {
    "DefaultPreemption": _default_preemption,
    "InterPodAffinity": _inter_pod_affinity,
    "NodeAffinity": _node_affinity,
    "NodeResourcesBalancedAllocation": _balanced_allocation,
    "PodTopologySpread": _pod_topology_spread,
}
_GATED_CHECKS: dict[str, Callable[[str, Any, Features], Iterator[Mistake]]] = {
    "DynamicResources": _dynamic_resources,
    "VolumeBinding": _volume_binding,
}
