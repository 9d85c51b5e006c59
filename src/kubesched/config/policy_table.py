"""Predicates and priorities of the legacy Policy, and the plugins that have taken over their jobs."""

from __future__ import annotations

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
