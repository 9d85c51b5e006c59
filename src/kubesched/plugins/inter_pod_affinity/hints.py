"""What may help a pod that found no place among others: company that comes or goes, nodes that change their domain."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.framework.events import Hint, Lookup
from kubesched.plugins.inter_pod_affinity.neighbours import means
from kubesched.plugins.shared.hinting import has_node, is_same_pod, queue_if
from kubesched.state.cluster import ClusterState
from kubesched.state.facts import PodFacts, TermKind
from kubesched.state.label_index import anchors, labels_as_anchors

_NEAR: TermKind = "required-affinity"
_FAR: TermKind = "required-anti-affinity"

_OTHERS, _OWN = "labels of others", "own labels"


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


def _waits(pod: Pod, state: ClusterState) -> Iterator[Hashable]:
    """Pods with labels that all terms of a kind could mean; or any that could have meant the pod by its own labels."""
    facts = state.facts(pod)
    for kind in (_NEAR, _FAR):
        yield from ((_OTHERS, anchor) for anchor in _anchors_of_all(facts, kind))
    yield from ((_OWN, anchor) for anchor in labels_as_anchors(facts.labels))


def _brings(old: Pod | None, new: Pod | None, state: ClusterState) -> Iterator[Hashable]:
    for pod in (old, new):
        if pod is not None:
            yield from ((_OTHERS, anchor) for anchor in labels_as_anchors(pod.metadata.labels))
    if old is not None and new is None:
        yield from ((_OWN, anchor) for anchor in _anchors_of_all(state.facts(old), _FAR))


def _anchors_of_all(facts: PodFacts, kind: TermKind) -> list[tuple[str, ...]]:
    """What one of must be among the labels of pods that all terms of a kind mean: some term's anchors will do."""
    found = [list(anchors(term.selector)) for term in facts.terms_of(kind)]
    return min(found, key=lambda of_term: (() in of_term, len(of_term)), default=[])


COMPANY = Lookup(_waits, _brings)
