"""What holds for all pods that are alike, of the plugins that look at one node at a time.

Between two pods of a ReplicaSet one row changes. So which rows pass those filters together, and what those scores add
up to, is kept per kind of pod, and one row of it is worked out anew: a few numbers, no column. Who rejected a row and
why is not kept here; that is asked for when a pod fits nowhere, or somebody wants to know.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from kubesched.framework.answers import AnswerCache
from kubesched.framework.cycle import Cycle
from kubesched.framework.nodes import Nodes
from kubesched.framework.plugin import MAX_NODE_SCORE, FilterPlugin, Scope, ScorePlugin
from kubesched.state.cluster import ClusterState
from kubesched.state.columns import Bool, Int32

_BYTES_KEPT = 64 << 20
_MANY = 8
"""With more changed rows than this, columns are faster than one row after another."""


class Passes:
    """The live rows that pass all the filters of narrow scope."""

    __slots__ = ("_by_objects", "_by_pods", "count", "object_position", "position", "rows")

    def __init__(self, by_objects: Bool, rows: Bool, by_pods: tuple[FilterPlugin, ...]) -> None:
        self._by_objects = by_objects
        self._by_pods = by_pods
        self.rows = rows
        self.count = int(np.count_nonzero(rows))
        self.position = self.object_position = 0

    def repair(self, cycle: Cycle, rows: list[int], nodes: Nodes) -> None:
        for i, row in enumerate(rows):
            passes = bool(self._by_objects[row])
            if passes:
                node = nodes.view(i)
                for plugin in self._by_pods:
                    if plugin.filter_node(cycle, node) is not None:
                        passes = False
                        break
            self.count += passes - bool(self.rows[row])
            self.rows[row] = passes


WeightedScores = tuple[tuple[ScorePlugin, int], ...]


class ScoreGroup:
    """Scores that are answered together. Compared by identity, so that it is a cheap key."""

    __slots__ = ("scores",)

    def __init__(self, scores: WeightedScores) -> None:
        self.scores = scores


class Totals:
    """The weighted sum of scores of narrow scope: those by pods on a node, and those that are the same on all nodes."""

    __slots__ = ("_passes", "_plugins", "apart", "constant", "object_position", "of_passing", "position", "total")

    def __init__(self, total: Int32, plugins: WeightedScores, constant: int, apart: WeightedScores) -> None:
        self._plugins = plugins
        self.total = total
        self.constant = constant
        self.apart = apart
        """Scores by node objects that are not the same everywhere: to be normalised by whoever knows what fits."""
        self.position = self.object_position = 0
        self._passes: Passes | None = None
        self.of_passing = total
        """The total, -1 on rows that do not pass the filters of narrow scope (see `follow`)."""

    def follow(self, passes: Passes) -> None:
        """From now on know which rows pass: then the best of them is found without picking them out first."""
        if passes is not self._passes:
            self._passes = passes
            self.of_passing = np.where(passes.rows, self.total, np.int32(-1))

    def repair(self, cycle: Cycle, rows: list[int], nodes: Nodes) -> bool:
        """False if a score is out of range, which is for others to judge."""
        for i, row in enumerate(rows):
            node = nodes.view(i)
            total = 0
            for plugin, weight in self._plugins:
                score = plugin.score_node(cycle, node)
                if not 0 <= score <= MAX_NODE_SCORE:
                    return False
                total += weight * score
            self.total[row] = total
            if self._passes is not None:
                self.of_passing[row] = total if self._passes.rows[row] else -1
        return True


class Alike:
    """Passes and totals by kind of pod, the least recently used forgotten first."""

    def __init__(self, state: ClusterState, answers: AnswerCache) -> None:
        self._state = state
        self._answers = answers
        self._passes: dict[Hashable, Passes] = {}
        self._totals: dict[Hashable, Totals] = {}
        self._latest: Passes | None = None

    def of_passing(self, totals: Totals, feasible: Bool) -> Int32 | None:
        """The totals, -1 where a row is not feasible; None if those are not just the rows that pass narrow filters."""
        if self._latest is None or feasible is not self._latest.rows:
            return None
        totals.follow(self._latest)
        return totals.of_passing

    def passes(self, cycle: Cycle, asker: Hashable, filters: tuple[FilterPlugin, ...]) -> Passes | None:
        """The rows that pass these filters, all of narrow scope; None if that must be asked plugin by plugin.

        One asker always has the same filters for pods that are alike.
        """
        self._latest = self._current_passes(cycle, (cycle.facts, asker), filters)
        return self._latest

    def _current_passes(self, cycle: Cycle, key: Hashable, filters: tuple[FilterPlugin, ...]) -> Passes | None:
        table = self._state.nodes
        known = self._passes.pop(key, None)
        if known is not None and known.object_position == table.object_changes.position:
            if known.position == table.changes.position:
                self._passes[key] = known
                return known
            repair = self._answers.rows_to_repair(table.changes, known.position, table.size)
            if repair is not None and len(repair[0]) <= _MANY:
                known.repair(cycle, *repair)
                known.position = table.changes.position
                self._passes[key] = known
                return known
        return self._begin_passes(key, cycle, filters)

    def totals(self, cycle: Cycle, group: ScoreGroup) -> Totals | None:
        """The sum of these scores on all rows; None if they must be asked plugin by plugin."""
        key = (cycle.facts, group)
        table = self._state.nodes
        known = self._totals.pop(key, None)
        if known is not None and known.object_position == table.object_changes.position:
            if known.position == table.changes.position:
                self._totals[key] = known
                return known
            repair = self._answers.rows_to_repair(table.changes, known.position, table.size)
            if repair is not None and len(repair[0]) <= _MANY:
                if not known.repair(cycle, *repair):
                    return None
                known.position = table.changes.position
                self._totals[key] = known
                return known
        return self._begin_totals(key, cycle, group.scores)

    def _begin_passes(self, key: Hashable, cycle: Cycle, filters: tuple[FilterPlugin, ...]) -> Passes | None:
        table = self._state.nodes
        by_objects = table.live[: table.size].copy()
        by_pods = tuple(plugin for plugin in filters if plugin.filter_scope is not Scope.NODE_OBJECT)
        if not all(plugin.answers_both_ways for plugin in by_pods):
            return None
        rows = by_objects
        for plugin in filters:
            answer = self._answers.verdicts(plugin, cycle)
            if plugin.verdicts.has_errors:
                return None
            if plugin.filter_scope is Scope.NODE_OBJECT:
                by_objects &= answer.passes
            else:
                rows = rows & answer.passes
        rows = rows & by_objects
        self._make_room(self._passes, 2)
        passes = self._passes[key] = Passes(by_objects, rows, by_pods)
        passes.position, passes.object_position = table.changes.position, table.object_changes.position
        return passes

    def _begin_totals(self, key: Hashable, cycle: Cycle, scores: WeightedScores) -> Totals | None:
        table = self._state.nodes
        total: Any = np.zeros(table.size, dtype=np.int32)
        constant = 0
        by_pods, apart = [], []
        for plugin, weight in scores:
            answer = self._answers.scores(plugin, cycle)
            if plugin.score_scope is not Scope.NODE_OBJECT:
                if not answer.in_range:
                    return None
                total += answer.scores * weight
                by_pods.append((plugin, weight))
                continue
            score: Any = answer.scores
            if isinstance(score, int) and plugin.normalizes:
                score = plugin.normalize(cycle, score, Nodes(self._state))
            if isinstance(score, int) and 0 <= score <= MAX_NODE_SCORE:
                constant += score * weight
            else:
                apart.append((plugin, weight))
        self._make_room(self._totals, 4)
        totals = self._totals[key] = Totals(total, tuple(by_pods), constant, tuple(apart))
        totals.position, totals.object_position = table.changes.position, table.object_changes.position
        return totals

    def _make_room(self, kept: dict[Hashable, Any], bytes_per_row: int) -> None:
        limit = max(16, _BYTES_KEPT // (2 * bytes_per_row * max(1, self._state.nodes.size)))
        while len(kept) >= limit:
            del kept[next(iter(kept))]
