"""Extension points for pod groups.

The scheduler places a group as a whole: it decides the pods one after another on one state, each with the earlier ones
assumed, and forgets them all unless the group is feasible. GangScheduling says when it is; other plugins say to which
nodes it may go as a whole, which of several such placements is best, and how room can be made for it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from kubesched.api.custom import CustomObject
from kubesched.api.pod import Pod
from kubesched.api.pod_groups import PodGroup
from kubesched.config.features import Features
from kubesched.framework.cycle import Cycle
from kubesched.framework.diagnosis import Diagnosis
from kubesched.framework.plugin import Plugin, PostFilterResult
from kubesched.framework.status import Status
from kubesched.state.cluster import ClusterState
from kubesched.state.columns import Bool, Rows
from kubesched.state.facts import PodFacts


def group_of(pod: Pod, state: ClusterState) -> PodGroup | None:
    """The PodGroup that a pod names, if it is known."""
    reference = pod.spec.scheduling_group
    return None if reference is None else state.objects.get(PodGroup, reference.pod_group_name, pod.namespace)


def group_priority(group: PodGroup, members: Iterable[Pod], features: Features) -> int:
    """The group's own priority; where the API has no such field, the lowest of its pods."""
    if group.spec.priority is not None:
        return group.spec.priority
    if features.group_preemption or not group.is_alpha:
        return 0
    return min((pod.priority for pod in members), default=0)


@dataclass(frozen=True)
class GroupProgress:
    """How many pods of a group have nodes, and how many may still get one."""

    scheduled: int
    """Pods of the group on nodes: before this attempt, and in it."""
    remaining: int
    """Pods that this attempt has not tried yet."""


class PlacementFeasiblePlugin(Plugin):
    """Says whether a group is feasible with the pods that found nodes. Asked before the first pod and after each."""

    def placement_feasible(self, group: PodGroup, progress: GroupProgress) -> Status | None:
        """None if it is; a Wait if it may yet be; a rejection if it cannot be any more."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class CandidatePlacement:
    """Some nodes on which all pods of a group may go."""

    name: str
    nodes: Bool
    """A mask of the rows."""
    is_all: bool = False
    """Whether it has all nodes."""

    @cached_property
    def rows(self) -> Rows:
        """The rows where the mask is set."""
        return np.flatnonzero(self.nodes)


class PlacementGeneratePlugin(Plugin):
    """Says to which parts of the cluster a group may go as a whole. A profile has at most one."""

    def placements(self, group: PodGroup, state: ClusterState) -> Sequence[CandidatePlacement] | Status:
        """The placements to try; a status if there are none."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class Proposal:
    """A placement, and the pods of the group that would run in it. None of them is assumed yet."""

    placement: CandidatePlacement
    pods: tuple[tuple[PodFacts, int], ...]
    """How many pods there are with each facts."""

    @property
    def count(self) -> int:
        return sum(count for _, count in self.pods)


class PlacementScorePlugin(Plugin):
    """Says how good each feasible placement is. Asked only if there are several."""

    def score_placement(self, group: PodGroup, proposal: Proposal, state: ClusterState) -> int:
        raise NotImplementedError

    def normalize_placements(self, scores: list[int]) -> list[int]:
        """Bring the scores into 0..100."""
        return scores


class GroupWhatIf(Protocol):
    """A group on the state as it is at the moment, for plugins that make room."""

    @property
    def failed(self) -> Sequence[tuple[Cycle, Diagnosis]]:
        """The pods that found no node before this plugin was asked: the cycle of each, and why."""

    @property
    def assignments(self) -> Sequence[tuple[Pod, int]]:
        """The pods of the group that are assumed, and their rows."""

    def place(self) -> Status | None:
        """Assume the pods of the group on nodes, until `leave`; or say why it is not feasible."""

    def resettle(self, rows: Collection[int] | None, come: Callable[[], None], go: Callable[[], None]) -> bool:
        """Whether the group still fits after `come` puts victims back on these rows, or anywhere if None.

        Its pods may move for that. If it does not fit, `go` takes the victims away again, and all pods are where they
        were. Victims and pods that they exclude are never there at once: a port has one holder.
        """

    def leave(self) -> None:
        """Forget the assumed pods of the group."""


class PodGroupPostFilterPlugin(Plugin):
    """Called when a group is not feasible: may make room for all of it at once."""

    def pod_group_post_filter(
        self, group: PodGroup, pods: Sequence[Pod], state: ClusterState, what_if: GroupWhatIf
    ) -> tuple[GroupPostFilterResult | None, Status | None]:
        """A result and None, or a status that says why not: Unschedulable lets the next plugin try."""
        raise NotImplementedError


class GroupAliasPlugin(Plugin):
    """Translates another way to group pods to PodGroup. A scheduler with such a plugin schedules groups."""

    def as_member(self, pod: Pod) -> Pod:
        """The pod with its group in `spec.schedulingGroup`."""
        raise NotImplementedError

    def as_group(self, obj: CustomObject) -> PodGroup | None:
        """The group that an object of a custom resource stands for; None if it stands for none."""
        raise NotImplementedError

    def remark(self, obj: CustomObject) -> str:
        """The fields of such an object that have no effect here, to be logged once; empty if there are none."""
        return ""


GROUP_POINTS: dict[str, type[Plugin]] = {
    "placement_generate": PlacementGeneratePlugin,
    "placement_score": PlacementScorePlugin,
    "pod_group_post_filter": PodGroupPostFilterPlugin,
}
"""The plugin classes that a configuration enables at extension points of groups, by the name of the point."""


@dataclass(frozen=True)
class GroupPostFilterResult:
    """A node for each pod, and the evictions that make room there: None if they are under way already."""

    nominations: dict[str, str]
    """Names of nodes by the identity of pods."""
    room: PostFilterResult | None
    message: str
