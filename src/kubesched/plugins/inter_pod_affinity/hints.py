"""What may help a pod that found no company, or too much of it: pods that its terms mean, and nodes that move."""

from __future__ import annotations

from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.framework.events import Action, Hint, Interest, Kind
from kubesched.plugins.inter_pod_affinity.terms import means
from kubesched.plugins.shared.hinting import has_node, is_same_pod, queue_if, waits_for
from kubesched.state.cluster import ClusterState
from kubesched.state.facts import PodFacts, TermKind

_NEAR: TermKind = "required-affinity"
_FAR: TermKind = "required-anti-affinity"


def interests() -> tuple[Interest, ...]:
    return (
        waits_for(Kind.POD, Action.ADD | Action.DELETE | Action.UPDATE_POD_LABEL, after_pod),
        waits_for(Kind.NODE, Action.ADD | Action.UPDATE_NODE_LABEL, after_node),
    )


def after_pod(pod: Pod, old: Pod | None, new: Pod | None, state: ClusterState) -> Hint:
    """Wanted company came, or unwanted company went; or the pod itself has labels that others may like better."""
    if old is not None and new is not None and is_same_pod(pod, new):
        return Hint.QUEUE
    if any(other is not None and not has_node(other) for other in (old, new)):
        return Hint.SKIP
    own = state.facts(pod)
    before, after = (None if other is None else state.facts(other) for other in (old, new))
    if after is not None and _all_mean(own, _NEAR, after) and not _all_mean(own, _NEAR, before):
        return Hint.QUEUE
    if before is not None and _all_mean(own, _FAR, before) and not _all_mean(own, _FAR, after):
        return Hint.QUEUE
    return queue_if(before is not None and after is None and _all_mean(before, _FAR, own))


def after_node(pod: Pod, old: Node | None, new: Node, state: ClusterState) -> Hint:
    """A node entered a domain in which company is wanted, or left one in which it is not."""
    facts, labels = state.facts(pod), new.metadata.labels
    near = {term.topology_key for term in facts.terms_of(_NEAR)}
    far = {term.topology_key for term in facts.terms_of(_FAR)}
    if old is None:
        # A node without the label has no neighbours at all, so any new node suits a pod that avoids some.
        return queue_if(bool(far) or any(key in labels for key in near))
    before = old.metadata.labels
    entered = any(key in labels and labels[key] != before.get(key) for key in near)
    left = any(key in before and before[key] != labels.get(key) for key in far)
    return queue_if(entered or left)


def _all_mean(facts: PodFacts, kind: TermKind, other: PodFacts | None) -> bool:
    """Whether there are such terms and all mean the other pod.

    Namespaces are taken to have no labels, as in the hints of kube-scheduler.
    """
    terms = facts.terms_of(kind)
    return other is not None and bool(terms) and all(means(term, other, {}) for term in terms)
