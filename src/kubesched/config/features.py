"""Feature gates that change what is decided, by names of our own; each is at its default of Kubernetes v1.36.

Which gates there are, and what a command line may set, is the business of `daemon.feature_gates`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields


def _gate(name: str, *, default: bool) -> bool:
    made: bool = field(default=default, metadata={"gate": name})
    return made


@dataclass(frozen=True, kw_only=True, slots=True)
class Features:
    """What is on and what is off. An object that depends on a feature reads it once, when it is made."""

    device_binding_conditions: bool = _gate("DRADeviceBindingConditions", default=True)
    """Devices that take a while to be ready may be allocated, and binding waits for them."""
    device_capacity: bool = _gate("DRAConsumableCapacity", default=True)
    """Devices may be shared, and requests may ask for some of their capacity."""
    device_partitions: bool = _gate("DRAPartitionableDevices", default=True)
    """Devices may draw from shared counters, and slices may say for each device which nodes can use it."""
    device_taints: bool = _gate("DRADeviceTaints", default=True)
    """Tainted devices are only for requests that tolerate the taint."""
    device_alternatives: bool = _gate("DRAPrioritizedList", default=True)
    """Requests may list alternatives, and nodes that have an earlier one are better."""
    devices_as_resources: bool = _gate("DRAExtendedResource", default=True)
    """Devices may serve extended resources."""
    device_search_timeout: bool = _gate("DRASchedulerFilterTimeout", default=True)
    """The search for devices may take only so long."""
    pod_level_resources: bool = _gate("PodLevelResources", default=True)
    """Requests of a pod as a whole override the sum of its containers."""
    pod_level_resize: bool = _gate("InPlacePodLevelResourcesVerticalScaling", default=True)
    """A resize of a pod as a whole counts while it is under way."""
    match_label_keys_in_spread: bool = _gate("MatchLabelKeysInPodTopologySpread", default=True)
    """Spread constraints count only pods that have the same values for `matchLabelKeys`."""
    declared_features: bool = _gate("NodeDeclaredFeatures", default=True)
    """Some pods need nodes that have declared a feature."""
    taint_comparisons: bool = _gate("TaintTolerationComparisonOperators", default=False)
    """Tolerations may compare numbers: `Lt` and `Gt`."""
    storage_capacity_scoring: bool = _gate("StorageCapacityScoring", default=False)
    """Nodes are scored by how much of their storage a new volume would take."""
    missing_volume_drivers: bool = _gate("VolumeLimitScaling", default=False)
    """Nodes without a CSI driver are rejected, if the driver says that it must be there."""
    async_preemption: bool = _gate("SchedulerAsyncPreemption", default=True)
    """Victims are evicted after their preemptor has gone back to the queue, rather than before."""
    backoff_cut_short: bool = _gate("SchedulerPopFromBackoffQ", default=True)
    """When nothing else is to be tried, pods need not sit out their backoff."""
    expected_node_nominated: bool = _gate("NominatedNodeNameForExpectation", default=True)
    """A pod whose binding may take a while shows already where it is going."""

    pod_groups: bool = _gate("GenericWorkload", default=False)
    """Pods that name a PodGroup are scheduled together."""
    gang_scheduling: bool = _gate("GangScheduling", default=False)
    """A group may be a gang: so many pods, or none."""
    group_preemption: bool = _gate("WorkloadAwarePreemption", default=False)
    """A group has a priority, and may be preempted only as a whole."""
    group_topology: bool = _gate("TopologyAwareWorkloadScheduling", default=False)
    """The pods of a group may have to stay within a rack, a zone, or any such domain."""
    group_claims: bool = _gate("DRAWorkloadResourceClaims", default=False)
    """A group may have device claims, which are reserved for it rather than for each of its pods."""

    job_groups: bool = _gate("WorkloadWithJob", default=False)
    """A Job makes a group of its pods if all of them run at once: a gate of the controllers, not of the scheduler."""

    @classmethod
    def of(cls, gates: Mapping[str, bool]) -> Features:
        """From gates by their Kubernetes names; those not mentioned are at their default, others do not matter."""
        chosen = {one: gates[gate] for one, gate in GATES_BY_FIELD.items() if gate in gates}
        return cls(**chosen)

    def is_on(self, gate: str) -> bool:
        """Whether a gate that changes what is decided is on, by its Kubernetes name."""
        return any(getattr(self, name) for name, known in GATES_BY_FIELD.items() if known == gate)

    @property
    def changed(self) -> dict[str, bool]:
        """The gates that are not at their default, by their Kubernetes names."""
        return {
            gate: getattr(self, name)
            for name, gate in GATES_BY_FIELD.items()
            if getattr(self, name) != getattr(DEFAULT_FEATURES, name)
        }

    @property
    def has_plain_devices(self) -> bool:
        """Without both these features kube-scheduler searches for devices in an older way, which knows less."""
        return not self.device_capacity and not self.device_binding_conditions


GATES_BY_FIELD: dict[str, str] = {one.name: one.metadata["gate"] for one in fields(Features)}
DEFAULT_FEATURES = Features()
POD_GROUP_GATES = tuple(
    GATES_BY_FIELD[name]
    for name in ("pod_groups", "gang_scheduling", "group_preemption", "group_topology", "job_groups")
)
"""All that is about pod groups."""
