"""The outcome of an attempt in words, for people who watch a scheduler at work."""

from __future__ import annotations

from kubesched.scheduler.attempt.attempt import Attempt


def reason(attempt: Attempt) -> str:
    """Why the pod went where it did, or nowhere. Of an attempt that is over and was not skipped."""
    decision, failure = attempt.decision, attempt.failure
    if failure is not None and attempt.victims:
        victims = ", ".join(sorted(victim.pod.key for victim in attempt.victims))
        return f"takes the place of {victims} on {failure.nominated}"
    if failure is not None:
        # The first sentence is about the nodes; what follows is about preemption, and seldom of interest.
        return failure.message.partition(". ")[0]
    assert decision is not None
    node = attempt.node
    if node == decision.pod.status.nominated_node_name:
        return f"on {node}, which was kept for it"
    if decision.feasible <= 1:
        others = f" of {decision.evaluated} that fits" if decision.evaluated > 1 else ""
        return f"on {node}: the only node{others}"
    among = "" if decision.draw.among == 1 else f", drawn from {decision.draw.among} equally good ones"
    return f"on {node}: best of {decision.feasible} that fit, score {decision.score}{among}"
