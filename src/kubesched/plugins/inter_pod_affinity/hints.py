"""Queueing hints of InterPodAffinity: pods that match a term come or go, nodes change their domain."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from kubesched.api.node import Node
from kubesched.api.pod import Pod
from kubesched.api.selectors import Requirement
from kubesched.api.workloads import Namespace
from kubesched.framework.events import Hint, Lookup
from kubesched.plugins.inter_pod_affinity.neighbours import term_matches
from kubesched.plugins.shared.hinting import has_node, queue_if
from kubesched.plugins.shared.node_lookup import ANY_NEW_NODE, Token, events_that_may_help, labels_brought
from kubesched.state.cluster import ClusterState
from kubesched.state.facts import PodFacts, Term, TermKind
from kubesched.state.label_index import anchors, labels_as_anchors

_NEAR: TermKind = "required-affinity"
_FAR: TermKind = "required-anti-affinity"

_OTHERS, _OWN = "labels of others", "own labels"


class CompanyHints:
    """Which other pods a rejected pod waits for, to come or to go.

    With `any_unwanted`, a pod is unwanted if one term of anti-affinity matches it; without, if all do. Unless
    `knows_namespaces`, namespaces are taken to have no labels, as in the hints of kube-scheduler.
    """

    def __init__(self, *, any_unwanted: bool, knows_namespaces: bool = False) -> None:
        self._any_unwanted = any_unwanted
        self._knows_namespaces = knows_namespaces
        self.company = Lookup(self._labels_waited_for, self._labels_brought)

    def after_pod(self, pod: Pod, old: Pod | None, new: Pod | None, state: ClusterState) -> Hint:
        """Wanted company came, or unwanted company went."""
        if any(other is not None and not has_node(other) for other in (old, new)):
            return Hint.SKIP
        own = state.facts(pod)
        before, after = (None if other is None else state.facts(other) for other in (old, new))
        if self._wants(own, after, state) and not self._wants(own, before, state):
            return Hint.QUEUE
        if before is not None and self._avoids(own, before, state) and not self._avoids(own, after, state):
            return Hint.QUEUE
        return queue_if(before is not None and after is None and self._avoids(before, own, state))

    def _wants(self, facts: PodFacts, other: PodFacts | None, state: ClusterState) -> bool:
        terms = facts.terms_of(_NEAR)
        return other is not None and bool(terms) and all(self._matches(term, other, state) for term in terms)

    def _avoids(self, facts: PodFacts, other: PodFacts | None, state: ClusterState) -> bool:
        terms, enough = facts.terms_of(_FAR), any if self._any_unwanted else all
        return other is not None and bool(terms) and enough(self._matches(term, other, state) for term in terms)

    def _matches(self, term: Term, other: PodFacts, state: ClusterState) -> bool:
        if term_matches(term, other, {}):
            return True
        asks = self._knows_namespaces and not term.namespace_selector.nothing
        return asks and term_matches(term, other, state.namespace_labels(other.namespace))

    def _labels_waited_for(self, pod: Pod, state: ClusterState) -> Iterator[Hashable]:
        """Pods with labels that terms could match; or any with terms that could have matched the pod's own labels."""
        facts = state.facts(pod)
        for anchors_of_terms in (_anchors_of_all(facts, _NEAR), self._anchors_of_avoided(facts)):
            yield from ((_OTHERS, anchor) for anchor in anchors_of_terms)
        yield from ((_OWN, anchor) for anchor in labels_as_anchors(facts.labels))

    def _labels_brought(self, old: Pod | None, new: Pod | None, state: ClusterState) -> Iterator[Hashable]:
        for pod in (old, new):
            if pod is not None:
                yield from ((_OTHERS, anchor) for anchor in labels_as_anchors(pod.metadata.labels))
        if old is not None and new is None:
            yield from ((_OWN, anchor) for anchor in self._anchors_of_avoided(state.facts(old)))

    def _anchors_of_avoided(self, facts: PodFacts) -> list[tuple[str, ...]]:
        if not self._any_unwanted:
            return _anchors_of_all(facts, _FAR)
        return [anchor for term in facts.terms_of(_FAR) for anchor in anchors(term.selector)]


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


def _anchors_of_all(facts: PodFacts, kind: TermKind) -> list[tuple[str, ...]]:
    """Labels, of which a pod that all terms of a kind match has at least one: some term's anchors will do."""
    anchors_by_term = [list(anchors(term.selector)) for term in facts.terms_of(kind)]
    return min(anchors_by_term, key=lambda of_term: (() in of_term, len(of_term)), default=[])


def _domains_waited_for(pod: Pod, state: ClusterState) -> Iterator[Token]:
    facts = state.facts(pod)
    near, far = facts.terms_of(_NEAR), facts.terms_of(_FAR)
    if far:
        yield ANY_NEW_NODE
    for key in dict.fromkeys(term.topology_key for term in (*near, *far)):
        yield from events_that_may_help((Requirement(key, "Exists"),), state)


DOMAINS = Lookup(_domains_waited_for, labels_brought)


def after_domain(pod: Pod, old: Node | None, new: Node, state: ClusterState) -> Hint:
    """A node came, or changed its domain: those that avoid this pod may not be near. kube-scheduler overlooks it."""
    if old is None:
        return Hint.QUEUE
    facts, changed = state.facts(pod), _changed_labels(old, new)
    terms = state.matches.existing_terms_matching(facts, state.namespace_labels(facts.namespace), changed)
    return queue_if(any(matching.like.kind == _FAR for matching in terms))


def after_namespace(pod: Pod, old: Namespace | None, new: Namespace | None, state: ClusterState) -> Hint:
    """A namespace has other labels: terms look into it that did not, or do so no more. kube-scheduler overlooks it."""
    before, after = ({} if namespace is None else namespace.metadata.labels for namespace in (old, new))
    if before == after:
        return Hint.SKIP
    if pod.namespace in {namespace.name for namespace in (old, new) if namespace is not None}:
        # Placed pods elsewhere may avoid it no longer.
        return Hint.QUEUE
    facts = state.facts(pod)
    selectors = (term.namespace_selector for kind in (_NEAR, _FAR) for term in facts.terms_of(kind))
    return queue_if(any(selector.matches(before) != selector.matches(after) for selector in selectors))


def _changed_labels(old: Node, new: Node) -> list[str]:
    before, after = old.metadata.labels, new.metadata.labels
    return [key for key in {**before, **after} if before.get(key) != after.get(key)]


def _domains_brought(old: Node | None, new: Node | None, state: ClusterState) -> Iterator[Token]:
    if old is None or new is None or state.matches.has_terms_about(_changed_labels(old, new)):
        yield ANY_NEW_NODE


AVOIDED_DOMAINS = Lookup(lambda pod, state: (ANY_NEW_NODE,), _domains_brought)
"""For `after_domain`."""
