"""DefaultPreemption: finds the node where making room costs least, and names the victims."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kubesched.api.change import Change
from kubesched.api.pod import Pod
from kubesched.api.pod_groups import PodGroup, group_key
from kubesched.config.args import DefaultPreemptionArgs
from kubesched.framework.client import SchedulerMode
from kubesched.framework.cycle import Cycle
from kubesched.framework.diagnosis import Diagnosis, histogram
from kubesched.framework.events import Action, Interest
from kubesched.framework.extender import Extender, ExtenderAnswers, ExtenderError, NodeVictims, SparedVictims
from kubesched.framework.groups import GroupPostFilterResult, GroupWhatIf, PodGroupPostFilterPlugin
from kubesched.framework.plugin import PluginContext, PostFilterPlugin, PostFilterResult, PreEnqueuePlugin, WhatIfRunner
from kubesched.framework.reads import PodFields, Reads, Scope
from kubesched.framework.status import Code, Status, error, unresolvable, unschedulable
from kubesched.plugins.default_preemption.candidates import Candidate
from kubesched.plugins.default_preemption.dry_run import DryRun, dry_run
from kubesched.plugins.default_preemption.eviction import Eviction, EvictionsInProgress, GroupEviction
from kubesched.plugins.default_preemption.group_preemption import (
    is_leaving_for_another,
    is_under_way,
    make_room,
    whole_units,
)
from kubesched.plugins.shared.hinting import waits_for_pods
from kubesched.state.cluster import ClusterState
from kubesched.state.pods import PlacedPod

NOT_HELPFUL = "Preemption is not helpful for scheduling"
NEVER = "not eligible due to preemptionPolicy=Never."
FOUND = "preemption: found a potential placement for pod on node"
NO_CANDIDATE = unschedulable("preemption: no candidate node for preemption")
STILL_EVICTING_FOR_GROUP = unresolvable("waiting for the preemption for this pod group to be finished")
STILL_EVICTING = unresolvable("waiting for the preemption for this pod to be finished")
WAITING_FOR_VICTIMS = "not eligible due to a terminating pod on the nominated node."

_AT_LEAST = 100


@dataclass(frozen=True)
class PreemptionDetails:
    """All that was found out, for an explanation."""

    ineligible: str = ""
    run: DryRun | None = None
    best: tuple[int, ...] = ()
    """The rows of the candidates that nothing tells apart from the best, by name; the first is chosen."""


class DefaultPreemption(PostFilterPlugin, PodGroupPostFilterPlugin, PreEnqueuePlugin):
    """Chooses victims of lower priority, on one node, as few and as unimportant as possible."""

    name = "DefaultPreemption"
    post_filter_reads = Reads(PodFields.SPEC, Scope.CLUSTER)

    def __init__(self, args: DefaultPreemptionArgs | None = None, context: PluginContext | None = None) -> None:
        super().__init__(args, context)
        self._args = args or DefaultPreemptionArgs()
        self._holds_back = self.context.features.async_preemption
        self._says_what_it_found = self.context.features.release.preemption_said
        self._next_start = 0
        self._evicting = EvictionsInProgress()

    def events_to_register(self) -> tuple[Interest, ...]:
        """Wakes a gated pod when its victims are gone; the plugins that will let it pass then decide."""
        if not self._holds_back:
            return ()
        return waits_for_pods(self.context.features.release, placed=Action.DELETE)

    def _enough(self, rows: int) -> int:
        """How many candidates are enough where each costs some time. Where they cost none, all are considered."""
        share = rows * self._args.min_candidate_nodes_percentage // 100
        return max(share, self._args.min_candidate_nodes_absolute, _AT_LEAST)

    def pre_enqueue(self, pod: Pod, state: ClusterState) -> Status | None:
        if self._evicting.holds_back(pod.identity, state):
            return STILL_EVICTING
        key = group_key(pod)
        return STILL_EVICTING_FOR_GROUP if key and self._evicting.holds_back(f"podgroup/{key}", state) else None

    def pods_to_recheck(self, change: Change[Any]) -> Collection[str] | None:
        return None if self.context.features.pod_groups else self._evicting.waiting_for(change.obj.identity)

    def post_filter(
        self, cycle: Cycle, diagnosis: Diagnosis, what_if: WhatIfRunner
    ) -> tuple[PostFilterResult | None, Status | None]:
        if cycle.latest is None:  # deleted meanwhile: no pod is to be evicted for it
            return None, error(f'preemption: pod "{cycle.pod.name}" not found')
        cycle.priority = cycle.latest.priority
        ineligible = why_not_eligible(cycle, diagnosis)
        if ineligible:
            details = PreemptionDetails(ineligible)
            return PostFilterResult(details=details), unschedulable(f"preemption: {ineligible}")
        potential = diagnosis.rows_rejected_as(Code.UNSCHEDULABLE)
        run = dry_run(cycle, what_if, potential, enough=self._enough(len(potential)), start=self._next_start)
        if not run.has_candidates:
            self._next_start += run.tried_singly
            return self._hopeless(run, diagnosis.node_count)
        try:
            run = narrow(cycle, run)
        except ExtenderError as failure:
            return PostFilterResult(details=PreemptionDetails(run=run)), error(f"preemption: {failure}")
        self._next_start += run.tried_singly  # once in an attempt, even if it waited for extenders
        if not run.has_candidates:
            return PostFilterResult(details=PreemptionDetails(run=run)), NO_CANDIDATE
        names = cycle.state.nodes.names
        best = sorted(run.best_rows(), key=names.__getitem__)
        details = PreemptionDetails(run=run, best=tuple(best))
        node_name, victims = names[best[0]], run.candidate(best[0]).victims
        if self.context.features.pod_groups:
            victims = whole_units(victims, cycle.state)
        text = f"{FOUND} {node_name}, preempting {len(victims)} victims" if self._says_what_it_found else ""
        return PostFilterResult(node_name, victims, details, self._eviction(cycle, node_name, victims), text), None

    def _eviction(self, cycle: Cycle, node_name: str, victims: Sequence[PlacedPod]) -> Eviction | None:
        leaving = [victim.pod for victim in victims if not victim.pod.is_terminating]
        if not leaving:
            return None
        preemptor = cycle.latest or cycle.pod
        return Eviction(self.name, preemptor, cycle.state, node_name, leaving, self._evicting, self.context)

    def pod_group_post_filter(
        self, group: PodGroup, pods: Sequence[Pod], state: ClusterState, what_if: GroupWhatIf
    ) -> tuple[GroupPostFilterResult | None, Status | None]:
        prefix = "" if group.is_alpha else "pod group preemption: "
        if is_under_way(group, pods, state):
            nominations = {pod.identity: pod.status.nominated_node_name for pod in pods}
            return GroupPostFilterResult(nominations, None, f"{prefix}ongoing preemption on nominated nodes"), None
        room = make_room(group, pods, state, what_if)
        if isinstance(room, Status):
            return None, replace(room, reasons=(f"{prefix}{room.message}",)) if room.is_rejection else room
        names = state.nodes.names
        nominations = {pod.identity: names[row] for pod, row in room.assignments}
        leaving = [victim.pod for victim in room.victims if not victim.pod.is_terminating]
        whole_cluster = (self.name, pods[0], state, "cluster", leaving, self._evicting, self.context)
        eviction = GroupEviction(*whole_cluster, group, pods, frozenset(nominations.values()))
        if leaving and (refusal := eviction.refusal()):
            return None, unschedulable(refusal)
        result = PostFilterResult("", room.victims, None, eviction) if leaving else None
        text = f"{prefix}found a placement for podgroup, preempting {len(room.victims)} victims"
        return GroupPostFilterResult(nominations, result, text), None

    def _hopeless(self, run: DryRun, node_count: int) -> tuple[PostFilterResult, Status]:
        details = PreemptionDetails(run=run)
        broken = run.error()
        if broken is not None:
            return PostFilterResult(details=details), error(f"preemption: {broken.message}")
        reasons = run.reasons()
        if len(run.potential) < node_count:
            reasons[NOT_HELPFUL] = reasons.get(NOT_HELPFUL, 0) + node_count - len(run.potential)
        text = f"preemption: 0/{node_count} nodes are available: {histogram(reasons)}."
        # kube-scheduler does not wake a pod by the plugins that reject only its preemption.
        rejectors = run.rejectors() if self.context.handle.mode is SchedulerMode.BATCHED else frozenset()
        return PostFilterResult(nominated="", details=details, rejectors=rejectors), unschedulable(text)


def why_not_eligible(cycle: Cycle, diagnosis: Diagnosis) -> str:
    """A pod may not preempt if it says so itself, or while victims of an earlier preemption are still leaving."""
    pod = cycle.latest or cycle.pod
    if pod.spec.preemption_policy == "Never":
        return NEVER
    row = cycle.state.nodes.row_of.get(pod.status.nominated_node_name)
    if row is None or not cycle.state.nodes.live[row]:
        return ""
    status = diagnosis.status_of(row)
    if status is not None and status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
        return ""
    leaving = (
        placed.pod.priority < pod.priority and is_leaving_for_another(placed.pod)
        for placed in cycle.state.pods.pods_on(row)
    )
    return WAITING_FOR_VICTIMS if any(leaving) else ""


def narrow(cycle: Cycle, run: DryRun) -> DryRun:
    """The outcome with only the candidates that all extenders agree to; ExtenderError if one of them fails."""
    answers, pod = cycle.extender_answers, cycle.latest or cycle.pod
    extenders = answers.preempting() if answers is not None else []
    if answers is None or not extenders:
        return run
    candidates = run.candidates()
    for extender in extenders:
        if not candidates:
            break
        try:
            candidates = _ask(extender, pod, cycle.state, candidates, answers)
        except ExtenderError:
            if not extender.ignorable:
                raise
    return run.with_candidates(candidates)


def _ask(
    extender: Extender, pod: Pod, state: ClusterState, candidates: list[Candidate], answers: ExtenderAnswers
) -> list[Candidate]:
    names = state.nodes.names
    victims = {
        names[candidate.row]: NodeVictims(tuple(victim.pod for victim in candidate.victims), candidate.violations)
        for candidate in candidates
    }
    question = answers.about_victims(extender, pod, victims)
    answer = question.answer
    # Nodes where it would take other victims by now than those that the extender was asked about are left out.
    valid = {name: spared for name, spared in answer.items() if _is_same(question.about.get(name), victims.get(name))}
    if answer and not valid:
        answers.give_up()
    narrowed = [_candidate(extender, name, spared, state) for name, spared in valid.items()]
    for candidate in narrowed:
        if not candidate.victims and not extender.ignorable:
            raise ExtenderError(f'expected at least one victim pod on node "{names[candidate.row]}"')
    return [candidate for candidate in narrowed if candidate.victims]


def _is_same(before: NodeVictims | None, now: NodeVictims | None) -> bool:
    if before is None or now is None:
        return before is now
    return before.violations == now.violations and [pod.uid for pod in before.pods] == [pod.uid for pod in now.pods]


def _candidate(extender: Extender, name: str, victims: SparedVictims, state: ClusterState) -> Candidate:
    row = state.nodes.row_of.get(name)
    if row is None or not state.nodes.live[row]:
        raise ExtenderError(f'extender "{extender.name}" claims to preempt on node "{name}", but there is no such node')
    pods_there = {placed.pod.uid: placed for placed in state.pods.pods_on(row)}
    for uid in victims.uids:
        if uid not in pods_there:
            raise ExtenderError(
                f'extender "{extender.name}" claims to preempt pod (UID: {uid}) on node "{name}", '
                "but the pod is not found on that node"
            )
    placed = sorted((pods_there[uid] for uid in victims.uids), key=lambda pod: pod.importance)
    return Candidate(row, tuple(placed), victims.violations)
