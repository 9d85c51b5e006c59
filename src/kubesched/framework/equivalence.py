"""The equivalence cache: what plugins that look at one node at a time answer about all pods of an equivalence class.

Pods are equivalent if they are equal in all fields that the plugins declare to read (`Signature`): those of one
ReplicaSet; and, to plugins that read nothing but the spec, those of an indexed Job, whose labels differ.
Between two of them one row changes. So the cache keeps per class which rows pass those filters together and what those
scores add up to, and works out only the changed row anew: a few numbers, no column. Which plugin rejected a row and why
is not kept: the engine asks the filters for that when a pod fits nowhere, or when the decision is explained.
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

_BYTES_KEPT = 16 << 20
_BYTES_PER_CLASS = 8_000
"""What an equivalence class takes beside columns, about: its facts and what plugins derived from them."""
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
        # Calls that are not measured go to the plugin itself, which saves a frame for every row and filter.
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
    """Scores that the cache answers together. Compared by identity, so that a group is a cheap key."""

    __slots__ = ("dtype", "scores", "signature")

    def __init__(self, scores: BoundScores, dtype: Any) -> None:
        """`dtype` holds the total of all scores of the profile."""
        self.scores = scores
        self.dtype = dtype
        self.signature = Signature(union_of(bound.plugin.score_reads.pod for bound in scores))


class FilterGroup:
    """Filters that the cache answers together. Compared by identity, too."""

    __slots__ = ("filters", "signature")

    def __init__(self, filters: tuple[BoundFilter, ...]) -> None:
        self.filters = filters
        self.signature = Signature(union_of(bound.plugin.filter_reads.pod for bound in filters))


class CachedScores(CachedColumn):
    """The weighted sum of scores of narrow scope: those by pods on a node, and those equal on all nodes."""

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
        """Scores by node objects that differ between nodes or equivalent pods: ScoreRunner asks them, and normalises
        them over the nodes that fit."""
        self._passing: PassingRows | None = None
        self._of_passing = total

    def of_passing(self, passing: PassingRows) -> Int32:
        """The total, -1 on rows that do not pass: its maximum is the best of those that do, without picking them."""
        if passing is not self._passing:
            self._passing = passing
            # All bits are set in -1: this takes a quarter of the time of `where`.
            self._of_passing = self.total | (passing.rows.view(np.int8) - np.int8(1))
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
        ordinary, large = 4 * _BYTES_PER_CLASS, _BYTES_OF_LARGE_CLASSES
        self._passes = RecentlyUsed[CachedFilters](ordinary=ordinary, large=large)
        self._totals = RecentlyUsed[CachedScores](ordinary=ordinary, large=large)

    def passing_rows(self, cycle: Cycle, group: FilterGroup) -> PassingRows | None:
        """The rows that pass these filters, all of narrow scope; None if the plugins must be asked one by one."""
        key = (group.signature.of(cycle.pod, cycle.facts), group)
        passes = self._current(self._passes, key, cycle) or self._begin_passes(key, cycle, group.filters)
        return None if passes is None else passes.passing

    def totals(self, cycle: Cycle, group: ScoreGroup) -> CachedScores | None:
        """The sum of these scores on all rows; None if the plugins must be asked one by one."""
        key = (group.signature.of(cycle.pod, cycle.facts), group)
        return self._current(self._totals, key, cycle) or self._begin_totals(key, cycle, group)

    def _current(self, cache: RecentlyUsed[K], key: Hashable, cycle: Cycle) -> K | None:
        """The cached entry of the key, repaired; None if it has to be made anew."""
        entry = cache.get(key)
        table = self._state.nodes
        if entry is None or entry.object_position != table.object_changes.position:
            return None
        position = entry.log.position
        if entry.position != position:
            repair = self._answers.rows_to_repair(entry.log, entry.position, table.size)
            if repair is None or len(repair[0]) > _MANY:
                return None
            if not entry.repair(cycle, *repair):
                cache.discard(key)  # repaired halfway
                return None
            entry.position = position
        return entry

    def _keep(self, cache: RecentlyUsed[K], key: Hashable, entry: K, bytes_per_row: int) -> K:
        size = self._state.nodes.size
        cache.put(key, entry, max(16, _BYTES_KEPT // (2 * (bytes_per_row * size + _BYTES_PER_CLASS))))
        return entry

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
            if not answer.rejected_count:
                continue
            if plugin.filter_reads.cluster is Scope.NODE_OBJECT:
                by_objects &= answer.passes
            else:
                rows = rows & answer.passes
        log = self._answers.log_of(*(bound.plugin.filter_reads.cluster for bound in by_pods))
        passes = CachedFilters(by_objects, rows & by_objects, by_pods, log, table.object_changes.position)
        return self._keep(self._passes, key, passes, bytes_per_row=2)

    def _begin_totals(self, key: Hashable, cycle: Cycle, group: ScoreGroup) -> CachedScores | None:
        table = self._state.nodes
        total: Any = np.zeros(table.size, dtype=group.dtype)
        constant = 0
        by_pods, uncached = [], []
        for bound in group.scores:
            answer, score = bound.cached_answer(cycle)
            if bound.plugin.score_reads.cluster is not Scope.NODE_OBJECT:
                if not answer.in_range or not answer.is_signed:
                    return None
                total += np.multiply(answer.scores, bound.weight, dtype=group.dtype)
                by_pods.append(bound)
                continue
            if isinstance(score, int) and 0 <= score <= MAX_NODE_SCORE and answer.is_signed:
                constant += score * bound.weight
            else:
                uncached.append(bound)
        log = self._answers.log_of(*(bound.plugin.score_reads.cluster for bound in by_pods))
        totals = CachedScores(total, tuple(by_pods), constant, tuple(uncached), log, table.object_changes.position)
        return self._keep(self._totals, key, totals, bytes_per_row=2 * total.itemsize)
