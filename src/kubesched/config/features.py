"""Feature gates that change decisions, as fields of a record, and the release of Kubernetes that they belong to.

The tables of `config.gates` have all gates; `daemon.feature_gates` says what a command line may set.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from kubesched.api.release import V1_36, Release
from kubesched.config.gates import gates_of

_DEFAULT_RELEASE = V1_36


def _gate(name: str) -> Any:
    gate = gates_of(_DEFAULT_RELEASE).get(name)
    return field(default=gate is not None and gate.default, metadata={"gate": name})


@dataclass(frozen=True, kw_only=True, slots=True)
class Features:
    """The features that are on. An object that depends on a feature reads it once, when it is made."""

    release: Release = _DEFAULT_RELEASE
    """Behaviours that differ between releases and have no gate."""

    device_binding_conditions: bool = _gate("DRADeviceBindingConditions")
    """Devices that take a while to be ready may be allocated, and binding waits for them."""
    device_capacity: bool = _gate("DRAConsumableCapacity")
    """Devices may be shared, and requests may ask for some of their capacity."""
    fractional_capacity: bool = _gate("DRAFractionalCapacityRange")
    """Ranges of capacity that may be asked for may have fractions."""
    device_partitions: bool = _gate("DRAPartitionableDevices")
    """Devices may draw from shared counters, and slices may say for each device which nodes can use it."""
    device_taints: bool = _gate("DRADeviceTaints")
    """Tainted devices are only for requests that tolerate the taint."""
    device_taint_rules: bool = _gate("DRADeviceTaintRules")
    """Devices have the taints of DeviceTaintRules, besides their own."""
    device_alternatives: bool = _gate("DRAPrioritizedList")
    """Requests may list alternatives, and nodes that have an earlier one are better."""
    devices_as_resources: bool = _gate("DRAExtendedResource")
    """Devices may serve extended resources."""
    device_search_timeout: bool = _gate("DRASchedulerFilterTimeout")
    """The search for devices may take only so long."""
    pod_level_resources: bool = _gate("PodLevelResources")
    """Requests of a pod as a whole override the sum of its containers."""
    pod_level_resize: bool = _gate("InPlacePodLevelResourcesVerticalScaling")
    """A resize of a pod as a whole counts while it is under way."""
    match_label_keys_in_spread: bool = _gate("MatchLabelKeysInPodTopologySpread")
    """Spread constraints count only pods that have the same values for `matchLabelKeys`."""
    declared_features: bool = _gate("NodeDeclaredFeatures")
    """Some pods need nodes that have declared a feature."""
    taint_comparisons: bool = _gate("TaintTolerationComparisonOperators")
    """Tolerations may compare numbers: `Lt` and `Gt`."""
    storage_capacity_scoring: bool = _gate("StorageCapacityScoring")
    """Nodes are scored by how much of their storage a new volume would take."""
    missing_volume_drivers: bool = _gate("VolumeLimitScaling")
    """Nodes without a CSI driver are rejected, if the driver says that it must be there."""
    async_preemption: bool = _gate("SchedulerAsyncPreemption")
    """Victims are evicted after their preemptor has gone back to the queue, rather than before."""
    backoff_cut_short: bool = _gate("SchedulerPopFromBackoffQ")
    """When nothing else is to be tried, pods need not sit out their backoff."""
    expected_node_nominated: bool = _gate("NominatedNodeNameForExpectation")
    """A pod whose binding may take a while shows already where it is going."""

    pod_groups: bool = _gate("GenericWorkload")
    """Pods that name a PodGroup are scheduled together."""
    gang_scheduling: bool = _gate("GangScheduling")
    """A group may be a gang: so many pods, or none."""
    group_preemption: bool = _gate("WorkloadAwarePreemption")
    """A group has a priority, and may be preempted only as a whole."""
    group_preemption_policy: bool = _gate("PodGroupPreemptionPolicy")
    """A group says whether it preempts, and its pods must agree."""
    group_topology: bool = _gate("TopologyAwareWorkloadScheduling")
    """The pods of a group may have to stay within a rack, a zone, or any such domain."""
    group_claims: bool = _gate("DRAWorkloadResourceClaims")
    """A group may have device claims, which are reserved for it rather than for each of its pods."""

    job_groups: bool = _gate("WorkloadWithJob")
    """A Job makes a group of its pods if all of them run at once: a gate of the controllers, not of the scheduler."""

    @classmethod
    def of(cls, gates: Mapping[str, bool], release: Release = _DEFAULT_RELEASE) -> Features:
        """From gates by their Kubernetes names; those not mentioned are at their default, others do not matter.

        A gate that became part of another, and that the release no longer has, is on if the other is.
        """
        values = {name: gate.default for name, gate in gates_of(release).items()} | dict(gates)
        values |= {name: values.get(into, False) for name, into in _MERGED.items() if name not in values}
        return cls(release=release, **{name: values.get(gate, False) for name, gate in GATES_BY_FIELD.items()})

    def is_on(self, gate: str) -> bool:
        """Whether a gate that changes what is decided is on, by its Kubernetes name."""
        return any(getattr(self, name) for name, field_gate in GATES_BY_FIELD.items() if field_gate == gate)

    @property
    def changed(self) -> dict[str, bool]:
        """The gates that are not at their default, by their Kubernetes names."""
        defaults = Features.of({}, self.release)
        return {
            gate: getattr(self, name)
            for name, gate in GATES_BY_FIELD.items()
            if getattr(self, name) != getattr(defaults, name)
        }

    @property
    def has_plain_devices(self) -> bool:
        """Without both these features kube-scheduler searches for devices in an older way, which knows less."""
        return not self.device_capacity and not self.device_binding_conditions


_MERGED = {"GangScheduling": "GenericWorkload", "WorkloadAwarePreemption": "GenericWorkload"}
"""Gates that became part of another (kubernetes/kubernetes#139520)."""

GATES_BY_FIELD: dict[str, str] = {
    feature.name: feature.metadata["gate"] for feature in fields(Features) if feature.metadata
}
DEFAULT_FEATURES = Features()
POD_GROUP_GATES = tuple(
    GATES_BY_FIELD[name]
    for name in ("pod_groups", "gang_scheduling", "group_preemption", "group_topology", "job_groups")
)
"""The gates of features of pod groups."""
