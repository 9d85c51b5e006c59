"""An index of the affinity terms of placed pods: which of them match a pod, by its namespace and labels.

Matching a pod against all existing terms costs time by the labels of the pod, independent of the number of terms.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from kubesched.api.selectors import Requirement
from kubesched.state.carried_terms import CarriedTerms
from kubesched.state.columns import Int64, Rows, grown
from kubesched.state.facts import Term
from kubesched.state.label_index import labels_as_anchors
from kubesched.state.term_places import TermPlaces

_NEVER = 1 << 30
"""More requirements than any labels meet."""

Anchor = tuple[str, ...]


class MatchedTerms(NamedTuple):
    """Terms of one kind of carrier whose selectors match, and which else differ only in their weight."""

    carried: CarriedTerms
    like: Term
    number: int
    weight: int
    """The sum of their weights."""


class _Ids:
    """Ids of terms, each as often as it was added; kept as an array until the next change."""

    __slots__ = ("_array", "counts")

    def __init__(self) -> None:
        self.counts: Counter[int] = Counter()
        self._array: Rows | None = None

    def count(self, term: int, sign: int) -> None:
        self.counts[term] += sign
        if not self.counts[term]:
            del self.counts[term]
        self._array = None

    @property
    def array(self) -> Rows:
        if self._array is None:
            self._array = np.fromiter(self.counts.elements(), dtype=np.intp)
        return self._array


class CarriedIndex:
    """By label the terms of which it meets a requirement, and those that it rules out."""

    def __init__(self) -> None:
        self._unmet: Int64 = np.zeros(0, dtype=np.int64)
        """Per term how many requirements a pod without labels does not meet."""
        self._weights: Int64 = np.zeros(0, dtype=np.int64)
        self._groups: Rows = np.zeros(0, dtype=np.intp)
        self._free_terms: list[int] = []
        self._meeting: dict[Anchor, _Ids] = {}
        self._ruling_out: dict[Anchor, _Ids] = {}
        self._alike: list[tuple[CarriedTerms, Term]] = []
        self._places = TermPlaces()
        self._scopes: Rows = np.zeros(0, dtype=np.intp)
        self._topologies: Rows = np.zeros(0, dtype=np.intp)
        """The topology of each group of terms that are alike."""
        self._free_groups: list[int] = []
        self._of: dict[CarriedTerms, tuple[list[int], set[int]]] = {}
        """The ids of terms and groups."""

    def put(self, carried: CarriedTerms) -> None:
        groups: dict[object, int] = {}
        terms = [self._take_term() for _ in carried.terms]
        for i, term in zip(terms, carried.terms, strict=True):
            shared = (term.kind, term.topology_key, term.namespaces, term.namespace_selector)
            if shared not in groups:
                groups[shared] = self._take_group(carried, term)
            self._groups[i] = groups[shared]
            self._weights[i] = term.weight
            unmet = sum(not requirement.accepts(None) for requirement in term.selector.requirements)
            self._unmet[i] = _NEVER if term.selector.nothing else unmet
            self._list(i, term, 1)
        self._of[carried] = terms, set(groups.values())

    def remove(self, carried: CarriedTerms) -> None:
        terms, groups = self._of.pop(carried)
        for i, term in zip(terms, carried.terms, strict=True):
            self._unmet[i] = _NEVER
            self._list(i, term, -1)
        self._free_terms += terms
        for group in groups:
            self._places.give_back(self._alike[group][1])
        self._free_groups += groups

    def has_any_of(self, topologies: Collection[str]) -> bool:
        return bool(self._places.topologies_among(topologies).any())

    def matching(
        self,
        labels: Mapping[str, str],
        namespace: str,
        namespace_labels: Mapping[str, str],
        topologies: Collection[str],
    ) -> Iterator[MatchedTerms]:
        """Terms that select pods with such labels in such a namespace, and have one of these topologies."""
        is_topology = self._places.topologies_among(topologies)
        if not is_topology.any():
            return
        in_scope = self._places.scopes_including(namespace, namespace_labels)
        applies = is_topology[self._topologies] & in_scope[self._scopes]
        if not applies.any():
            return
        unmet = self._unmet.copy()
        for anchor in labels_as_anchors(labels):
            if anchor in self._meeting:
                np.subtract.at(unmet, self._meeting[anchor].array, 1)
            if anchor in self._ruling_out:
                unmet[self._ruling_out[anchor].array] = _NEVER
        terms = np.flatnonzero(unmet == 0)
        if not len(terms):
            return
        terms = terms[applies[self._groups[terms]]]
        groups = self._groups[terms]
        numbers, weights = np.bincount(groups), np.bincount(groups, self._weights[terms])
        for group in np.flatnonzero(numbers).tolist():
            yield MatchedTerms(*self._alike[group], int(numbers[group]), int(weights[group]))

    def _list(self, i: int, term: Term, sign: int) -> None:
        for requirement in term.selector.requirements:
            lists = self._ruling_out if requirement.accepts(None) else self._meeting
            for anchor in _anchors(requirement):
                ids = lists.setdefault(anchor, _Ids())
                ids.count(i, sign)
                if not ids.counts:
                    del lists[anchor]

    def _take_term(self) -> int:
        if not self._free_terms:
            size = len(self._unmet)
            length = max(64, 2 * size)
            self._unmet = grown(self._unmet, length, _NEVER)
            self._weights, self._groups = grown(self._weights, length), grown(self._groups, length)
            self._free_terms = list(range(length - 1, size - 1, -1))
        return self._free_terms.pop()

    def _take_group(self, carried: CarriedTerms, term: Term) -> int:
        if not self._free_groups:
            self._free_groups.append(len(self._alike))
            self._alike.append((carried, term))
            if len(self._alike) > len(self._scopes):
                length = max(64, 2 * len(self._scopes))
                self._scopes, self._topologies = grown(self._scopes, length), grown(self._topologies, length)
        group = self._free_groups.pop()
        self._alike[group] = carried, term
        self._scopes[group], self._topologies[group] = self._places.take(term)
        return group


def _anchors(requirement: Requirement) -> list[Anchor]:
    if requirement.operator in ("In", "NotIn"):
        return [(requirement.key, value) for value in requirement.values]
    return [(requirement.key,)]
