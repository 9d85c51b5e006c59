"""Whom affinity terms mean, and how many pods that matter to the incoming pod are in each domain of each topology."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from kubesched.api.selectors import Selector
from kubesched.api.workloads import Namespace
from kubesched.framework.cycle import Cycle
from kubesched.framework.nodes import Nodes
from kubesched.state.cluster import ClusterState
from kubesched.state.columns import Bool, Int64
from kubesched.state.facts import PodFacts, Term, TermKind
from kubesched.state.matching import CarriedTerm, MatchCounter, RowCounts
from kubesched.state.pods import PlacedPod


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


TopologyCounts = list[tuple[str, Int64]]
"""Topology key, and per id of its value how many pods; entry -1 is for nodes without the label, always 0."""


class Neighbours:
    """The three counts that decide: pods that are wanted near, pods to avoid, pods that do not want this one."""

    def __init__(self, cycle: Cycle) -> None:
        self._state = cycle.state
        self._facts = cycle.facts
        self._affinity = cycle.facts.terms_of("required-affinity")
        self._anti_affinity = cycle.facts.terms_of("required-anti-affinity")
        self._namespaces: dict[Term, frozenset[str] | None] = {
            term: namespaces_of(term, cycle.state) for term in (*self._affinity, *self._anti_affinity)
        }
        self.wanted: TopologyCounts = []
        """For each affinity term, pods that match all of the terms."""
        if self._affinity:
            matching = counter_of(self._affinity, cycle.state)
            self.wanted = [(t.topology_key, self._by_domain(t.topology_key, matching)) for t in self._affinity]
        self.avoided: TopologyCounts = [
            (t.topology_key, self._by_domain(t.topology_key, counter_of((t,), cycle.state)))
            for t in self._anti_affinity
        ]
        carriers: dict[str, Int64] = {}
        for carried in carried_terms_that_mean(cycle).get("required-anti-affinity", ()):
            key = carried.term.topology_key
            pods = self._by_domain(key, carried)
            carriers[key] = carriers[key] + pods if key in carriers else pods
        self.unwelcome: TopologyCounts = list(carriers.items())
        """Pods whose own anti-affinity means this pod, once per topology key."""

    @classmethod
    def of(cls, cycle: Cycle) -> Neighbours | None:
        """The neighbours of the pod, or None if no term concerns it."""
        if not cycle.facts.terms and not cycle.state.matches.terms:
            return None
        terms = any(term.kind.startswith("required") for term in cycle.facts.terms)
        if not terms and not carried_terms_that_mean(cycle).get("required-anti-affinity"):
            return None
        found = cls(cycle)
        return found if terms or any(pods.any() for _, pods in found.unwelcome) else None

    def satisfied(self, nodes: Nodes) -> Bool:
        """Per row whether all wanted pods are near. The first pod of a kind that wants its own may go anywhere."""
        labelled, near = ~nodes.none(), ~nodes.none()
        for key, pods in self.wanted:
            ids = nodes.label_ids(key)
            labelled &= ids >= 0
            near &= (pods > 0)[ids]
        if not any(pods.any() for _, pods in self.wanted) and self._wants(self._facts):
            return labelled
        return labelled & near

    def adjust(self, cycle: Cycle, pod: PlacedPod, row: int, sign: int) -> None:
        """What if this pod came to the row, or left it?"""
        if self._affinity and self._wants(pod.facts):
            for key, pods in self.wanted:
                self._add(pods, key, row, sign)
        for term, (key, pods) in zip(self._anti_affinity, self.avoided):
            if self._matches(term, pod.facts):
                self._add(pods, key, row, sign)
        labels = cycle.state.namespace_labels(self._facts.namespace)
        for term in pod.facts.terms_of("required-anti-affinity"):
            if means(term, self._facts, labels):
                self._add(self._unwelcome(term.topology_key), term.topology_key, row, sign)

    def concerns(self, cycle: Cycle, facts: PodFacts) -> bool:
        """Whether pods with these facts count: they are wanted, to be avoided, or do not want this one."""
        if (self._affinity and self._wants(facts)) or any(self._matches(term, facts) for term in self._anti_affinity):
            return True
        labels = cycle.state.namespace_labels(self._facts.namespace)
        return any(means(term, self._facts, labels) for term in facts.terms_of("required-anti-affinity"))

    def _wants(self, facts: PodFacts) -> bool:
        return all(self._matches(term, facts) for term in self._affinity)

    def _matches(self, term: Term, facts: PodFacts) -> bool:
        namespaces = self._namespaces[term]
        return (namespaces is None or facts.namespace in namespaces) and term.selector.matches(facts.labels)

    def _unwelcome(self, key: str) -> Int64:
        """The counts of a topology key; begun if no placed pod has a term with that key."""
        for known, pods in self.unwelcome:
            if known == key:
                return pods
        pods = np.zeros(len(self._state.nodes.label(key).values) + 1, dtype=np.int64)
        self.unwelcome.append((key, pods))
        return pods

    def _add(self, pods: Int64, key: str, row: int, sign: int) -> None:
        value = self._state.nodes.label(key).ids[row]
        if value >= 0:
            pods[value] += sign

    def _by_domain(self, key: str, counts: RowCounts) -> Int64:
        """A copy, since what-ifs change it."""
        return counts.by_value(self._state.nodes.label(key), self._state.nodes.size).copy()
