"""The legacy Policy as it is written, and the plugins that took over the jobs of its predicates and priorities."""

from __future__ import annotations

from typing import Any, get_args

import msgspec

from kubesched.api.meta import Int32, Record
from kubesched.api.schema import Mistake, convert
from kubesched.api.yaml import YamlError, documents
from kubesched.config.args import ResourceSpec, UtilizationShapePoint
from kubesched.config.configuration import Extender
from kubesched.config.duration import Duration
from kubesched.config.mistakes import UnreadableConfigError

# In the order kube-scheduler 1.22 checked them.
PREDICATES: dict[str, tuple[str, ...]] = {
    "CheckNodeUnschedulable": ("NodeUnschedulable",),
    "GeneralPredicates": ("NodeResourcesFit", "NodeName", "NodePorts", "NodeAffinity"),
    "HostName": ("NodeName",),
    "PodFitsHostPorts": ("NodePorts",),
    "MatchNodeSelector": ("NodeAffinity",),
    "PodFitsResources": ("NodeResourcesFit",),
    "NoDiskConflict": ("VolumeRestrictions",),
    "PodToleratesNodeTaints": ("TaintToleration",),
    # Conditions of nodes have been taints since 1.12.
    "CheckNodeCondition": ("TaintToleration",),
    "CheckNodeMemoryPressure": ("TaintToleration",),
    "CheckNodeDiskPressure": ("TaintToleration",),
    "CheckNodePIDPressure": ("TaintToleration",),
    # The disks of clouds are CSI volumes now.
    "MaxEBSVolumeCount": ("NodeVolumeLimits",),
    "MaxGCEPDVolumeCount": ("NodeVolumeLimits",),
    "MaxCSIVolumeCountPred": ("NodeVolumeLimits",),
    "MaxAzureDiskVolumeCount": ("NodeVolumeLimits",),
    "MaxCinderVolumeCount": ("NodeVolumeLimits",),
    "CheckVolumeBinding": ("VolumeBinding",),
    "NoVolumeZoneConflict": ("VolumeZone",),
    "EvenPodsSpread": ("PodTopologySpread",),
    "MatchInterPodAffinity": ("InterPodAffinity",),
}

PRIORITIES: dict[str, str] = {
    "BalancedResourceAllocation": "NodeResourcesBalancedAllocation",
    "EvenPodsSpreadPriority": "PodTopologySpread",
    "ImageLocalityPriority": "ImageLocality",
    "InterPodAffinityPriority": "InterPodAffinity",
    "LeastRequestedPriority": "NodeResourcesFit",
    "MostRequestedPriority": "NodeResourcesFit",
    "NodeAffinityPriority": "NodeAffinity",
    "RequestedToCapacityRatioPriority": "NodeResourcesFit",
    "SelectorSpreadPriority": "PodTopologySpread",
    "TaintTolerationPriority": "TaintToleration",
}

# Three plugins of old are three strategies of NodeResourcesFit, which follows one at a time.
STRATEGIES = {
    "LeastRequestedPriority": "LeastAllocated",
    "MostRequestedPriority": "MostAllocated",
    "RequestedToCapacityRatioPriority": "RequestedToCapacityRatio",
}

ALIASES = {
    "PodFitsPorts": "PodFitsHostPorts",
    "NoVolumeNodeConflict": "CheckVolumeBinding",
    "ServiceSpreadingPriority": "SelectorSpreadPriority",
    "RequestedToCapacityRatio": "RequestedToCapacityRatioPriority",
}

# Did nothing, on purpose.
NEUTRAL_PRIORITY = "EqualPriority"

MANDATORY_PREDICATES = frozenset({"PodToleratesNodeTaints", "CheckNodeUnschedulable"})

