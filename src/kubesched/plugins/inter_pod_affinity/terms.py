"""Whom an affinity term means: namespaces resolved, and terms of placed pods that mean the incoming pod."""

from __future__ import annotations

from collections.abc import Iterable

from kubesched.api.selectors import Selector
from kubesched.api.workloads import Namespace
from kubesched.framework.cycle import Cycle
from kubesched.state.cluster import ClusterState
from kubesched.state.facts import PodFacts, Term, TermKind
from kubesched.state.matching import CarriedTerm, MatchCounter


def namespaces_of(term: Term, state: ClusterState) -> frozenset[str] | None:
    """The namespaces in which a term of the incoming pod looks for pods; None stands for all.

    A namespace selector that accepts a namespace without labels accepts them all: kube-scheduler asks it twice, the
    second time without labels.
    """
    selector = term.namespace_selector
    if selector.nothing:
        return term.namespaces
    if selector.matches({}):
        return None
    named = (ns.name for ns in state.objects.all(Namespace) if selector.matches(ns.metadata.labels))
    return term.namespaces.union(named)


def counter_of(terms: Iterable[Term], state: ClusterState) -> MatchCounter:
    """Counts the placed pods that match all of the terms."""
    namespaces: frozenset[str] | None = None
    selector = Selector()
    for term in terms:
        own = namespaces_of(term, state)
        if own is not None:
            namespaces = own if namespaces is None else namespaces & own
        selector = term.selector if term.selector.nothing else selector.also(term.selector.requirements)
    return state.matches.counter(namespaces, selector)


def means(term: Term, facts: PodFacts, namespace_labels: dict[str, str]) -> bool:
    """Whether a term of a placed pod means the pod with these facts."""
    inside = facts.namespace in term.namespaces or term.namespace_selector.matches(namespace_labels)
    return inside and term.selector.matches(facts.labels)


def carried_terms_that_mean(cycle: Cycle) -> dict[TermKind, list[CarriedTerm]]:
    """The terms of placed pods that mean the incoming pod, by kind; kept until terms or namespaces change."""
    state = cycle.state
    version = (state.matches.terms_version, state.objects.version(Namespace))
    return cycle.facts.derived_at(version, _find_carried_terms, cycle)


def _find_carried_terms(cycle: Cycle) -> dict[TermKind, list[CarriedTerm]]:
    labels = cycle.state.namespace_labels(cycle.facts.namespace)
    found: dict[TermKind, list[CarriedTerm]] = {}
    for carried in cycle.state.matches.terms:
        if means(carried.term, cycle.facts, labels):
            found.setdefault(carried.term.kind, []).append(carried)
    return found
