"""An explanation in words, the same on the terminal and on a page of HTML."""

from __future__ import annotations

from collections.abc import Sequence

from kubesched.ask.explain import NAMED_ONE_BY_ONE, ExplainedPod, NodeGroup
from kubesched.ask.explain.explanation import Explanation, NodeRejection, NodeScore, NodeVerdict
from kubesched.ask.explain.pod_groups import GroupExplanation, PodGroupPoolHelp
from kubesched.ask.output import counted, listed
from kubesched.ask.remedies import Remedies

MOST_NAMES = 4


def choice(explanation: Explanation) -> str:
    """What became of the pod, and why this node."""
    if not explanation.node:
        return "Something broke:" if explanation.outcome == "error" else "It fits nowhere:"
    text = f"It goes to {explanation.node}"
    if explanation.nominated:
        return f"{text}, to which it was nominated earlier and which still fits."
    if explanation.ties:
        ties = explanation.ties
        return f"{text}, drawn among {len(ties)} equally good nodes with seed {explanation.seed}: {listed(ties)}."
    if len(explanation.scores) == 1:
        return f"{text}, the only node that fits."
    return f"{text}, the best of those that fit." if explanation.scores else f"{text}."


def which(group: NodeGroup) -> str:
    """The nodes of a group: their names, if they are few, or what they have in common."""
    names = ", ".join(group.nodes)
    if len(group.nodes) <= NAMED_ONE_BY_ONE:
        return names
    if group.trait is not None:
        return group.trait.text
    return listed(group.nodes, most=MOST_NAMES)


def group_reason(group: NodeGroup) -> str:
    """Why the nodes of a group do not fit."""
    assert group.refusal is not None
    reason = _reasons(group.refusal)
    if group.refusal.plugin:
        reason += f" ({group.refusal.plugin})"
    if group.for_nominated:
        reason += ", with the pods that are nominated to these nodes"
    if group.also:
        reason += f"\nalso {'; '.join(map(_objection, group.also))}"
    return reason


def node_reason(verdict: NodeVerdict) -> str:
    """Why one node does not fit."""
    assert verdict.refusal is not None
    text = _reasons(verdict.refusal)
    if verdict.for_nominated:
        text += " (with the pods that are nominated to this node)"
    if verdict.also:
        text += f"\nalso {'; '.join(map(_objection, verdict.also))}"
    return text


def _objection(refusal: NodeRejection) -> str:
    return f"{refusal.plugin}: {_reasons(refusal)}"


def _reasons(refusal: NodeRejection) -> str:
    """The reasons without what the table says already: that they are about nodes."""
    return ", ".join(reason.removeprefix("node(s) ") for reason in refusal.reasons)


def what_would_help(answer: ExplainedPod) -> list[str]:
    """A sentence for each remedy."""
    nodes = {verdict.node for verdict in answer.explanation.verdicts}
    remedies = answer.findings.remedies.found if answer.findings.remedies is not None else ()
    sentences = []
    for remedy in remedies:
        is_clear = remedy.node in remedy.text or remedy.node not in nodes
        where = "" if is_clear else f" It would go to {remedy.node}."
        sentences.append(f"{remedy.text}.{where} {remedy.cost}".rstrip())
    return sentences


def nothing_helps(remedies: Remedies) -> str:
    if remedies.exhaustive:
        return f"No single change helps, and no pair: {remedies.tried} were tried."
    return f"Nothing was found that helps: {remedies.tried} changes were tried."


def outcome_of_group(group: GroupExplanation) -> str:
    """What becomes of a pod group."""
    if group.outcome == "scheduled":
        return "The group is scheduled."
    if group.outcome == "gated":
        return "The group is held back:"
    if group.outcome == "error":
        return "Something is wrong with the group:"
    if group.would_evict:
        return f"The group waits until the scheduler has made room for it, by evicting {listed(group.would_evict)}:"
    return "The group waits as a whole:"


def nodes_that_help(help_: PodGroupPoolHelp) -> str:
    """The new nodes with which a pod group would be scheduled."""
    where = f" in {listed(help_.zones)}" if help_.zones else ""
    return f"{counted(help_.nodes, 'more node')} of pool {help_.pool}{where}."


def plugins_that_tell_apart(scores: Sequence[NodeScore]) -> list[int]:
    """The positions of the plugins that do not score all nodes alike."""
    return [i for i in range(len(scores[0].parts)) if len({score.parts[i].weighted for score in scores}) > 1]
