"""Match counts: for every question "how many pods on this node match?", a column kept up to date as pods come and go.

Topology spread and inter-pod affinity ask it of selectors; inter-pod affinity also asks the reverse, how many pods on
a node carry a term. In kube-scheduler each attempt walks all pods for that; here the column is there already.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from kubesched.api.selectors import Selector
from kubesched.state.carried_index import CarriedIndex, MatchedTerms
from kubesched.state.carried_terms import CarriedTerms
from kubesched.state.columns import ABSENT, Bool, Int64, LabelColumn, is_one_of
from kubesched.state.facts import PodFacts, StateKey, Term
from kubesched.state.label_index import LabelIndex, SelectorIndex
from kubesched.state.pods import PlacedPod, PodTable
from kubesched.state.row_counts import RowCounts

_BYTES_KEPT = 64 << 20
_BYTES_PER_CONDITION = 8000
"""Bytes per selector, namespace or requirement: more than they take, so that questions with thousands are not kept."""
_LARGE_SHARE = 16
"""A counter that takes more than this part of all bytes is not kept: each placed pod would update it."""
_LISTED = 64
"""The number of counters that are listed per label class; more are found anew for each pod."""


class WeightedSelector(NamedTuple):
    """Selects pods in some namespaces (None stands for all), each of which counts `weight` times."""

    namespaces: frozenset[str] | None
    selector: Selector
    weight: int = 1

    def counts(self, namespace: str, labels: Mapping[str, str]) -> bool:
        return (self.namespaces is None or namespace in self.namespaces) and self.selector.matches(labels)


PodQuery = tuple[WeightedSelector, ...]


class MatchCounter(RowCounts):
    """How many pods on each row match; one that several selectors match counts for each."""

    __slots__ = ("question", "size", "with_terminating")

    def __init__(self, question: PodQuery, with_terminating: bool, counts: Int64) -> None:
        # Counts without weights fit into 32 bits, which are faster to read.
        super().__init__(counts if sum(abs(term.weight) for term in question) > 1 else counts.astype(np.int32))
        self.question = question
        self.with_terminating = with_terminating
        conditions = sum(1 + len(term.selector.requirements) + len(term.namespaces or ()) for term in question)
        self.size = 12 * len(counts) + _BYTES_PER_CONDITION * conditions
        """Bytes, about, with a topology in which each node is a domain."""


class LabelClass:
    """All placed pods with the same namespace and labels: a selector matches all of them or none."""

    __slots__ = ("counters", "id", "labels", "namespace", "pods", "version")

    def __init__(self, group_id: int, namespace: str, labels: Mapping[str, str]) -> None:
        self.id = group_id
        self.namespace = namespace
        self.labels = labels
        self.pods = 0
        self.counters: list[tuple[MatchCounter, int]] = []
        """The counters that count these pods, and how many times."""
        self.version = -1
        """`MatchCounts` version of the counters when these were found."""


_GROUP = StateKey[LabelClass]("PodGroup")
_CARRIED = StateKey[CarriedTerms]("CarriedTerms")

GroupKey = tuple[str, frozenset[tuple[str, str]]]


class MatchCounts:
    """All label classes, counters and carried terms."""

    def __init__(self, pods: PodTable) -> None:
        self.length = 0
        self._pods = pods
        self._groups: dict[GroupKey, LabelClass] = {}
        self._free_ids: list[int] = []
        self._by_labels = LabelIndex()
        self._by_namespace = LabelColumn("", len(self._by_labels))
        self._counters: dict[tuple[PodQuery, bool], MatchCounter] = {}
        self._by_selector: SelectorIndex[tuple[MatchCounter, int]] = SelectorIndex()
        self._counters_version = 0
        self._bytes = 0
        self._carried: dict[tuple[Term, ...], CarriedTerms] = {}
        self._carried_index = CarriedIndex()
        self.terms_version = 0
        """Changes when a pod brings terms that no pod carried, or the last carrier of some goes."""

    @property
    def carried(self) -> Collection[CarriedTerms]:
        """The terms of every kind of placed pod that has any."""
        return self._carried.values()

    def existing_terms_matching(
        self, facts: PodFacts, namespace_labels: Mapping[str, str], topologies: Collection[str]
    ) -> Iterator[MatchedTerms]:
        """The terms of placed pods that select pods with such facts, and have one of these topologies."""
        return self._carried_index.matching(facts.labels, facts.namespace, namespace_labels, topologies)

    def has_terms_about(self, topologies: Collection[str]) -> bool:
        """Whether placed pods have terms with one of these topologies."""
        return self._carried_index.has_any_of(topologies)

    def counter(
        self, namespaces: frozenset[str] | None, selector: Selector, *, with_terminating: bool = True
    ) -> MatchCounter:
        """The column of how many pods match a selector."""
        return self.total((WeightedSelector(namespaces, selector),), with_terminating=with_terminating)

    def total(self, question: PodQuery, *, with_terminating: bool = True) -> MatchCounter:
        """The column for a question: counted when it is asked first, and kept up to date unless it is large."""
        key = (question, with_terminating)
        counter = self._counters.pop(key, None)
        if counter is None:
            counter = MatchCounter(question, with_terminating, self._count(question, with_terminating))
            if counter.size > _BYTES_KEPT // _LARGE_SHARE:
                return counter
            for i, term in enumerate(question):
                self._by_selector.put(term.selector, (counter, i))
            self._bytes += counter.size
            self._counters_version += 1
            while self._bytes > _BYTES_KEPT and self._counters:
                self._forget(next(iter(self._counters)))
        self._counters[key] = counter  # the most recently used
        return counter

    def add(self, placed: PlacedPod) -> None:
        """A pod came to a row."""
        group = self._group(placed.facts)
        group.pods += 1
        self._pods.groups[placed.index] = group.id
        self._update_counters(group, placed, 1)
        if placed.facts.terms:
            self._carry(placed, 1)

    def remove(self, placed: PlacedPod) -> None:
        """A pod left its row."""
        group = self._group(placed.facts)
        group.pods -= 1
        self._update_counters(group, placed, -1)
        if not group.pods:
            del self._groups[_group_key(placed.facts)]
            placed.facts.keep(_GROUP, None)
            self._by_labels.remove(group.id)
            self._by_namespace.set(group.id, None)
            self._free_ids.append(group.id)
        if placed.facts.terms:
            self._carry(placed, -1)

    def extend(self, length: int) -> None:
        """The node table has grown to this many rows."""
        self.length = length
        for counter in self._counters.values():
            counter.extend(length)
        for carried in self._carried.values():
            carried.extend(length)

    # -- groups -------------------------------------------------------------------------------------------------------

    def _group(self, facts: PodFacts) -> LabelClass:
        group = facts.find(_GROUP)
        if group is None or not group.pods:
            key = _group_key(facts)
            group = self._groups.get(key)
            if group is None:
                group_id = self._free_ids.pop() if self._free_ids else len(self._groups)
                group = self._groups[key] = LabelClass(group_id, facts.namespace, facts.labels)
                self._by_labels.put(group_id, facts.labels)
                if len(self._by_labels) > len(self._by_namespace.ids):
                    self._by_namespace.extend(len(self._by_labels))
                self._by_namespace.set(group_id, facts.namespace)
            facts.keep(_GROUP, group)
        return group

    def _update_counters(self, group: LabelClass, placed: PlacedPod, sign: int) -> None:
        counters = group.counters
        if group.version != self._counters_version:
            counters = self._counters_of(group)
            if len(counters) <= _LISTED:
                group.counters, group.version = counters, self._counters_version
        if counters:
            terminating = placed.pod.is_terminating
            for counter, weight in counters:
                if counter.with_terminating or not terminating:
                    counter.add(placed.row, sign * weight)

    def _counters_of(self, group: LabelClass) -> list[tuple[MatchCounter, int]]:
        weights: dict[MatchCounter, int] = {}
        for counter, i in self._by_selector.candidates(group.labels):
            term = counter.question[i]
            if term.counts(group.namespace, group.labels):
                weights[counter] = weights.get(counter, 0) + term.weight
        return list(weights.items())

    # -- counters -----------------------------------------------------------------------------------------------------

    def _count(self, question: PodQuery, with_terminating: bool) -> Int64:
        weights = np.zeros(len(self._by_labels), dtype=np.int64)
        by_namespaces: dict[frozenset[str], Bool] = {}
        for namespaces, selector, weight in question:
            groups = self._by_labels.find(selector)
            if namespaces is not None and len(groups):
                if namespaces not in by_namespaces:
                    by_namespaces[namespaces] = self._in_namespaces(namespaces)
                inside = by_namespaces[namespaces]
                groups = groups & inside if groups.dtype == np.bool_ else groups[inside[groups]]
            if groups.dtype == np.bool_:
                weights += groups * weight
            else:
                weights[groups] += weight
        if not weights.any():
            return np.zeros(self.length, dtype=np.int64)
        pods, size = self._pods, self._pods.size
        rows = pods.rows[:size]
        is_counted = rows >= 0
        if not with_terminating:
            is_counted &= ~pods.terminating[:size]
        pod_weights = weights[pods.groups[:size][is_counted]]
        return np.bincount(rows[is_counted], weights=pod_weights, minlength=self.length).astype(np.int64)

    def _in_namespaces(self, namespaces: frozenset[str]) -> Bool:
        """Per group whether it is in one of the namespaces."""
        ids = [i for name in namespaces if (i := self._by_namespace.values.id_of(name)) != ABSENT]
        return is_one_of(self._by_namespace.ids[: len(self._by_labels)], ids)

    def _forget(self, key: tuple[PodQuery, bool]) -> None:
        counter = self._counters.pop(key)
        for i, term in enumerate(counter.question):
            self._by_selector.discard(term.selector, (counter, i))
        self._bytes -= counter.size
        self._counters_version += 1

    # -- terms --------------------------------------------------------------------------------------------------------

    def _carry(self, placed: PlacedPod, sign: int) -> None:
        facts = placed.facts
        carried = facts.find(_CARRIED)
        if carried is None or not carried.carriers:
            carried = self._carried.get(facts.terms)
            if carried is None:
                carried = self._carried[facts.terms] = CarriedTerms(facts.terms)
                self._carried_index.put(carried)
                self.terms_version += 1
            facts.keep(_CARRIED, carried)
        carried.count(placed.row, sign, self.length)
        if not carried.carriers:
            del self._carried[facts.terms]
            self._carried_index.remove(carried)
            facts.keep(_CARRIED, None)
            self.terms_version += 1


def _group_key(facts: PodFacts) -> GroupKey:
    return facts.namespace, frozenset(facts.labels.items())
