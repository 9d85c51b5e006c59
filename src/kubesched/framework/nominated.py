"""Nominated pods as columns: what those that a pod must leave room for add to the totals of each row."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from kubesched.api.pod import Pod
from kubesched.framework.nodes import WhatIf
from kubesched.state.changes import ChangeLog, ChangeReader
from kubesched.state.cluster import ClusterState
from kubesched.state.columns import Bool, Int64, Rows, grown
from kubesched.state.pods import PlacedPod

_FIRST_SLOTS = 64
_PRIORITIES_KEPT = 16


class NominatedAtOrAbove:
    """The nominated pods that go before a pod, and what those of each row request together."""

    def __init__(
        self, slots: Rows, pods: list[PlacedPod | None], rows: Rows, starts: Rows, totals: tuple[Int64, Int64, Int64]
    ) -> None:
        self.rows = rows
        """The rows with such pods, each once, in order."""
        self._slots = slots
        self._slotted = pods
        self._starts = starts
        self._totals = totals

    @cached_property
    def _pods(self) -> list[PlacedPod]:
        return [pod for slot in self._slots.tolist() if (pod := self._slotted[slot]) is not None]

    def __len__(self) -> int:
        return len(self.rows)

    def count_in(self, world: WhatIf, columns: Rows, which: Rows, sign: int = 1) -> None:
        """Add the totals of some of the rows to columns of a view, or take them away."""
        requested, scoring, counts = self._totals
        world.count(columns, sign * requested[:, which], sign * scoring[:, which], sign * counts[which])

    def pods_at(self, i: int) -> list[PlacedPod]:
        """The pods of one of the rows."""
        return self._pods[self._starts[i] : self._starts[i + 1]]

    def rows_with(self, is_relevant: Callable[[PlacedPod], bool]) -> Bool:
        """Per row whether one of its pods is relevant, asked once for equivalent pods."""
        answers: dict[object, bool] = {}
        matching = np.zeros(len(self._pods), dtype=np.bool_)
        for i, pod in enumerate(self._pods):
            answer = answers.get(pod.facts)
            if answer is None:
                answer = answers[pod.facts] = is_relevant(pod)
            matching[i] = answer
        return np.logical_or.reduceat(matching, self._starts[:-1]) if len(self.rows) else matching


class NominatedColumns:
    """All nominated pods, a slot each; brought up to date, with nominations and with nodes, when asked."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self.changes: ChangeLog[int] = ChangeLog()
        """Rows that pods were nominated to, or are no more."""
        self._nominations = ChangeReader(state.nominated.changes)
        self._nodes_seen = state.nodes.object_changes.position
        self._resources_seen = state.nodes.resources_version
        self._slot_of: dict[str, int] = {}
        self._free: list[int] = []
        self._pods: list[PlacedPod | None] = []
        self._rows: Rows = np.full(_FIRST_SLOTS, -1, dtype=np.intp)
        self._priority: Int64 = np.zeros(_FIRST_SLOTS, dtype=np.int64)
        self._requests: Int64 = np.zeros((4, _FIRST_SLOTS), dtype=np.int64)
        self._scoring: Int64 = np.zeros((4, _FIRST_SLOTS), dtype=np.int64)
        self._kept: dict[int, NominatedAtOrAbove] = {}
        """By priority, the pods ahead of one that is not nominated itself."""

    def at_or_above(self, pod: Pod, priority: int, among: Bool | None = None) -> NominatedAtOrAbove:
        """All other nominated pods of the same or a higher priority, at least those of the rows `among`.

        For a pod that is nominated itself the sums are of no use to other pods: only these rows are summed up.
        """
        self.refresh()
        slot = self._slot_of.get(pod.identity)
        if slot is not None:
            return self._sum_up(priority, slot, among)
        ahead = self._kept.get(priority)
        if ahead is None:
            if len(self._kept) >= _PRIORITIES_KEPT:
                self._kept.clear()
            ahead = self._kept[priority] = self._sum_up(priority)
        return ahead

    def row_of(self, pod: Pod) -> int | None:
        """The row that this pod itself is nominated to."""
        self.refresh()
        slot = self._slot_of.get(pod.identity)
        return None if slot is None or self._rows[slot] < 0 else int(self._rows[slot])

    def refresh(self) -> None:
        """Catch up with nominations, and with nodes that came and went."""
        state, nodes_changed = self._state, self._nodes_seen != self._state.nodes.object_changes.position
        self._nodes_seen = state.nodes.object_changes.position
        changed = self._nominations.read()
        if changed is None:
            changed = [*self._slot_of, *state.nominated]
        for identity in changed:
            self._remove(identity)
            self._add(identity)
        columns_moved = self._resources_seen != state.nodes.resources_version
        self._resources_seen = state.nodes.resources_version
        for identity, slot in self._slot_of.items() if nodes_changed or columns_moved else ():
            if nodes_changed:
                self._move(identity)
            if columns_moved:
                self._write(slot)
        if changed or nodes_changed or columns_moved:
            self._kept.clear()

    def _sum_up(self, priority: int, without: int | None = None, among: Bool | None = None) -> NominatedAtOrAbove:
        size = len(self._pods)
        is_ahead = (self._rows[:size] >= 0) & (self._priority[:size] >= priority)
        if without is not None:
            is_ahead[without] = False
        if among is not None:
            is_ahead &= among[self._rows[:size]]
        slots = np.flatnonzero(is_ahead)
        slots = slots[np.argsort(self._rows[slots], kind="stable")]
        rows = self._rows[slots]
        starts = np.flatnonzero(np.diff(rows, prepend=-1))
        if not len(starts):
            nothing = (self._requests[:, :0], self._scoring[:, :0], self._priority[:0])
            return NominatedAtOrAbove(slots, self._pods, rows, starts, nothing)
        ends = np.append(starts[1:], len(slots))
        totals = (
            np.add.reduceat(self._requests[:, slots], starts, axis=1),
            np.add.reduceat(self._scoring[:, slots], starts, axis=1),
            ends - starts,
        )
        return NominatedAtOrAbove(slots, self._pods, rows[starts], np.append(starts, len(slots)), totals)

    def _add(self, identity: str) -> None:
        nomination = self._state.nominated.find(identity)
        if nomination is None:
            return
        pod, node_name = nomination
        placed = PlacedPod(pod, self._state.facts(pod), self._row_of(node_name), assumed=True)
        slot = self._free.pop() if self._free else self._next_slot()
        self._slot_of[identity] = slot
        self._pods[slot] = placed
        self._rows[slot] = placed.row
        self._priority[slot] = pod.priority
        self._write(slot)
        self._record(placed.row)

    def _write(self, slot: int) -> None:
        placed = self._pods[slot]
        assert placed is not None
        self._requests = _with_vector(self._requests, slot, placed.facts.requests)
        self._scoring = _with_vector(self._scoring, slot, placed.facts.scoring)

    def _remove(self, identity: str) -> None:
        slot = self._slot_of.pop(identity, None)
        if slot is not None:
            self._record(int(self._rows[slot]))
            self._rows[slot] = -1
            self._pods[slot] = None
            self._free.append(slot)

    def _move(self, identity: str) -> None:
        """The node may have come, gone, or come again to another row."""
        slot = self._slot_of[identity]
        pod, nomination = self._pods[slot], self._state.nominated.find(identity)
        assert pod is not None
        assert nomination is not None
        row = self._row_of(nomination[1])
        if row != pod.row:
            self._record(pod.row)
            self._record(row)
            pod.row = row
            self._rows[slot] = row

    def _row_of(self, node_name: str) -> int:
        return self._state.nodes.row_of.get(node_name, -1)

    def _record(self, row: int) -> None:
        if row >= 0:
            self.changes.record(row)

    def _next_slot(self) -> int:
        slot = len(self._pods)
        self._pods.append(None)
        if slot == len(self._rows):
            self._rows = grown(self._rows, 2 * slot, -1)
            self._priority = grown(self._priority, 2 * slot)
            self._requests = grown(self._requests, 2 * slot)
            self._scoring = grown(self._scoring, 2 * slot)
        return slot


def _with_vector(columns: Int64, slot: int, vector: Int64) -> Int64:
    """The columns with a vector at a slot; more of them if the vector is longer than any before."""
    width = len(vector)
    if width > len(columns):
        columns = np.vstack((columns, np.zeros((width - len(columns), columns.shape[1]), dtype=np.int64)))
    columns[:width, slot] = vector
    columns[width:, slot] = 0
    return columns
