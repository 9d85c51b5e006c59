"""Shadow mode and pod groups: a binding is judged by whether the group runs here at all, and where it goes as a whole.

Another scheduler binds the pods of a group one after another. With the first of them, `GroupJudge` places all pods of
the group that wait, and takes them off again: if the group is not feasible, none of its pods would have been bound.
If the group has gone to another domain of its topology, only the first pod says so; the others are judged within that
domain.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple

from kubesched.api.pod import Pod
from kubesched.api.pod_groups import PodGroup
from kubesched.framework.engine import Engine
from kubesched.framework.extender import AnswersMissingError
from kubesched.framework.groups import CandidatePlacement, PlacementGeneratePlugin, group_of
from kubesched.framework.profile import Profile
from kubesched.framework.status import Status
from kubesched.scheduler.attempt.scheduling_cycle import Reserving
from kubesched.scheduler.groups import messages
from kubesched.scheduler.groups.placing import Member, PlacingResult
from kubesched.scheduler.groups.profile import GroupProfile
from kubesched.state.columns import Bool


class InGroup(NamedTuple):
    """What the group of a pod means for the judgement of the pod."""

    judgement: Literal["", "no-node", "rejected", "lower"] = ""
    """The pod's, if the group decides it."""
    why: str = ""
    ours: str = ""
    """The pod's node here, if the group would have gone elsewhere."""
    within: Bool | None = None
    """The nodes that the pod may go to, if not all."""


class GroupJudge:
    """Judges the pods of groups that another scheduler binds."""

    def __init__(self, engine: Engine, profiles: Mapping[str, Profile], find: Callable[[str], Pod | None]) -> None:
        self._state = engine.state
        reserving = Reserving(engine.state, profiles)
        self._profiles = profiles
        self._group_profiles = {
            name: GroupProfile(profile, engine, reserving, find) for name, profile in profiles.items()
        }
        self._infeasible: dict[str, str] = {}
        """By the key of a group that would not have run here: why. Its other pods are judged by that."""

    def judge(self, pod: Pod, theirs: str) -> InGroup:
        """Judge a pod that waits, just before the cache learns that it is on the node `theirs`."""
        group = group_of(pod, self._state)
        if group is None:
            return InGroup()
        if group.key in self._infeasible:
            why = self._infeasible[group.key]
            if len(self._state.groups.pending(group.key)) <= 1:
                del self._infeasible[group.key]
            return InGroup("no-node", why)
        if not self._state.groups.placed(group.key):
            return self._judge_first(pod, theirs, group)
        placements = self._placements(pod, group)
        return InGroup(within=placements[0].nodes if len(placements) == 1 else None)

    def forget(self, group: PodGroup) -> None:
        self._infeasible.pop(group.key, None)

    def _judge_first(self, pod: Pod, theirs: str, group: PodGroup) -> InGroup:
        """Judge the first pod of a group, and with it whether the group runs here."""
        pods = sorted(self._state.groups.pending(group.key), key=lambda member: (-member.priority, member.name))
        try:
            ours = self._try_group(pod, group, pods)
        except AnswersMissingError:  # extenders are asked pod by pod
            return InGroup()
        if ours.status is not None:
            why = f"pod group {group.key}: {ours.status.message}"
            if len(pods) > 1:
                self._infeasible[group.key] = why
            return InGroup("no-node", why)
        return self._compare_domains(pod, theirs, group, ours, pods)

    def _try_group(self, pod: Pod, group: PodGroup, pods: Sequence[Pod]) -> PlacingResult:
        mistake = messages.mistake_in(group, list(pods), (), self._state.features)
        if mistake is not None:
            return PlacingResult(None, mistake)
        profile = self._group_profiles[pod.spec.scheduler_name]
        result = profile.place(group, [Member(member) for member in pods])
        profile.placer.undo(result)
        return result

    def _compare_domains(
        self, pod: Pod, theirs: str, group: PodGroup, ours: PlacingResult, pods: Sequence[Pod]
    ) -> InGroup:
        """Whether the group has gone to the domain that it goes to here, or to one that is as good."""
        row = self._state.nodes.row_of.get(theirs)
        if ours.placement is None or row is None or ours.placement.nodes[row]:
            return InGroup(within=None if ours.placement is None else ours.placement.nodes)
        decision = ours.decisions.get(pod.identity)
        node = decision.node if decision is not None else ""
        domain = next((placement for placement in self._placements(pod, group) if placement.nodes[row]), None)
        if domain is None:
            return InGroup("rejected", f"pod group {group.key}: {theirs} has no label {group.topology_key}", node)
        placer = self._group_profiles[pod.spec.scheduler_name].placer
        there = placer.place(group, [Member(member) for member in pods], domain)
        placer.undo(there)
        if there.status is not None:
            return InGroup("rejected", f"pod group {group.key} in {domain.name}: {there.status.message}", node)
        if self._scores(pod, group, ours) == self._scores(pod, group, there):
            return InGroup(within=domain.nodes)
        return InGroup("lower", f"pod group {group.key} goes to {ours.placement.name} here, not to {domain.name}", node)

    def _scores(self, pod: Pod, group: PodGroup, result: PlacingResult) -> list[int]:
        """The score that each plugin gives a placement, with the pods that fit there."""
        plugins = self._profiles[pod.spec.scheduler_name].placement_scores
        return [plugin.score_placement(group, result.proposal, self._state) for plugin, _ in plugins]

    def _placements(self, pod: Pod, group: PodGroup) -> Sequence[CandidatePlacement]:
        """The domains that the group may go to; none if it may go anywhere, or nowhere."""
        generators = self._profiles[pod.spec.scheduler_name].at("placement_generate", PlacementGeneratePlugin)
        placements = generators[0].placements(group, self._state) if generators else ()
        return () if isinstance(placements, Status) else placements
