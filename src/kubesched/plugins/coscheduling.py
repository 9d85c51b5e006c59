"""Coscheduling: gangs as the scheduler-plugins project has them, with a label on pods and a custom resource.

They are scheduled just as gangs of Kubernetes' own API are. No pod ever waits on a node for the others, so that
`scheduleTimeoutSeconds` has nothing to end, and is not looked at.
"""

from __future__ import annotations

from msgspec.structs import replace

from kubesched.api.custom import CustomObject
from kubesched.api.pod import Pod, SchedulingGroup
from kubesched.api.pod_groups import GangPolicy, PodGroup, PodGroupSpec, SchedulingPolicy
from kubesched.framework.events import Action, ClusterEvent, Interest
from kubesched.framework.groups import GroupAliasPlugin
from kubesched.plugins.gang_scheduling import GangScheduling

LABEL = "scheduling.x-k8s.io/pod-group"
ALIAS = "scheduling.x-k8s.io/v1alpha1"
RESOURCE = "podgroups.v1alpha1.scheduling.x-k8s.io"


class Coscheduling(GangScheduling, GroupAliasPlugin):
    """Pods with the label belong to the PodGroup of that name, of which at least `minMember` run, or none."""

    name = "Coscheduling"

    def events_to_register(self) -> tuple[Interest, ...]:
        """The custom resource is watched because it is named here; its events are told as those of a PodGroup."""
        return (*super().events_to_register(), Interest(ClusterEvent(RESOURCE, Action.ADD)))

    def as_member(self, pod: Pod) -> Pod:
        name = pod.metadata.labels.get(LABEL, "")
        if not name or pod.spec.scheduling_group is not None:
            return pod
        return replace(pod, spec=replace(pod.spec, scheduling_group=SchedulingGroup(pod_group_name=name)))

    def as_group(self, obj: CustomObject) -> PodGroup | None:
        if obj.resource != RESOURCE:
            return None
        wanted = (obj.content.get("spec") or {}).get("minMember")
        count = wanted if isinstance(wanted, int) and wanted > 0 else 1
        policy = SchedulingPolicy(gang=GangPolicy(min_count=count))
        return PodGroup(api_version=ALIAS, metadata=obj.metadata, spec=PodGroupSpec(scheduling_policy=policy))
