"""The equivalence cache: what plugins that look at one node at a time say of all pods of an equivalence class.

Pods are equivalent if they are equal in all fields that the plugins declare to read (`Signature`): those of one
ReplicaSet; and, to plugins that read nothing but the spec, those of an indexed Job, whose labels differ.
Between two of them one row changes. So which rows pass those filters together, and what those scores add up to, is kept
per class, and one row of it is worked out anew: a few numbers, no column. Which plugin rejected a row and why is not
kept here; the filters are asked for that when a pod fits nowhere, or when the decision is explained.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable
from typing import Any, TypeVar

import numpy as np

from kubesched.framework.answers import AnswerCache
from kubesched.framework.bound_plugins import BoundFilter, BoundScore
from kubesched.framework.cycle import Cycle, blame
from kubesched.framework.diagnosis import PassingRows
from kubesched.framework.nodes import Nodes
from kubesched.framework.reads import Scope, Signature, union_of
from kubesched.framework.recently_used import RecentlyUsed
from kubesched.framework.status import MAX_NODE_SCORE
from kubesched.state.changes import ChangeLog
from kubesched.state.cluster import ClusterState
from kubesched.state.columns import Bool, Int32

K = TypeVar("K", bound="CachedColumn")

_BYTES_KEPT = 40 << 20
_BYTES_PER_CLASS = 8_000
"""What else an equivalence class costs, about: its facts and what plugins derived from them."""
_BYTES_OF_LARGE_CLASSES = 2 << 20
_MANY = 8
"""With more changed rows than this, columns are faster than one row after another."""


class CachedColumn(ABC):
    """Something per row, as of a position in a change log and in that of node objects."""

    __slots__ = ("log", "object_position", "position")

    def __init__(self, log: ChangeLog[int], object_position: int) -> None:
        self.log = log
        self.position, self.object_position = log.position, object_position

    @abstractmethod
    def repair(self, cycle: Cycle, rows: list[int], nodes: Nodes) -> bool:
        """Ask about these rows again. False if a plugin raised on one: then the caller asks about all rows."""


class CachedFilters(CachedColumn):
    """Which live rows pass all the filters of narrow scope."""

    __slots__ = ("_by_objects", "_by_pods", "passing")

    def __init__(
        self,
        by_objects: Bool,
        rows: Bool,
        by_pods: tuple[BoundFilter, ...],
        log: ChangeLog[int],
        object_position: int,
    ) -> None:
        super().__init__(log, object_position)
        self._by_objects = by_objects
        self._by_pods = by_pods
        self.passing = PassingRows(rows)

    def repair(self, cycle: Cycle, rows: list[int], nodes: Nodes) -> bool:
        # Calls that are not measured go to the plugin itself: a frame less for every row and filter.
        passing, is_measured = self.passing, cycle.watch_of_plugins is not None
        for i, row in enumerate(rows):
            passes = bool(self._by_objects[row])
            if passes:
                node = nodes.view(i)
                for bound in self._by_pods:
                    try:
                        status = (bound if is_measured else bound.plugin).filter_node(cycle, node)
                    except Exception as error:
                        blame(bound.name, error)
                    if status is not None:
                        if not status.is_rejection:
                            return False
                        passes = False
                        break
            passing.count += passes - bool(passing.rows[row])
            passing.rows[row] = passes
        return True


BoundScores = tuple[BoundScore, ...]


class ScoreGroup:
    """Scores that are answered together. Compared by identity, so that it is a cheap key."""

    __slots__ = ("scores", "signature")

    def __init__(self, scores: BoundScores) -> None:
        self.scores = scores
        self.signature = Signature(union_of(bound.plugin.score_reads.pod for bound in scores))


class FilterGroup:
    """Filters that are answered together, likewise."""

    __slots__ = ("filters", "signature")

    def __init__(self, filters: tuple[BoundFilter, ...]) -> None:
        self.filters = filters
        self.signature = Signature(union_of(bound.plugin.filter_reads.pod for bound in filters))


class CachedScores(CachedColumn):
    """The weighted sum of scores of narrow scope: those by pods on a node, and those that are the same on all nodes."""

    __slots__ = ("_of_passing", "_passing", "_plugins", "constant", "total", "uncached")

    def __init__(
        self,
        total: Int32,
        plugins: BoundScores,
        constant: int,
        uncached: BoundScores,
        log: ChangeLog[int],
        object_position: int,
    ) -> None:
        super().__init__(log, object_position)
        self._plugins = plugins
        self.total = total
        self.constant = constant
        self.uncached = uncached
        """Scores by node objects that are not the same everywhere, or for equivalent pods: to be normalised over the
        nodes that fit."""
        self._passing: PassingRows | None = None
        self._of_passing = total

    def of_passing(self, passing: PassingRows) -> Int32:
        """The total, -1 on rows that do not pass: the best of those that do is found without picking them out first."""
        if passing is not self._passing:
            self._passing = passing
            self._of_passing = np.where(passing.rows, self.total, np.int32(-1))
        return self._of_passing

    def repair(self, cycle: Cycle, rows: list[int], nodes: Nodes) -> bool:
        is_measured = cycle.watch_of_plugins is not None
        for i, row in enumerate(rows):
            node = nodes.view(i)
            total = 0
            for bound in self._plugins:
                try:
                    score = (bound if is_measured else bound.plugin).score_node(cycle, node)
                except Exception as error:
                    blame(bound.name, error)
                if not 0 <= score <= MAX_NODE_SCORE:
                    return False
                total += bound.weight * score
            self.total[row] = total
            if self._passing is not None:
                self._of_passing[row] = total if self._passing.rows[row] else -1
        return True


class EquivalenceCache:
    """Passing rows and totals by equivalence class, the least recently used forgotten first."""

    def __init__(self, state: ClusterState, answers: AnswerCache) -> None:
        self._state = state
        self._answers = answers
        self._passes: RecentlyUsed[CachedFilters] = _recently_used()
        self._totals: RecentlyUsed[CachedScores] = _recently_used()

    def passing_rows(self, cycle: Cycle, group: FilterGroup) -> PassingRows | None:
        """The rows that pass these filters, all of narrow scope; None if that must be asked plugin by plugin."""
        key = (group.signature.of(cycle.pod, cycle.facts), group)
        passes = self._current(self._passes, key, cycle) or self._begin_passes(key, cycle, group.filters)
        return None if passes is None else passes.passing

    def totals(self, cycle: Cycle, group: ScoreGroup) -> CachedScores | None:
        """The sum of these scores on all rows; None if they must be asked plugin by plugin."""
        key = (group.signature.of(cycle.pod, cycle.facts), group)
        return self._current(self._totals, key, cycle) or self._begin_totals(key, cycle, group.scores)

    def _current(self, kept: RecentlyUsed[K], key: Hashable, cycle: Cycle) -> K | None:
        """The cached entry of the key, repaired; None if it has to be made anew."""
        known = kept.get(key)
        table = self._state.nodes
        if known is None or known.object_position != table.object_changes.position:
            return None
        position = known.log.position
        if known.position != position:
            repair = self._answers.rows_to_repair(known.log, known.position, table.size)
            if repair is None or len(repair[0]) > _MANY:
                return None
            if not known.repair(cycle, *repair):
                kept.discard(key)  # repaired halfway
                return None
            known.position = position
        return known

    def _keep(self, kept: RecentlyUsed[K], key: Hashable, new: K, bytes_per_row: int) -> K:
        size = self._state.nodes.size
        kept.put(key, new, max(16, _BYTES_KEPT // (2 * (bytes_per_row * size + _BYTES_PER_CLASS))))
        return new

    def _begin_passes(self, key: Hashable, cycle: Cycle, filters: tuple[BoundFilter, ...]) -> CachedFilters | None:
        table = self._state.nodes
        by_objects = table.live[: table.size].copy()
        by_pods = tuple(bound for bound in filters if bound.plugin.filter_reads.cluster is not Scope.NODE_OBJECT)
        if not all(bound.plugin.answers_both_ways for bound in by_pods):
            return None
        rows = by_objects
        for bound in filters:
            plugin, answer = bound.plugin, bound.cached_answer(cycle)
            if not answer.is_signed:
                return None
            if plugin.rejections.has_errors and plugin.rejections.errors_among(answer.ids).any():
                return None
            if plugin.filter_reads.cluster is Scope.NODE_OBJECT:
                by_objects &= answer.passes
            else:
                rows = rows & answer.passes
        log = self._answers.log_of(*(bound.plugin.filter_reads.cluster for bound in by_pods))
        passes = CachedFilters(by_objects, rows & by_objects, by_pods, log, table.object_changes.position)
        return self._keep(self._passes, key, passes, bytes_per_row=2)

    def _begin_totals(self, key: Hashable, cycle: Cycle, scores: BoundScores) -> CachedScores | None:
        table = self._state.nodes
        total: Any = np.zeros(table.size, dtype=np.int32)
        constant = 0
        by_pods, uncached = [], []
        for bound in scores:
            answer, score = bound.cached_answer(cycle)
            if bound.plugin.score_reads.cluster is not Scope.NODE_OBJECT:
                if not answer.in_range or not answer.is_signed:
                    return None
                total += answer.scores if bound.weight == 1 else answer.scores * bound.weight
                by_pods.append(bound)
                continue
            if isinstance(score, int) and 0 <= score <= MAX_NODE_SCORE and answer.is_signed:
                constant += score * bound.weight
            else:
                uncached.append(bound)
        log = self._answers.log_of(*(bound.plugin.score_reads.cluster for bound in by_pods))
        totals = CachedScores(total, tuple(by_pods), constant, tuple(uncached), log, table.object_changes.position)
        return self._keep(self._totals, key, totals, bytes_per_row=8)


def _recently_used() -> RecentlyUsed[Any]:
    return RecentlyUsed(ordinary=4 * _BYTES_PER_CLASS, large=_BYTES_OF_LARGE_CLASSES)