DEFAULT_PREDICATES = MANDATORY_PREDICATES | {
    "NoVolumeZoneConflict",
    "MaxEBSVolumeCount",
    "MaxGCEPDVolumeCount",
    "MaxAzureDiskVolumeCount",
    "MaxCSIVolumeCountPred",
    "MatchInterPodAffinity",
    "NoDiskConflict",
    "GeneralPredicates",
    "CheckVolumeBinding",
    "EvenPodsSpread",
}

# Without NodePreferAvoidPodsPriority, whose annotation Kubernetes no longer knows.
DEFAULT_PRIORITIES: dict[str, int] = {
    "SelectorSpreadPriority": 1,
    "InterPodAffinityPriority": 1,
    "LeastRequestedPriority": 1,
    "BalancedResourceAllocation": 1,
    "NodeAffinityPriority": 1,
    "TaintTolerationPriority": 1,
    "ImageLocalityPriority": 1,
    "EvenPodsSpreadPriority": 2,
}

NO_SERVICE_AFFINITY = "no plugin keeps the pods of a service on nodes with equal labels any more"
NO_SERVICE_ANTI_AFFINITY = (
    "no plugin spreads the pods of a service over a label any more; use topologySpreadConstraints, or "
    "PodTopologySpread with defaultConstraints"
)
NO_LABEL_PREFERENCE = (
    "no plugin scores nodes by a label being there any more; NodeAffinity with addedAffinity comes close, but "
    "scales its score differently"
)

REMOVED: dict[str, str] = {
    "CheckNodeLabelPresence": (
        "under this name it checks no labels; give the predicate a name of its own and the argument labelsPresence"
    ),
    "CheckServiceAffinity": NO_SERVICE_AFFINITY,
    "NodeLabel": NO_LABEL_PREFERENCE,
    "NodePreferAvoidPodsPriority": (
        "Kubernetes 1.24 removed it with the annotation scheduler.alpha.kubernetes.io/preferAvoidPods; "
        "taint nodes with PreferNoSchedule instead"
    ),
    "ResourceLimitsPriority": "Kubernetes 1.19 removed it, and no plugin scores by limits",
    "ServiceAffinity": NO_SERVICE_AFFINITY,
}

# Where each plugin has to run to do the work of a predicate, or of a priority.
FILTER_POINTS: dict[str, tuple[str, ...]] = {
    "InterPodAffinity": ("pre_filter", "filter"),
    "NodeAffinity": ("pre_filter", "filter"),
    "NodeName": ("filter",),
    "NodePorts": ("pre_filter", "filter"),
    "NodeResourcesFit": ("pre_filter", "filter"),
    "NodeUnschedulable": ("filter",),
    "NodeVolumeLimits": ("pre_filter", "filter"),
    "PodTopologySpread": ("pre_filter", "filter"),
    "TaintToleration": ("filter",),
    "VolumeBinding": ("pre_filter", "filter", "reserve", "pre_bind"),
    "VolumeRestrictions": ("pre_filter", "filter"),
    "VolumeZone": ("pre_filter", "filter"),
}
SCORE_POINTS: dict[str, tuple[str, ...]] = {
    "ImageLocality": ("score",),
    "InterPodAffinity": ("pre_score", "score"),
    "NodeAffinity": ("pre_score", "score"),
    "NodeResourcesBalancedAllocation": ("pre_score", "score"),
    "NodeResourcesFit": ("pre_score", "score"),
    "PodTopologySpread": ("pre_score", "score"),
    "TaintToleration": ("pre_score", "score"),
}

# What was never a predicate or a priority, or serves fields of pods that a Policy is too old to know.
ALWAYS_ENABLED = (
    "SchedulingGates",
    "PrioritySort",
    "DynamicResources",
    "DefaultPreemption",
    "DefaultBinder",
    "NodeDeclaredFeatures",
)


class ServiceAffinity(Record, frozen=True):
    """Pods of a service stay on nodes that agree in these labels."""

    labels: tuple[str, ...] = ()


