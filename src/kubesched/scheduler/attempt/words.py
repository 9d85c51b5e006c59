"""The outcome of an attempt in words, for people who watch a scheduler at work."""

from __future__ import annotations

from typing import NamedTuple

from kubesched.framework.decision import Decision
from kubesched.scheduler.attempt.attempt import Attempt


def reason(attempt: Attempt) -> str:
    """Why the pod went to its node, or to none. Of an attempt that is over and was not skipped."""
    decision, failure = attempt.decision, attempt.failure
    if failure is not None and attempt.victims:
        victims = ", ".join(sorted(victim.pod.key for victim in attempt.victims))
        return f"takes the place of {victims} on {failure.nominated}"
    if failure is not None:
        # The first sentence is about the nodes; what follows is about preemption, and seldom of interest.
        return failure.message.partition(". ")[0]
    assert decision is not None
    return why_placed(attempt.node, facts_of(decision))


class Placing(NamedTuple):
    """The facts about a decision that found a node."""

    nominated: str
    evaluated: int
    feasible: int
    score: int
    among: int
    """The number of equally good nodes."""


def facts_of(decision: Decision) -> Placing:
    nominated = decision.pod.status.nominated_node_name
    return Placing(nominated, decision.evaluated, decision.feasible, decision.score, decision.draw.among)


def why_placed(node: str, facts: Placing) -> str:
    """Why the pod went to this node."""
    if node == facts.nominated:
        return f"on {node}, which was kept for it"
    if facts.feasible <= 1:
        others = f" of {facts.evaluated} that fits" if facts.evaluated > 1 else ""
        return f"on {node}: the only node{others}"
    among = "" if facts.among == 1 else f", drawn among {facts.among} equals"
    return f"on {node}: best of {facts.feasible} that fit, score {facts.score}{among}"
