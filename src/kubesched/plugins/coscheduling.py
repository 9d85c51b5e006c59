"""Coscheduling: gangs as the scheduler-plugins project has them, with a label on pods and a custom resource.

They are scheduled just as gangs of Kubernetes' own API are. There, pods wait on their nodes for the others, for so many
seconds (`scheduleTimeoutSeconds`); then all give up their nodes and back off. Here no pod ever has a node before enough
have, so there is nothing to wait for and nothing to give up: a gang that does not fit backs off at once, as a whole.
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

    def remark(self, obj: CustomObject) -> str:
        if "scheduleTimeoutSeconds" not in (obj.content.get("spec") or {}):
            return ""
        return "scheduleTimeoutSeconds of a PodGroup has no effect: no pod waits on a node for the others"

    def as_group(self, obj: CustomObject) -> PodGroup | None:
        if obj.resource != RESOURCE:
            return None
        min_member = (obj.content.get("spec") or {}).get("minMember")
        count = min_member if isinstance(min_member, int) and min_member > 0 else 1
        policy = SchedulingPolicy(gang=GangPolicy(min_count=count))
        return PodGroup(api_version=ALIAS, metadata=obj.metadata, spec=PodGroupSpec(scheduling_policy=policy))
