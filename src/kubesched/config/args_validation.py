"""Whether the arguments of in-tree plugins make sense: every mistake at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kubesched.api.affinity import NodeSelectorRequirement, NodeSelectorTerm, TopologySpreadConstraint
from kubesched.api.schema import Mistake
from kubesched.api.selectors import label_key_fault, label_value_fault, parse_int64
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
from kubesched.config.mistakes import duplicate, forbidden, invalid, required, unsupported

SCORING_STRATEGIES = ("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio")
MAX_SHAPE_SCORE = 10


def validate_args(path: str, plugin: str, args: Any, features: Features) -> list[Mistake]:
    """All mistakes in a plugin's arguments; plugins we do not know judge their own.

    Upstream files the check of NodeResourcesFit under the name of its arguments by mistake, so that they are checked
    only when the plugin is built, and a plugin of that other name is always refused. So it is here.
    """
    if plugin == "NodeResourcesFitArgs":
        return [invalid(path, args, "has to be NodeResourcesFitArgs; the plugin is called NodeResourcesFit")]
    if gated := _GATED_CHECKS.get(plugin):
        return gated(path, args, features)
    check = _CHECKS.get(plugin)
    return check(path, args) if check else []


def _default_preemption(path: str, args: DefaultPreemptionArgs) -> list[Mistake]:
    percentage, absolute = args.min_candidate_nodes_percentage, args.min_candidate_nodes_absolute
    percentage_path, absolute_path = f"{path}.minCandidateNodesPercentage", f"{path}.minCandidateNodesAbsolute"
    mistakes = []
    if not 0 <= percentage <= 100:
        mistakes.append(invalid(percentage_path, percentage, "must be from 0 to 100"))
    if absolute < 0:
        mistakes.append(invalid(absolute_path, absolute, "must not be negative"))
    if percentage == 0 and absolute == 0:
        mistakes.append(invalid(percentage_path, 0, "must not be zero together with minCandidateNodesAbsolute"))
        mistakes.append(invalid(absolute_path, 0, "must not be zero together with minCandidateNodesPercentage"))
    return mistakes


def _dynamic_resources(path: str, args: DynamicResourcesArgs, features: Features) -> list[Mistake]:
    mistakes = []
    if args.filter_timeout is not None:
        here = f"{path}.filterTimeout"
        if not features.device_search_timeout:
            mistakes.append(forbidden(here, _needs("DRASchedulerFilterTimeout")))
        elif args.filter_timeout < 0:
            mistakes.append(invalid(here, str(args.filter_timeout), "must not be negative"))
    if args.binding_timeout is not None:
        here = f"{path}.bindingTimeout"
        if not features.device_binding_conditions:
            mistakes.append(forbidden(here, _needs("DRADeviceBindingConditions")))
        elif args.binding_timeout < 1:
            mistakes.append(invalid(here, str(args.binding_timeout), "must be at least 1s"))
    return mistakes


def _inter_pod_affinity(path: str, args: InterPodAffinityArgs) -> list[Mistake]:
    if 0 <= args.hard_pod_affinity_weight <= 100:
        return []
    return [invalid(f"{path}.hardPodAffinityWeight", args.hard_pod_affinity_weight, "must be from 0 to 100")]


def _node_affinity(path: str, args: NodeAffinityArgs) -> list[Mistake]:
    affinity = args.added_affinity
    if affinity is None:
        return []
    mistakes: list[Mistake] = []
    here = f"{path}.addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
    if selector := affinity.required_during_scheduling_ignored_during_execution:
        for i, term in enumerate(selector.node_selector_terms):
            mistakes += _node_selector_term(f"{here}[{i}]", term)
    here = f"{path}.addedAffinity.preferredDuringSchedulingIgnoredDuringExecution"
    for i, preferred in enumerate(affinity.preferred_during_scheduling_ignored_during_execution):
        if preferred.weight != 0:  # a term that weighs nothing is never looked at
            mistakes += _node_selector_term(f"{here}[{i}]", preferred.preference)
    return mistakes


def _node_selector_term(path: str, term: NodeSelectorTerm) -> list[Mistake]:
    mistakes: list[Mistake] = []
    for i, requirement in enumerate(term.match_expressions):
        mistakes += _label_requirement(f"{path}.matchExpressions[{i}]", requirement)
    for i, requirement in enumerate(term.match_fields):
        here = f"{path}.matchFields[{i}]"
        if requirement.operator not in ("In", "NotIn"):
            mistakes.append(unsupported(f"{here}.operator", requirement.operator, ("In", "NotIn")))
        elif len(requirement.values) != 1:
            mistakes.append(invalid(f"{here}.values", requirement.values, "must have exactly one value"))
    return mistakes


def _label_requirement(path: str, requirement: NodeSelectorRequirement) -> list[Mistake]:
    key, operator, values = requirement.key, requirement.operator, requirement.values
    mistakes = []
    if fault := label_key_fault(key):
        mistakes.append(invalid(f"{path}.key", key, fault))
    match operator:
        case "In" | "NotIn":
            if not values:
                mistakes.append(invalid(f"{path}.values", values, f"{operator} needs at least one value"))
        case "Exists" | "DoesNotExist":
            if values:
                mistakes.append(invalid(f"{path}.values", values, f"{operator} takes no values"))
        case "Gt" | "Lt":
            if len(values) != 1:
                mistakes.append(invalid(f"{path}.values", values, f"{operator} needs exactly one value"))
            for i, value in enumerate(values):
                if parse_int64(value) is None:
                    mistakes.append(invalid(f"{path}.values[{i}]", value, f"{operator} needs an integer"))
        case _:
            supported = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
            return [unsupported(f"{path}.operator", operator, supported)]
    for i, value in enumerate(values):
        if fault := label_value_fault(value):
            mistakes.append(invalid(f"{path}.values[{i}][{key}]", value, fault))
    return mistakes


def _balanced_allocation(path: str, args: NodeResourcesBalancedAllocationArgs) -> list[Mistake]:
    mistakes = []
    seen: set[str] = set()
    for i, resource in enumerate(args.resources):
        here = f"{path}.resources[{i}]"
        if resource.name in seen:
            mistakes.append(duplicate(f"{here}.name", resource.name))
        seen.add(resource.name)
        if resource.weight != 1:
            mistakes.append(invalid(f"{here}.weight", resource.weight, "must be 1"))
    return mistakes


def _pod_topology_spread(path: str, args: PodTopologySpreadArgs) -> list[Mistake]:
    mistakes = []
    if args.defaulting_type not in ("System", "List"):
        mistakes.append(unsupported(f"{path}.defaultingType", args.defaulting_type, ("System", "List")))
    elif args.defaulting_type == "System" and args.default_constraints:
        detail = 'must be "List" when there are defaultConstraints'
        mistakes.append(invalid(f"{path}.defaultingType", "System", detail))
    seen = set()
    for i, constraint in enumerate(args.default_constraints):
        here = f"{path}.defaultConstraints[{i}]"
        mistakes += _default_constraint(here, constraint)
        pair = (constraint.topology_key, constraint.when_unsatisfiable)
        if pair in seen:
            mistakes.append(duplicate(here, pair))
        seen.add(pair)
    return mistakes


def _default_constraint(path: str, constraint: TopologySpreadConstraint) -> list[Mistake]:
    mistakes = []
    key, action = constraint.topology_key, constraint.when_unsatisfiable
    if constraint.max_skew <= 0:
        mistakes.append(invalid(f"{path}.maxSkew", constraint.max_skew, "must be greater than zero"))
    if not key:
        mistakes.append(required(f"{path}.topologyKey", "must not be empty"))
    elif fault := label_key_fault(key):
        mistakes.append(invalid(f"{path}.topologyKey", key, fault))
    if not action:
        mistakes.append(required(f"{path}.whenUnsatisfiable", "must not be empty"))
    elif action not in ("DoNotSchedule", "ScheduleAnyway"):
        mistakes.append(unsupported(f"{path}.whenUnsatisfiable", action, ("DoNotSchedule", "ScheduleAnyway")))
    if constraint.label_selector is not None:
        mistakes.append(forbidden(f"{path}.labelSelector", "the selector comes from the services and owners of a pod"))
    return mistakes


def _volume_binding(path: str, args: VolumeBindingArgs, features: Features) -> list[Mistake]:
    mistakes = []
    if args.bind_timeout_seconds < 0:
        mistakes.append(invalid(f"{path}.bindTimeoutSeconds", args.bind_timeout_seconds, "must not be negative"))
    if features.storage_capacity_scoring:
        mistakes += validate_shape(f"{path}.shape", args.shape or ())
    elif args.shape is not None:
        points = [{"utilization": point.utilization, "score": point.score} for point in args.shape]
        mistakes.append(invalid(f"{path}.shape", points, _needs("StorageCapacityScoring")))
    return mistakes


def _needs(gate: str) -> str:
    return f"needs the feature gate {gate}, which is off"


def validate_node_resources_fit(path: str, args: NodeResourcesFitArgs) -> list[Mistake]:
    """All mistakes in the arguments of NodeResourcesFit; the plugin asks when it is built."""
    mistakes = []
    for i, resource in enumerate(args.ignored_resources):
        if fault := label_key_fault(resource):
            mistakes.append(invalid(f"{path}.ignoredResources[{i}]", resource, fault))
    for i, group in enumerate(args.ignored_resource_groups):
        here = f"{path}.ignoredResourceGroups[{i}]"
        if "/" in group:
            mistakes.append(invalid(here, group, "must not contain a slash"))
        if fault := label_key_fault(group):
            mistakes.append(invalid(here, group, fault))
    here, strategy = f"{path}.scoringStrategy", args.scoring_strategy
    if strategy.type not in SCORING_STRATEGIES:
        mistakes.append(unsupported(f"{here}.type", strategy.type, SCORING_STRATEGIES))
    mistakes += validate_weights(f"{here}.resources", strategy.resources)
    ratio = strategy.requested_to_capacity_ratio
    here = f"{here}.requestedToCapacityRatio"
    if strategy.type != "RequestedToCapacityRatio":
        if ratio is not None:
            mistakes.append(forbidden(here, "only for type RequestedToCapacityRatio"))
    elif ratio is None:
        mistakes.append(required(here, "for type RequestedToCapacityRatio"))
    else:
        mistakes += validate_shape(f"{here}.shape", ratio.shape)
    return mistakes


def validate_weights(path: str, resources: tuple[ResourceSpec, ...]) -> list[Mistake]:
    """All resources whose weight is out of bounds."""
    return [
        invalid(f"{path}[{i}].weight", resource.weight, "must be from 1 to 100")
        for i, resource in enumerate(resources)
        if not 0 < resource.weight <= 100
    ]


def validate_shape(path: str, shape: tuple[UtilizationShapePoint, ...]) -> list[Mistake]:
    """All mistakes in a broken line: its points must go up in utilization, within bounds."""
    if not shape:
        return [required(path, "needs at least one point")]
    mistakes = []
    for i in range(1, len(shape)):
        if shape[i - 1].utilization >= shape[i].utilization:
            detail = "utilization must increase from point to point"
            mistakes.append(invalid(f"{path}[{i}].utilization", shape[i].utilization, detail))
            break
    for i, point in enumerate(shape):
        if not 0 <= point.utilization <= 100:
            mistakes.append(invalid(f"{path}[{i}].utilization", point.utilization, "must be from 0 to 100"))
        if not 0 <= point.score <= MAX_SHAPE_SCORE:
            mistakes.append(invalid(f"{path}[{i}].score", point.score, f"must be from 0 to {MAX_SHAPE_SCORE}"))
    return mistakes


_CHECKS: dict[str, Callable[[str, Any], list[Mistake]]] = {
    "DefaultPreemption": _default_preemption,
    "InterPodAffinity": _inter_pod_affinity,
    "NodeAffinity": _node_affinity,
    "NodeResourcesBalancedAllocation": _balanced_allocation,
    "PodTopologySpread": _pod_topology_spread,
}
_GATED_CHECKS: dict[str, Callable[[str, Any, Features], list[Mistake]]] = {
    "DynamicResources": _dynamic_resources,
    "VolumeBinding": _volume_binding,
}
