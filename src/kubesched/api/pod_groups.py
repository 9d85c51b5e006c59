"""Pod groups: pods that are scheduled together. One record for all versions of the API that have the kind."""

from __future__ import annotations

from typing import Any

from msgspec import field

from kubesched.api.meta import KubeObject, Record
from kubesched.api.pod import Pod, PodResourceClaim, PodResourceClaimStatus

GROUP = "scheduling.k8s.io"
VERSIONS = ("v1beta1", "v1alpha2")
"""The versions that are read, the newest first: Kubernetes v1.37 serves one, v1.36 the other."""


class GangPolicy(Record, frozen=True):
    """All or nothing: fewer than `min_count` pods are not worth running."""

    min_count: int = 1


class SchedulingPolicy(Record, frozen=True):
    """A gang; or, without one, pods that merely belong together (the basic policy)."""

    gang: GangPolicy | None = None


class TopologyConstraint(Record, frozen=True):
    """All pods of the group go to nodes that have the same value of this label."""

    key: str = ""


class SchedulingConstraints(Record, frozen=True):
    """Where the pods of a group go in relation to each other."""

    topology: tuple[TopologyConstraint, ...] = ()


class WorkloadTemplateReference(Record, frozen=True):
    """Which template of which Workload; v1alpha2 and v1beta1 have other words for the template."""

    workload_name: str = ""
    pod_group_template_name: str = ""
    template_name: str = ""


class PodGroupTemplateReference(Record, frozen=True):
    """The template of a group, as v1alpha2 has it."""

    workload: WorkloadTemplateReference | None = None


class PodGroupTemplate(Record, frozen=True):
    """How the pods of a group are scheduled, as far as a Workload says it."""

    name: str = ""
    scheduling_policy: SchedulingPolicy = SchedulingPolicy()


class PodGroupSpec(Record, frozen=True):
    """How the pods of a group are scheduled."""

    pod_group_template_ref: PodGroupTemplateReference | None = None
    workload_ref: WorkloadTemplateReference | None = None
    """The same in v1beta1."""
    scheduling_policy: SchedulingPolicy = SchedulingPolicy()
    scheduling_constraints: SchedulingConstraints | None = None
    disruption_mode: str | dict[str, Any] = ""
    """v1alpha2 has a word, `Pod` or `PodGroup`; v1beta1 has `single: {}` or `all: {}`."""
    priority: int | None = None
    priority_class_name: str = ""
    preemption_policy: str = ""
    resource_claims: tuple[PodResourceClaim, ...] = ()


class PodGroupCondition(Record, frozen=True):
    """One observed condition."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    observed_generation: int = 0
    last_transition_time: str = ""


class PodGroupStatus(Record, frozen=True):
    """What became of a group."""

    conditions: tuple[PodGroupCondition, ...] = ()
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()


class PodGroup(KubeObject, frozen=True):
    """Pods that are scheduled together; they name it in `spec.schedulingGroup`."""

    spec: PodGroupSpec = field(default_factory=PodGroupSpec)
    status: PodGroupStatus = field(default_factory=PodGroupStatus)

    @property
    def min_count(self) -> int:
        """How many pods make the group worth running: one, unless it is a gang."""
        gang = self.spec.scheduling_policy.gang
        return 1 if gang is None else gang.min_count

    @property
    def is_gang(self) -> bool:
        return self.spec.scheduling_policy.gang is not None

    @property
    def is_disrupted_as_one(self) -> bool:
        """Whether its pods may only be preempted all together."""
        mode = self.spec.disruption_mode
        return mode == "PodGroup" if isinstance(mode, str) else "all" in mode

    @property
    def topology_key(self) -> str:
        """The label by which its pods must stay together, if there is one."""
        constraints = self.spec.scheduling_constraints
        return constraints.topology[0].key if constraints is not None and constraints.topology else ""

    @property
    def workload_name(self) -> str:
        """The Workload that it was made from; empty if it stands alone."""
        spec = self.spec
        reference = spec.workload_ref or (spec.pod_group_template_ref and spec.pod_group_template_ref.workload)
        return reference.workload_name if reference else ""

    @property
    def is_native(self) -> bool:
        """Whether Kubernetes itself has it, rather than a custom resource that stands for one."""
        return self.api_version.partition("/")[0] == GROUP

    @property
    def is_alpha(self) -> bool:
        """Whether an API server of v1.36 has it: conditions and messages are that release's then."""
        return self.api_version.endswith("/v1alpha2")


class ControllerReference(Record, frozen=True):
    """What manages the pods of a Workload."""

    api_group: str = ""
    kind: str = ""
    name: str = ""


class WorkloadSpec(Record, frozen=True):
    """Templates of groups, and whose pods they are for."""

    controller_ref: ControllerReference | None = None
    pod_group_templates: tuple[PodGroupTemplate, ...] = ()


class Workload(KubeObject, frozen=True):
    """Templates of pod groups. No scheduler reads it; the controllers that make groups do."""

    spec: WorkloadSpec = field(default_factory=WorkloadSpec)


def group_key(pod: Pod) -> str:
    """`namespace/name` of the group that a pod names; empty if it names none."""
    group = pod.spec.scheduling_group
    return f"{pod.namespace}/{group.pod_group_name}" if group is not None else ""
