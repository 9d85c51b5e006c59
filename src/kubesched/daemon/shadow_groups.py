"""Shadow mode and pod groups: a binding is judged by whether the group runs here at all, and where it goes as a whole.

Another scheduler binds the pods of a group one after another. With the first of them, all that wait are placed here,
and taken off again: if the group is not feasible, none of its pods would have been bound. Where the group has gone to
another domain of its topology than it would have here, that is said once; its pods are then judged within that domain.
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
    """What a pod's group means for it."""

    judgement: Literal["", "no-node", "rejected", "lower"] = ""
    """That of the pod, if the group settles it."""
    why: str = ""
    ours: str = ""
    """Its node here, if the group would have gone elsewhere."""
    within: Bool | None = None
    """The nodes that it may go to, if not all."""


class GroupJudge:
    """The groups of a cluster that another scheduler rules."""

    def __init__(self, engine: Engine, profiles: Mapping[str, Profile], find: Callable[[str], Pod | None]) -> None:
        self._state = engine.state
        reserving = Reserving(engine.state, profiles)
        self._profiles = {name: GroupProfile(each, engine, reserving, find) for name, each in profiles.items()}
        self._plugins = profiles
        self._infeasible: dict[str, str] = {}
        """By the key of a group that would not have run here: why. Its other pods are judged alike."""

    def judged(self, pod: Pod, theirs: str) -> InGroup:
        """A pod that waits, just before it is known to be on that node."""
        group = group_of(pod, self._state)
        if group is None:
            return InGroup()
        if group.key in self._infeasible:
            why = self._infeasible[group.key]
            if len(self._state.groups.pending(group.key)) <= 1:
                del self._infeasible[group.key]
            return InGroup("no-node", why)
        if not self._state.groups.placed(group.key):
            return self._first(pod, theirs, group)
        placements = self._placements(pod, group)
        return InGroup(within=placements[0].nodes if len(placements) == 1 else None)

    def forget(self, group: PodGroup) -> None:
        self._infeasible.pop(group.key, None)

    def _first(self, pod: Pod, theirs: str, group: PodGroup) -> InGroup:
        """The first pod of a group: what becomes of all of it is settled here."""
        pods = sorted(self._state.groups.pending(group.key), key=lambda each: (-each.priority, each.name))
        profile = self._profiles[pod.spec.scheduler_name]
        try:
            placed = self._placed(profile, group, pods)
        except AnswersMissingError:  # extenders have a say, which is asked pod by pod
            return InGroup()
        if placed.status is not None:
            why = f"pod group {group.key}: {placed.status.message}"
            if len(pods) > 1:
                self._infeasible[group.key] = why
            return InGroup("no-node", why)
        return self._domain(pod, theirs, group, placed, pods)

    def _placed(self, profile: GroupProfile, group: PodGroup, pods: Sequence[Pod]) -> PlacingResult:
        mistake = messages.mistake_in(group, list(pods), (), self._state.features)
        if mistake is not None:
            return PlacingResult(None, mistake)
        placed = profile.place(group, [Member(pod) for pod in pods])
        profile.placer.undo(placed)
        return placed

    def _domain(self, pod: Pod, theirs: str, group: PodGroup, ours: PlacingResult, pods: Sequence[Pod]) -> InGroup:
        """Whether the group has gone to the domain that it goes to here, or to one that is as good."""
        row = self._state.nodes.row_of.get(theirs)
        if ours.placement is None or row is None or ours.placement.nodes[row]:
            return InGroup(within=None if ours.placement is None else ours.placement.nodes)
        decision = ours.decisions.get(pod.identity)
        node = decision.node if decision is not None else ""
        domain = next((placement for placement in self._placements(pod, group) if placement.nodes[row]), None)
        if domain is None:
            return InGroup("rejected", f"pod group {group.key}: {theirs} has no label {group.topology_key}", node)
        placer = self._profiles[pod.spec.scheduler_name].placer
        there = placer.place(group, [Member(each) for each in pods], domain)
        placer.undo(there)
        if there.status is not None:
            return InGroup("rejected", f"pod group {group.key} in {domain.name}: {there.status.message}", node)
        if self._scores(pod, group, ours) == self._scores(pod, group, there):
            return InGroup(within=domain.nodes)
        return InGroup("lower", f"pod group {group.key} goes to {ours.placement.name} here, not to {domain.name}", node)

    def _scores(self, pod: Pod, group: PodGroup, placed: PlacingResult) -> list[int]:
        """What each plugin thinks of a placement, with the pods that fit there."""
        plugins = self._plugins[pod.spec.scheduler_name].placement_scores
        return [plugin.score_placement(group, placed.proposal, self._state) for plugin, _ in plugins]

    def _placements(self, pod: Pod, group: PodGroup) -> Sequence[CandidatePlacement]:
        """The domains that the group may go to; none if it may go anywhere, or nowhere."""
        generators = self._plugins[pod.spec.scheduler_name].at("placement_generate", PlacementGeneratePlugin)
        placements = generators[0].placements(group, self._state) if generators else ()
        return () if isinstance(placements, Status) else placements