class LabelsPresence(Record, frozen=True):
    """Nodes have all of these labels, or none, whatever the values."""

    labels: tuple[str, ...] = ()
    presence: bool = False


class PredicateArgument(Record, frozen=True):
    """What a predicate of one's own checks: exactly one of these."""

    service_affinity: ServiceAffinity | None = None
    labels_presence: LabelsPresence | None = None


class PredicatePolicy(Record, frozen=True):
    """A predicate by name."""

    name: str = ""
    argument: PredicateArgument | None = None


class ServiceAntiAffinity(Record, frozen=True):
    """Pods of a service spread over the values of a label."""

    label: str = ""


class LabelPreference(Record, frozen=True):
    """Nodes with the label are better, or those without."""

    label: str = ""
    presence: bool = False


class RequestedToCapacityRatioArguments(Record, frozen=True):
    """Nodes are scored by utilization along a broken line."""

    shape: tuple[UtilizationShapePoint, ...] = ()
    resources: tuple[ResourceSpec, ...] = ()


class PriorityArgument(Record, frozen=True):
    """What a priority of one's own prefers: exactly one of these."""

    service_anti_affinity: ServiceAntiAffinity | None = None
    label_preference: LabelPreference | None = None
    requested_to_capacity_ratio_arguments: RequestedToCapacityRatioArguments | None = None


class PriorityPolicy(Record, frozen=True):
    """A priority by name, and what it weighs."""

    name: str = ""
    weight: int = 0
    argument: PriorityArgument | None = None


class Policy(Record, frozen=True):
    """The file. Absent predicates or priorities are the default ones; an empty list is none."""

    predicates: tuple[PredicatePolicy, ...] | None = None
    priorities: tuple[PriorityPolicy, ...] | None = None
    extenders: tuple[Extender, ...] = ()
    hard_pod_affinity_symmetric_weight: Int32 = 0
    always_check_all_predicates: bool = False


def read_policy(text: str, *, source: str) -> Policy:
    """The Policy in a YAML or JSON text, or an error with all that is wrong."""
    try:
        document = next(documents(text), None)
    except YamlError as error:
        raise UnreadableConfigError([Mistake("", str(error))], source) from error
    value = document.value if document else None
    if not isinstance(value, dict):
        raise UnreadableConfigError([Mistake("", "expected a Policy, got no mapping")], source)
    mistakes = [
        Mistake(field, f'expected "{expected}", got {msgspec.json.encode(value.get(field)).decode()}')
        for field, expected in (("apiVersion", "v1"), ("kind", "Policy"))
        if value.get(field) != expected
    ]
    fields = {name: each for name, each in value.items() if name not in ("apiVersion", "kind")}
    if isinstance(fields.get("extenders"), list):
        fields["extenders"] = [_respelled(each, Extender) for each in fields["extenders"]]
    policy, faults = convert(fields, Policy, unknown="error", hooks={Duration: _nanoseconds})
    if policy is None or mistakes or faults:
        raise UnreadableConfigError(mistakes + faults, source)
    return policy


def _respelled(value: Any, type_: Any) -> Any:
    """Fields of extenders spelled as we spell them: the Policy never minded case here, nor fields it did not know."""
    if isinstance(value, list):
        return [_respelled(each, get_args(type_)[0]) for each in value]
    records = [each for each in (type_, *get_args(type_)) if hasattr(each, "__struct_fields__")]
    if not records or not isinstance(value, dict):
        return value
    fields = {field.encode_name.lower(): field for field in msgspec.structs.fields(records[0])}
    known = [(fields[name.lower()], each) for name, each in value.items() if name.lower() in fields]
    return {field.encode_name: _respelled(each, field.type) for field, each in known}


def _nanoseconds(value: Any) -> Duration:
    if value is not None and type(value) is not int:
        raise ValueError(f"expected a whole number of nanoseconds, got {msgspec.json.encode(value).decode()}")
    return Duration((value or 0) / 10**9)
