"""Runs pre-scores and scores on the nodes that fit, normalises, weighs and adds up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kubesched.framework.answers import AnswerCache, all_in_range
from kubesched.framework.cycle import Cycle
from kubesched.framework.nodes import Nodes
from kubesched.framework.plugin import MAX_NODE_SCORE, PreScorePlugin, Scope, ScorePlugin
from kubesched.framework.status import Code
from kubesched.state.cluster import ClusterState
from kubesched.state.columns import Bool, Int32, Int64

Scored = Int64 | Int32 | int
"""Scores of some rows; a plain number where all are the same."""


class PluginScores(NamedTuple):
    """What one plugin said of the nodes that fit: before normalisation, and after it times the weight."""

    plugin: str
    raw: Scored
    weighted: Scored


class Scores:
    """All scores of the nodes that fit."""

    __slots__ = ("broken", "nodes", "parts", "skipped", "total")

    def __init__(self, nodes: Nodes) -> None:
        self.nodes = nodes
        self.skipped: list[str] = []
        self.broken = ""
        """What broke in scoring: then there is no total, and the attempt ends with this error."""
        self.parts: list[PluginScores] = []
        self.total: Int64 | Int32 = np.zeros(0, dtype=np.int64)


class ScoreRunner:
    """The pre-scores and scores of a profile on one cluster."""

    def __init__(
        self,
        state: ClusterState,
        pre_scores: Sequence[PreScorePlugin],
        scores: Sequence[tuple[ScorePlugin, int]],
        answers: AnswerCache,
    ) -> None:
        self.state = state
        self.pre_scores = tuple(pre_scores)
        self.scores = tuple(scores)
        self._answers = answers
        self._needs_64_bits = sum(weight for _, weight in self.scores) * MAX_NODE_SCORE >= 2**31

    def run(self, cycle: Cycle, feasible: Bool, count: int) -> Scores:
        """Score the `count` rows that fit."""
        nodes = Nodes(self.state, None if count == len(feasible) else np.flatnonzero(feasible))
        result = Scores(nodes)
        self._pre_score(cycle, result)
        if result.broken:
            return result
        constant, columns = 0, []
        for plugin, weight in self.scores:
            if plugin.name in cycle.skipped_scores:
                continue
            raw, in_range = self._raw(plugin, cycle, nodes)
            scores = raw
            if plugin.normalizes:
                scores = plugin.normalize(cycle, raw, nodes)
                in_range = False
            if not in_range and not all_in_range(scores):
                result.broken = result.broken or _out_of_range(plugin, scores)
            weighted = scores if weight == 1 else scores * weight
            result.parts.append(PluginScores(plugin.name, raw, weighted))
            if isinstance(weighted, int):
                constant += weighted
            else:
                columns.append(weighted)
        result.total = _sum(columns, constant, len(nodes))
        return result

    def _pre_score(self, cycle: Cycle, result: Scores) -> None:
        for plugin in self.pre_scores:
            status = plugin.pre_score(cycle, result.nodes)
            if status is None:
                continue
            if status.code is Code.SKIP:
                result.skipped.append(plugin.name)
            else:
                result.broken = f'running PreScore plugin "{plugin.name}": {status.message}'
                return
        cycle.skipped_scores.update(result.skipped)

    def _raw(self, plugin: ScorePlugin, cycle: Cycle, nodes: Nodes) -> tuple[Scored, bool]:
        """The scores before normalisation, and whether all of them are known to be in range."""
        if plugin.score_scope is Scope.CLUSTER or not plugin.scores_columns:
            return plugin.score(cycle, nodes), False
        answer = self._answers.scores(plugin, cycle)
        if isinstance(answer.scores, int):
            return answer.scores, answer.in_range
        scores = nodes.take(answer.scores)
        return scores.astype(np.int64) if self._needs_64_bits else scores, answer.in_range


def _sum(columns: list[Int64 | Int32], constant: int, length: int) -> Int64 | Int32:
    if not columns:
        return np.full(length, constant, dtype=np.int64)
    total = columns[0] + constant
    for column in columns[1:]:
        total = total + column
    return total


def _out_of_range(plugin: ScorePlugin, scores: Scored) -> str:
    worst = scores if isinstance(scores, int) else int(scores[(scores < 0) | (scores > MAX_NODE_SCORE)][0])
    return (
        f'plugin "{plugin.name}" returns an invalid score {worst}, '
        f"it should in the range of [0, {MAX_NODE_SCORE}] after normalizing"
    )
