"""The arguments that in-tree plugins take, and their defaults."""

from __future__ import annotations

from typing import TypeAlias, get_args

from kubesched.api.affinity import NodeAffinity, TopologySpreadConstraint
from kubesched.api.duration import Duration
from kubesched.api.meta import Int32, Record


class ResourceSpec(Record, frozen=True):
    """A resource and how much it counts."""

    name: str = ""
    weight: int = 1


CPU_AND_MEMORY = (ResourceSpec(name="cpu"), ResourceSpec(name="memory"))


class UtilizationShapePoint(Record, frozen=True):
    """A point of a broken line from utilization (percent) to score (0 to 10)."""

    utilization: Int32 = 0
    score: Int32 = 0


class RequestedToCapacityRatioParam(Record, frozen=True):
    """The broken line that scores a node by its utilization."""

    shape: tuple[UtilizationShapePoint, ...] = ()


class ScoringStrategy(Record, frozen=True):
    """Whether to prefer empty or full nodes. NodeResourcesFit refuses a strategy without a type."""

    type: str = ""
    resources: tuple[ResourceSpec, ...] = CPU_AND_MEMORY
    requested_to_capacity_ratio: RequestedToCapacityRatioParam | None = None


class DefaultPreemptionArgs(Record, frozen=True):
    """How many candidate nodes preemption looks at."""

    min_candidate_nodes_percentage: Int32 = 10
    min_candidate_nodes_absolute: Int32 = 100


class DynamicResourcesArgs(Record, frozen=True):
    """How long to wait for devices."""

    filter_timeout: Duration | None = None
    """10 seconds, unless the feature gate for it is off."""
    binding_timeout: Duration | None = None
    """10 minutes, unless the feature gate for it is off."""


class InterPodAffinityArgs(Record, frozen=True):
    """What required affinity of running pods counts when scoring, and whether their preferences count."""

    hard_pod_affinity_weight: Int32 = 1
    ignore_preferred_terms_of_existing_pods: bool = False


class NodeAffinityArgs(Record, frozen=True):
    """Node affinity that every pod of the profile has besides its own."""

    added_affinity: NodeAffinity | None = None


class NodeResourcesBalancedAllocationArgs(Record, frozen=True):
    """Which resources should be used evenly."""

    resources: tuple[ResourceSpec, ...] = CPU_AND_MEMORY


class NodeResourcesFitArgs(Record, frozen=True):
    """Which resources are not counted, and how full nodes should be."""

    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[str, ...] = ()
    scoring_strategy: ScoringStrategy = ScoringStrategy(type="LeastAllocated")


class PodTopologySpreadArgs(Record, frozen=True):
    """How to spread pods without constraints: by the system's defaults, or by this list."""

    default_constraints: tuple[TopologySpreadConstraint, ...] = ()
    defaulting_type: str = "System"


class VolumeBindingArgs(Record, frozen=True):
    """How long volumes may take to bind. `shape` scores by storage capacity, behind a feature gate."""

    bind_timeout_seconds: int = 600
    shape: tuple[UtilizationShapePoint, ...] | None = None


PluginArgs: TypeAlias = (
    DefaultPreemptionArgs
    | DynamicResourcesArgs
    | InterPodAffinityArgs
    | NodeAffinityArgs
    | NodeResourcesBalancedAllocationArgs
    | NodeResourcesFitArgs
    | PodTopologySpreadArgs
    | VolumeBindingArgs
)

ARGS: dict[str, type[PluginArgs]] = {args.__name__.removesuffix("Args"): args for args in get_args(PluginArgs)}
"""The arguments by the name of their plugin."""
