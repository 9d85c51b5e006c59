"""Messages about a group and its pods, in the words of the release whose API server has the group."""

from __future__ import annotations

from collections.abc import Iterable

from kubesched.api.pod import Pod
from kubesched.api.pod_groups import PodGroup
from kubesched.config.features import Features
from kubesched.framework.groups import group_priority
from kubesched.framework.status import Status, error, unschedulable

UNSCHEDULABLE = "pod group is unschedulable"
_OTHERS_LACKING = (
    "waiting for minCount pods from a gang to be scheduled, "
    "one or more plugins asked to wait and no plugin rejected pod"
)
"""The message of the Permit plugin of v1.36 about a pod that would have fit."""


def infeasible(group: PodGroup, status: Status, *, evaluated: bool) -> Status:
    """Status of a group that is not feasible; `evaluated` if pods were tried."""
    if group.is_alpha:
        return unschedulable(UNSCHEDULABLE)
    return unschedulable(*status.reasons) if evaluated else unschedulable(UNSCHEDULABLE, *status.reasons)


def no_placement(group: PodGroup, tried: int, first: Status) -> Status:
    """Status of a group that is feasible in none of the placements."""
    reason = f"0/{tried} placements are available, first placement status: {first.message}"
    return unschedulable(reason) if group.is_alpha else unschedulable(UNSCHEDULABLE, reason)


def fits_in_vain(group: PodGroup, status: Status) -> str:
    """Message of a pod that would have fit, while the group did not."""
    return f"{UNSCHEDULABLE}, {_OTHERS_LACKING if group.is_alpha else status.message}"


def fits_later(group: PodGroup, status: Status) -> str:
    """Message of a pod that will have a node, once room is made for its group."""
    return UNSCHEDULABLE if group.is_alpha else status.message


def with_post_filter(group: PodGroup, status: Status, message: str, *, helped: bool) -> Status:
    """Status of a group, after post-filters were asked to make room."""
    return status if helped and group.is_alpha else unschedulable(*status.reasons, message)


def broken_by(other: Status) -> Status:
    """Status of a group after an error for one of its pods."""
    return error(f"failed to schedule other pod from a pod group: {other.message}")


def mistake_in(group: PodGroup, pods: list[Pod], scheduled: Iterable[Pod], features: Features) -> Status | None:
    """The mistake in a group: its pods contradict each other, or the group. None if there is none."""
    members = [*pods, *scheduled]
    first = members[0]
    for pod in members:
        name, other = first.spec.scheduler_name, pod.spec.scheduler_name
        if name != other:
            return error(
                "all pods in a single pod group should have the same .spec.schedulerName set, "
                f'got: "{other}" and "{name}"'
            )
    if group.is_alpha:  # there a group is tried in the order of its pods' priorities, whichever they are
        return None
    priority = group_priority(group, pods, features)
    for pod in members:
        if pod.priority != priority:
            return error(
                "all pods in a single pod group should have the same priority as the pod group's priority, "
                f"got {pod.priority} and {priority}"
            )
    by_group = features.group_preemption_policy
    policy = (group.spec if by_group else first.spec).preemption_policy or _PREEMPTS
    for pod in members:
        if (own_policy := pod.spec.preemption_policy or _PREEMPTS) != policy:
            of_group = " as the pod group's preemption policy" if by_group else ""
            return error(
                f"all pods in a single pod group should have the same preemption policy{of_group}, "
                f"got {own_policy} and {policy}"
            )
    return None


_PREEMPTS = "PreemptLowerPriority"
