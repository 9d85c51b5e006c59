"""Extenders narrow down where preemption may happen, and may choose other victims there."""

from __future__ import annotations

from collections.abc import Mapping

from kubesched.api.pod import Pod
from kubesched.framework.cycle import Cycle
from kubesched.framework.extender import Extender, ExtenderAnswers, ExtenderError, NodeVictims, SparedVictims
from kubesched.plugins.default_preemption.candidates import Candidate
from kubesched.plugins.default_preemption.dry_run import DryRun
from kubesched.state.cluster import ClusterState


def narrow(cycle: Cycle, run: DryRun) -> DryRun:
    """The outcome with only the candidates that all extenders agree to; ExtenderError if one of them fails."""
    answers, pod = cycle.extender_answers, cycle.latest or cycle.pod
    asked = answers.preempting() if answers is not None else []
    if answers is None or not asked:
        return run
    candidates = run.candidates()
    for extender in asked:
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
    valid = {name: spared for name, spared in answer.items() if _same(question.about.get(name), victims.get(name))}
    if answer and not valid:
        answers.give_up()
    return _found(extender, valid, state)


def _same(asked: NodeVictims | None, now: NodeVictims | None) -> bool:
    if asked is None or now is None:
        return asked is now
    return asked.violations == now.violations and [pod.uid for pod in asked.pods] == [pod.uid for pod in now.pods]


def _found(extender: Extender, answer: Mapping[str, SparedVictims], state: ClusterState) -> list[Candidate]:
    found = [_candidate(extender, name, victims, state) for name, victims in answer.items()]
    for candidate in found:
        if not candidate.victims and not extender.ignorable:
            raise ExtenderError(f'expected at least one victim pod on node "{state.nodes.names[candidate.row]}"')
    return [candidate for candidate in found if candidate.victims]


def _candidate(extender: Extender, name: str, victims: SparedVictims, state: ClusterState) -> Candidate:
    row = state.nodes.row_of.get(name)
    if row is None or not state.nodes.live[row]:
        raise ExtenderError(f'extender "{extender.name}" claims to preempt on node "{name}", but there is no such node')
    there = {placed.pod.uid: placed for placed in state.pods.pods_on(row)}
    for uid in victims.uids:
        if uid not in there:
            raise ExtenderError(
                f'extender "{extender.name}" claims to preempt pod (UID: {uid}) on node "{name}", '
                "but the pod is not found on that node"
            )
    placed = sorted((there[uid] for uid in victims.uids), key=lambda pod: pod.importance)
    return Candidate(row, tuple(placed), victims.violations)
