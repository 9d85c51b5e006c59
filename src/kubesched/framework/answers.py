"""Answers of plugins, kept per signature of the pod and repaired for the rows that changed.

Pods of one ReplicaSet have one signature, and between two of them one row of the table changes. So the answer to
the second is the answer to the first with one row asked again. This is what makes looking at every node cheap.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from kubesched.framework.cycle import Cycle
from kubesched.framework.diagnosis import Rejections
from kubesched.framework.nodes import FewNodes, Nodes
from kubesched.framework.plugin import FilterPlugin, Plugin, ScorePlugin
from kubesched.framework.reads import Reads, Scope, Signature
from kubesched.framework.recently_used import RecentlyUsed
from kubesched.framework.status import MAX_NODE_SCORE
from kubesched.state.changes import ChangeLog
from kubesched.state.cluster import ClusterState
from kubesched.state.columns import Bool, Int32, Int64

_BYTES_KEPT = 16 << 20
_BYTES_PER_ANSWER = 4096
"""Bytes that an answer with an ordinary key takes beside its column, at most."""
_BYTES_OF_LARGE_KEYS = 1 << 20
_FEW = 4
"""Up to so many rows are asked about one at a time, where a plugin can: NumPy takes longer to start than to work."""


class FilterAnswer:
    """The rejection ids of one filter on all rows."""

    __slots__ = ("ids", "is_signed", "position", "rejected_count", "rejections")

    def __init__(self, ids: Int32, rejections: Rejections, position: int, *, is_signed: bool = True) -> None:
        self.position = position
        self.is_signed = is_signed
        """False if an equivalent pod may get another answer."""
        self.ids = ids
        self.rejections = rejections
        self.rejected_count = int(np.count_nonzero(ids))
        """How many rows are rejected; while it is 0, nobody reads the column, and it takes no memory."""
        if not self.rejected_count:
            self.ids = np.broadcast_to(np.int32(0), len(ids))

    @property
    def passes(self) -> Bool:
        return np.equal(self.ids, 0)

    def repair(self, rows: list[int], ids: list[int]) -> None:
        for row, rejection_id in zip(rows, ids):
            if not self.rejected_count:
                if not rejection_id:
                    continue
                self.ids = np.zeros(len(self.ids), np.int32)
            self.rejected_count += bool(rejection_id) - bool(self.ids[row])
            self.ids[row] = rejection_id


class ScoreAnswer:
    """The scores of one plugin on all rows; a plain number where all are the same.

    Scores in range are kept in 8 bits, since each kind of pod has its own: widen them before adding them up.
    """

    __slots__ = ("in_range", "is_signed", "position", "scores")

    def __init__(self, scores: Int64 | int, position: int, *, is_signed: bool = True) -> None:
        self.position = position
        self.is_signed = is_signed
        """False if an equivalent pod may get other scores."""
        self.in_range = all_in_range(scores)
        self.scores: Any = scores
        if self.in_range and not isinstance(scores, int):
            self.scores = scores.astype(np.int8)

    def repair(self, rows: list[int], scores: list[int] | int, size: int) -> None:
        if isinstance(self.scores, int):
            if isinstance(scores, int) and scores == self.scores:
                return
            self.scores = np.full(size, self.scores, dtype=np.int64)
        for row, score in zip(rows, [scores] * len(rows) if isinstance(scores, int) else scores):
            if self.in_range and not 0 <= score <= MAX_NODE_SCORE:
                self.in_range = False
                self.scores = self.scores.astype(np.int64)
            self.scores[row] = score


def all_in_range(scores: Int64 | Int32 | int) -> bool:
    """Whether all scores are from 0 to 100."""
    if isinstance(scores, int):
        return 0 <= scores <= MAX_NODE_SCORE
    if len(scores) == 0:
        return True
    return bool(np.minimum.reduce(scores) >= 0 and np.maximum.reduce(scores) <= MAX_NODE_SCORE)


def ask_for_ids(plugin: FilterPlugin, cycle: Cycle, nodes: Nodes) -> Int32:
    """The rejection ids of a filter that answers for columns: one for each of the nodes."""
    if plugin.rejections.is_full:
        plugin.rejections = Rejections(plugin.name)  # holders of old ids hold the old rejections, too
    ids = plugin.filter(cycle, nodes)
    if len(ids) != len(nodes):
        raise TypeError(f"a filter must answer with an id for each of {len(nodes)} nodes, not with {len(ids)}")
    return ids


def _ask_about_changed(plugin: FilterPlugin, cycle: Cycle, nodes: Nodes, count: int) -> list[int]:
    """The rejection ids of `count` rows that changed.

    Filters of node objects are asked for columns: a deleted node has no object.
    """
    if plugin.filter_reads.cluster in (Scope.NODE_OBJECT, Scope.OBJECTS):
        ids: list[int] = ask_for_ids(plugin, cycle, nodes).tolist()
        return ids
    return ask_about_some(plugin, cycle, nodes, count)


def ask_about_some(plugin: FilterPlugin, cycle: Cycle, nodes: Nodes, count: int) -> list[int]:
    """Rejection ids of the first `count` nodes of a view: node by node if they are few and the plugin can."""
    if count <= _FEW and plugin.answers_both_ways:
        return [plugin.rejections.id_of(plugin.filter_node(cycle, nodes.view(i))) for i in range(count)]
    ids: list[int] = ask_for_ids(plugin, cycle, nodes).tolist()
    return ids


class AnswerCache:
    """Answers by plugin and signature of the pod, the least recently used forgotten first."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._filters = RecentlyUsed[FilterAnswer](ordinary=_BYTES_PER_ANSWER, large=_BYTES_OF_LARGE_KEYS)
        self._scores = RecentlyUsed[ScoreAnswer](ordinary=_BYTES_PER_ANSWER, large=_BYTES_OF_LARGE_KEYS)
        self._filter_signatures: dict[Plugin, Signature] = {}
        self._score_signatures: dict[Plugin, Signature] = {}
        self._repair: tuple[ChangeLog[int], int, int, list[int], Nodes] | None = None

    def ask_filter(self, plugin: FilterPlugin, cycle: Cycle) -> FilterAnswer:
        """The current answer of a filter: asked now if the signature is new, else repaired where rows changed."""
        log = self.log_of(plugin.filter_reads.cluster)
        signature = _sign(self._filter_signatures, plugin, plugin.filter_reads, cycle)
        if signature is None:
            return FilterAnswer(
                ask_for_ids(plugin, cycle, Nodes(self._state)), plugin.rejections, log.position, is_signed=False
            )
        key = (plugin, signature)
        answer = self._filters.get(key)
        if answer is not None and answer.rejections is not plugin.rejections:
            answer = None
        if answer is not None and answer.position != log.position:
            repair = self.rows_to_repair(log, answer.position, len(answer.ids))
            if repair is None:
                answer = None
            else:
                rows, nodes = repair
                answer.repair(rows, _ask_about_changed(plugin, cycle, nodes, len(rows)))
                answer.position = log.position
        if answer is None:
            ids = ask_for_ids(plugin, cycle, Nodes(self._state))
            answer = FilterAnswer(ids, plugin.rejections, log.position)
            self._filters.put(key, answer, self._most(4))
        return answer

    def ask_score(self, plugin: ScorePlugin, cycle: Cycle) -> ScoreAnswer:
        """As `ask_filter`, for scores before normalisation."""
        log, size = self.log_of(plugin.score_reads.cluster), self._state.nodes.size
        signature = _sign(self._score_signatures, plugin, plugin.score_reads, cycle)
        if signature is None:
            return ScoreAnswer(plugin.score(cycle, Nodes(self._state)), log.position, is_signed=False)
        key = (plugin, signature)
        answer = self._scores.get(key)
        if answer is not None and answer.position != log.position:
            known_rows = size if isinstance(answer.scores, int) else len(answer.scores)
            repair = self.rows_to_repair(log, answer.position, known_rows)
            if repair is None:
                answer = None
            else:
                rows, nodes = repair
                if plugin.scores_both_ways and len(rows) <= _FEW:
                    scores: list[int] | int = [plugin.score_node(cycle, nodes.view(i)) for i in range(len(rows))]
                else:
                    column = plugin.score(cycle, nodes)
                    scores = column if isinstance(column, int) else column.tolist()
                answer.repair(rows, scores, size)
                answer.position = log.position
        if answer is None:
            answer = ScoreAnswer(plugin.score(cycle, Nodes(self._state)), log.position)
            self._scores.put(key, answer, self._most(1))
        return answer

    def log_of(self, *scopes: Scope) -> ChangeLog[int]:
        """The log of the rows where answers of any of these scopes may have changed."""
        table = self._state.nodes
        if Scope.NODE in scopes or Scope.CLUSTER in scopes:
            return table.changes
        return table.total_changes if Scope.NODE_TOTALS in scopes else table.object_changes

    def rows_to_repair(self, log: ChangeLog[int], position: int, known_rows: int) -> tuple[list[int], Nodes] | None:
        """The rows to ask about again; None when it is cheaper, or needed, to ask about all.

        Answers about one pod usually have one position in the log, so the last repair serves the next answer, too.
        """
        size = self._state.nodes.size
        if known_rows != size:
            return None
        last, end = self._repair, log.position
        if last is not None and last[0] is log and last[1] == position and last[2] == end:
            return last[3], last[4]
        rows = log.since(position)
        if rows is None or len(rows) * 4 > size + 16:
            return None
        nodes = FewNodes(self._state, rows)
        self._repair = (log, position, end, rows, nodes)
        return rows, nodes

    def _most(self, bytes_per_row: int) -> int:
        """How many answers are kept, if each has so many bytes per row."""
        return max(16, _BYTES_KEPT // (2 * (bytes_per_row * self._state.nodes.size + _BYTES_PER_ANSWER)))


def _sign(signatures: dict[Plugin, Signature], plugin: Plugin, reads: Reads, cycle: Cycle) -> Hashable:
    """The key of the plugin's answers about this pod; None if they are not kept."""
    if plugin.signs:
        return plugin.sign(cycle)
    signature = signatures.get(plugin)
    if signature is None:
        signature = signatures[plugin] = Signature(reads.pod)
    return signature.of(cycle.pod, cycle.facts)
