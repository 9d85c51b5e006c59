"""Match counts: for every question "how many pods on this node match?", a column kept up to date as pods come and go.

Topology spread and inter-pod affinity ask it of selectors; inter-pod affinity also asks the reverse, how many pods on
a node carry a term. In kube-scheduler each attempt walks all pods for that; here it is a column that is there already.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from kubesched.api.selectors import Selector
from kubesched.state.columns import Int32, Int64, LabelColumn, grown
from kubesched.state.facts import PodFacts, StateKey, Term

_QUESTIONS_KEPT = 2048


class PodGroup:
    """All placed pods with the same namespace and labels: to any selector they are one."""

    __slots__ = ("counters", "labels", "members", "namespace")

    def __init__(self, namespace: str, labels: Mapping[str, str]) -> None:
        self.namespace = namespace
        self.labels = labels
        self.members: dict[int, list[int]] = {}
        """row -> how many run there, how many are terminating"""
        self.counters: list[MatchCounter] = []


_GROUP = StateKey[PodGroup]("PodGroup")


class RowCounts:
    """A number per row, and its sums over the domains of topologies that plugins have asked for."""

    __slots__ = ("_sums", "counts")

    def __init__(self, length: int) -> None:
        self.counts: Int32 = np.zeros(length, dtype=np.int32)
        self._sums: dict[str, tuple[LabelColumn, int, Int64]] = {}

    def add(self, row: int, number: int) -> None:
        self.counts[row] += number
        for column, _, sums in self._sums.values():
            value = column.ids[row]
            if value >= 0 and value < len(sums) - 1:
                sums[value] += number

    def by_value(self, column: LabelColumn, size: int) -> Int64:
        """The sums per value of a label, as `LabelColumn.sum_by_value`. Kept up to date: read it, do not change it.

        Labels of nodes change so much more rarely than pods come and go that a change just counts anew.
        """
        known = self._sums.get(column.key)
        if known is not None and known[0] is column and known[1] == column.version:
            return known[2]
        sums = column.sum_by_value(self.counts[:size])
        self._sums[column.key] = (column, column.version, sums)
        return sums


class MatchCounter(RowCounts):
    """How many pods on each row match a selector in some namespaces (None stands for all of them)."""

    __slots__ = ("namespaces", "selector", "with_terminating")

    def __init__(
        self, namespaces: frozenset[str] | None, selector: Selector, with_terminating: bool, length: int
    ) -> None:
        super().__init__(length)
        self.namespaces = namespaces
        self.selector = selector
        self.with_terminating = with_terminating

    def matches(self, namespace: str, labels: Mapping[str, str]) -> bool:
        return (self.namespaces is None or namespace in self.namespaces) and self.selector.matches(labels)


class CarriedTerm(RowCounts):
    """An affinity term that placed pods have, and how many on each row have it."""

    __slots__ = ("carriers", "term")

    def __init__(self, term: Term, length: int) -> None:
        super().__init__(length)
        self.term = term
        self.carriers = 0


GroupKey = tuple[str, frozenset[tuple[str, str]]]


class MatchCounts:
    """All groups, counters and carried terms."""

    def __init__(self) -> None:
        self.length = 0
        self._groups: dict[GroupKey, PodGroup] = {}
        self._counters: dict[tuple[frozenset[str] | None, Selector, bool], MatchCounter] = {}
        self._terms: dict[Term, CarriedTerm] = {}
        self.terms_version = 0
        """Changes whenever a term appears that no pod carried, or the last carrier of one goes."""

    @property
    def terms(self) -> Collection[CarriedTerm]:
        """Every term that some placed pod carries."""
        return self._terms.values()

    def counter(
        self, namespaces: frozenset[str] | None, selector: Selector, *, with_terminating: bool = True
    ) -> MatchCounter:
        """The column for a question. The first to ask pays for counting; then it is kept up to date."""
        key = (namespaces, selector, with_terminating)
        found = self._counters.get(key)
        if found is not None:
            return found
        if len(self._counters) >= _QUESTIONS_KEPT:
            self._forget_counters()
        counter = self._counters[key] = MatchCounter(namespaces, selector, with_terminating, self.length)
        for group in self._groups.values():
            if counter.matches(group.namespace, group.labels):
                group.counters.append(counter)
                for row, split in group.members.items():
                    counter.counts[row] += split[0] + (split[1] if with_terminating else 0)
        return counter

    def add(self, facts: PodFacts, row: int, terminating: bool, sign: int) -> None:
        """A pod came to a row (sign 1) or left it (sign -1)."""
        group = self._group(facts)
        split = group.members.get(row)
        if split is None:
            split = group.members[row] = [0, 0]
        split[terminating] += sign
        for counter in group.counters:
            if counter.with_terminating or not terminating:
                counter.add(row, sign)
        if sign < 0 and split == [0, 0]:
            del group.members[row]
            if not group.members:
                del self._groups[_group_key(facts)]
                facts.keep(_GROUP, None)
        for term in facts.terms:
            self._carry(term, row, sign)

    def extend(self, length: int) -> None:
        """The node table has grown to this many rows."""
        self.length = length
        for counter in self._counters.values():
            counter.counts = grown(counter.counts, length)
        for carried in self._terms.values():
            carried.counts = grown(carried.counts, length)

    def _group(self, facts: PodFacts) -> PodGroup:
        group = facts.find(_GROUP)
        if group is None or not group.members:
            key = _group_key(facts)
            group = self._groups.get(key)
            if group is None:
                group = self._groups[key] = PodGroup(facts.namespace, facts.labels)
                group.counters = [c for c in self._counters.values() if c.matches(facts.namespace, facts.labels)]
            facts.keep(_GROUP, group)
        return group

    def _carry(self, term: Term, row: int, sign: int) -> None:
        carried = self._terms.get(term)
        if carried is None:
            carried = self._terms[term] = CarriedTerm(term, self.length)
            self.terms_version += 1
        carried.add(row, sign)
        carried.carriers += sign
        if not carried.carriers:
            del self._terms[term]
            self.terms_version += 1

    def _forget_counters(self) -> None:
        """Too many distinct questions: start over. Those still asked are counted anew."""
        self._counters.clear()
        for group in self._groups.values():
            group.counters = []


def _group_key(facts: PodFacts) -> GroupKey:
    return facts.namespace, frozenset(facts.labels.items())
