"""Which pods affinity terms match, and how many that matter to the incoming pod are in each domain of each topology."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from kubesched.api.selectors import Requirement, Selector
from kubesched.api.workloads import Namespace
from kubesched.framework.budget import Expense
from kubesched.framework.cycle import Cycle
from kubesched.framework.nodes import Nodes
from kubesched.state.carried_terms import CarriedTerms
from kubesched.state.cluster import ClusterState
from kubesched.state.columns import Bool, Int64
from kubesched.state.facts import PodFacts, Term, TermKind
from kubesched.state.label_index import LabelIndex, SelectorIndex
from kubesched.state.matching import PodQuery, WeightedSelector
from kubesched.state.pods import PlacedPod
from kubesched.state.row_counts import RowCounts

EXPENSE = Expense("InterPodAffinity", "the terms of its pod affinity")


class NamespacesByLabel:
    """Namespaces that selectors match, kept in step with the namespaces."""

    def __init__(self, state: ClusterState) -> None:
        self._objects = state.objects
        self._version = -1
        self._names: list[str] = []
        self._index = LabelIndex()

    def matching(self, selector: Selector) -> list[str]:
        version = self._objects.version(Namespace)
        if version != self._version:
            self._version, self._index = version, LabelIndex()
            namespaces = list(self._objects.all(Namespace))
            self._names = [namespace.name for namespace in namespaces]
            for i, namespace in enumerate(namespaces):
                self._index.put(i, namespace.metadata.labels)
        rows = self._index.find(selector)
        return [self._names[i] for i in (np.flatnonzero(rows) if rows.dtype == np.bool_ else rows).tolist()]


def namespaces_of(term: Term, state: ClusterState) -> frozenset[str] | None:
    """The namespaces in which a term of the incoming pod looks for pods; None stands for all.

    Unless the release has `selected_namespaces_only`, a namespace selector that accepts a namespace without labels
    accepts them all: kube-scheduler v1.36 asks it twice, the second time without labels.
    """
    selector = term.namespace_selector
    if selector.nothing:
        return term.namespaces
    if selector.is_empty or (not state.features.release.selected_namespaces_only and selector.matches({})):
        return None
    return term.namespaces.union(state.companion(NamespacesByLabel).matching(selector))


def all_of(terms: Iterable[Term], state: ClusterState) -> PodQuery:
    """Asks for the placed pods that match all of the terms."""
    namespaces: frozenset[str] | None = None
    requirements: list[Requirement] = []
    for term in terms:
        if term.selector.nothing:
            return (WeightedSelector(namespaces, term.selector),)
        own = namespaces_of(term, state)
        if own is not None:
            namespaces = own if namespaces is None else namespaces & own
        requirements += term.selector.requirements
    return (WeightedSelector(namespaces, Selector(tuple(requirements))),)


def by_topology(terms: Iterable[Term], cycle: Cycle) -> dict[str, list[WeightedSelector]]:
    """What terms want, by their topology key; keys that no node has are left out, as no pod can be near or far by them.

    Preferred terms count for their weight, against the pod if it is anti-affinity; required ones count once.
    """
    selectors: dict[str, list[WeightedSelector]] = {}
    for term in cycle.budget.watched(terms, EXPENSE):
        if cycle.state.nodes.has_label(term.topology_key):
            weight = -term.weight if term.kind == "preferred-anti-affinity" else term.weight or 1
            selector = WeightedSelector(namespaces_of(term, cycle.state), term.selector, weight)
            selectors.setdefault(term.topology_key, []).append(selector)
    return selectors


def term_matches(term: Term, facts: PodFacts, namespace_labels: dict[str, str]) -> bool:
    """Whether a term of a placed pod matches the pod with these facts, in a namespace with these labels."""
    in_namespace = facts.namespace in term.namespaces or term.namespace_selector.matches(namespace_labels)
    return in_namespace and term.selector.matches(facts.labels)


class MatchingTerms(NamedTuple):
    """Terms of placed pods that match the incoming pod: those of one kind of carrier in one topology."""

    carried: CarriedTerms
    topology_key: str
    number: int
    weight: int
    """The sum of the weights of these terms."""


def matching_carried_terms(cycle: Cycle) -> dict[TermKind, list[MatchingTerms]]:
    """The terms of placed pods that match the incoming pod in topologies that nodes have, by kind.

    Kept until terms, namespaces or the keys of nodes' labels change.
    """
    state = cycle.state
    version = (state.matches.terms_version, state.objects.version(Namespace), state.nodes.label_keys_version)
    return cycle.shared_facts.derived_at(version, _find_carried_terms, cycle)


def _find_carried_terms(cycle: Cycle) -> dict[TermKind, list[MatchingTerms]]:
    state, facts = cycle.state, cycle.facts
    labels = state.namespace_labels(facts.namespace)
    sums: dict[tuple[TermKind, CarriedTerms, str], list[int]] = {}
    for carried, term, number, weight in state.matches.existing_terms_matching(facts, labels, state.nodes.label_keys):
        number_and_weight = sums.setdefault((term.kind, carried, term.topology_key), [0, 0])
        number_and_weight[0] += number
        number_and_weight[1] += weight
    by_kind: dict[TermKind, list[MatchingTerms]] = {}
    for (kind, carried, key), (number, weight) in sums.items():
        by_kind.setdefault(kind, []).append(MatchingTerms(carried, key, number, weight))
    return by_kind


TopologyCounts = list[tuple[str, Int64]]
"""Topology key, and per id of its value how many pods; entry -1 is for nodes without the label, always 0."""


class Neighbours:
    """The three counts that decide: pods that are wanted near, pods to avoid, pods that do not want this one."""

    def __init__(self, cycle: Cycle) -> None:
        self._state = cycle.state
        self._facts = cycle.facts
        self._affinity = cycle.facts.terms_of("required-affinity")
        self._anti_affinity = cycle.facts.terms_of("required-anti-affinity")
        self._namespaces: dict[Term, frozenset[str] | None] = {}
        self.wanted: TopologyCounts = []
        """For each topology key of the affinity terms, pods that match all of the terms."""
        if self._affinity:
            matching = self._state.matches.total(all_of(self._affinity, cycle.state))
            keys = dict.fromkeys(term.topology_key for term in self._affinity)
            self.wanted = [(key, self._by_domain(key, matching)) for key in keys]
        self.avoided: TopologyCounts = [
            (key, self._by_domain(key, self._state.matches.total(tuple(selectors))))
            for key, selectors in by_topology(self._anti_affinity, cycle).items()
        ]
        """For each topology key of the anti-affinity terms, how many pods they match, once per term."""
        carriers: dict[str, Int64] = {}
        for matching_terms in matching_carried_terms(cycle).get("required-anti-affinity", ()):
            add_carriers(carriers, matching_terms, matching_terms.number, cycle.state)
        self.unwelcome: TopologyCounts = list(carriers.items())
        """Pods whose own anti-affinity matches this pod, once per topology key."""

    @classmethod
    def of(cls, cycle: Cycle) -> Neighbours | None:
        """The neighbours of the pod, or None if no term concerns it."""
        if not cycle.facts.terms and not cycle.state.matches.carried:
            return None
        has_terms = bool(cycle.facts.terms_of("required-affinity") or cycle.facts.terms_of("required-anti-affinity"))
        if not has_terms and not matching_carried_terms(cycle).get("required-anti-affinity"):
            return None
        neighbours = cls(cycle)
        return neighbours if has_terms or any(pods.any() for _, pods in neighbours.unwelcome) else None

    def satisfied(self, nodes: Nodes) -> Bool:
        """Per row whether all wanted pods are near. The first pod of a kind that wants its own may go anywhere."""
        labelled, near = ~nodes.none(), ~nodes.none()
        for key, pods in self.wanted:
            ids = nodes.label_ids(key)
            labelled &= ids >= 0
            if not labelled.any():
                return labelled
            near &= (pods > 0)[ids]
        return labelled if self.is_first_of_its_kind else labelled & near

    @property
    def is_first_of_its_kind(self) -> bool:
        """Whether the pod wants pods like itself near, and there are none: then it says where they all go."""
        return bool(self.wanted) and not any(pods.any() for _, pods in self.wanted) and self._wants(self._facts)

    def keys_of_copies_apart(self, cycle: Cycle) -> list[str]:
        """The topologies in each domain of which there may be one copy of the pod."""
        labels = cycle.state.namespace_labels(self._facts.namespace)
        carried = (term for term in self._anti_affinity if term_matches(term, self._facts, labels))
        keys = dict.fromkeys(term.topology_key for term in (*self._avoiding(self._facts), *carried))
        return [key for key in keys if cycle.state.nodes.has_label(key)]

    def adjust(self, cycle: Cycle, pod: PlacedPod, row: int, sign: int) -> None:
        """What if this pod came to the row, or left it?"""
        if self._affinity and self._wants(pod.facts):
            for key, pods in self.wanted:
                self._add(pods, key, row, sign)
        avoided = dict(self.avoided)
        for term in self._avoiding(pod.facts):
            if term.topology_key in avoided:
                self._add(avoided[term.topology_key], term.topology_key, row, sign)
        labels = cycle.state.namespace_labels(self._facts.namespace)
        for term in pod.facts.terms_of("required-anti-affinity"):
            if term_matches(term, self._facts, labels):
                self._add(self._unwelcome_by(term.topology_key), term.topology_key, row, sign)

    def concerns(self, cycle: Cycle, facts: PodFacts) -> bool:
        """Whether pods with these facts count: they are wanted, to be avoided, or do not want this one."""
        if (self._affinity and self._wants(facts)) or any(True for _ in self._avoiding(facts)):
            return True
        labels = cycle.state.namespace_labels(self._facts.namespace)
        return any(term_matches(term, self._facts, labels) for term in facts.terms_of("required-anti-affinity"))

    def _wants(self, facts: PodFacts) -> bool:
        return all(self._matches(term, facts) for term in self._affinity)

    def _avoiding(self, facts: PodFacts) -> Iterator[Term]:
        """The anti-affinity terms that match pods with these facts."""
        if self._anti_affinity:
            index = self._facts.derived(_avoided_by_label, self._anti_affinity)
            yield from (term for term in index.candidates(facts.labels) if self._matches(term, facts))

    def _matches(self, term: Term, facts: PodFacts) -> bool:
        if term not in self._namespaces:
            self._namespaces[term] = namespaces_of(term, self._state)
        namespaces = self._namespaces[term]
        return (namespaces is None or facts.namespace in namespaces) and term.selector.matches(facts.labels)

    def _unwelcome_by(self, key: str) -> Int64:
        """The pods per domain of a topology key; all 0 if no placed pod has a term with that key."""
        for topology_key, pods in self.unwelcome:
            if topology_key == key:
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


def add_carriers(sums: dict[str, Int64], terms: MatchingTerms, times: int, state: ClusterState) -> None:
    """Add the carriers of terms, so many times, to the sums of their topology; begun only if there are any in it."""
    key, table = terms.topology_key, state.nodes
    if not table.has_label(key):
        return
    column = table.label(key)
    of_key = sums[key] if key in sums else np.zeros(len(column.values) + 1, dtype=np.int64)
    if terms.carried.add_to(of_key, column, table.size, times):
        sums[key] = of_key


def _avoided_by_label(terms: tuple[Term, ...]) -> SelectorIndex[Term]:
    index: SelectorIndex[Term] = SelectorIndex()
    for term in terms:
        index.put(term.selector, term)
    return index
