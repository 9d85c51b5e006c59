"""Packs a few nodes anew, together, so that one of them is left empty: loads for whole nodes, found by columns."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np

from kubesched.api.pod import Pod
from kubesched.planning.columns import ColumnSearch
from kubesched.planning.covers import Cover, Covered
from kubesched.planning.emptying import Emptying, PlanSearch
from kubesched.planning.solver import INF
from kubesched.state.columns import Float, Int64

NODES_AT_ONCE = 40
MOST_AT_ONCE = 1_000
"""Clusters of at most this many nodes are packed anew as a whole first."""
MOST_CLASSES = 80
"""With more different rooms than this, nodes that must stay are not packed anew."""
_PATIENCE = 0.2
"""The search ends after this share of the effort in a row has gained nothing."""
_TRIES = 3
"""How often a whole is tried, each time without what the engine refused."""


class Neighbourhoods:
    """Tries to empty more nodes, for as long as the search goes on."""

    def __init__(self, emptying: Emptying, worth: Float, search: PlanSearch) -> None:
        """`worth` is by row; 0 for nodes that cannot be emptied or need not be."""
        self._emptying = emptying
        self._packing = emptying.packing
        self._worth = worth
        self._search = search
        self._rng = random.Random(search.seed)
        self._refused: set[tuple[int, int]] = set()
        """Kinds and rows that the engine refused: cuts."""
        self._bound = 0.0
        self.gained = 0.0
        """By how much the worth of the emptied nodes grew."""

    def run_whole(self) -> float | None:
        """Pack all nodes anew; the least that open nodes can cost however pods are packed, if that was found out."""
        packing = self._packing
        rows = np.flatnonzero(packing.live & ((packing.moves > 0) | (self._worth > 0)))
        is_all = len(np.unique(packing.room[rows], axis=0)) <= MOST_CLASSES
        if not is_all:  # nodes with pods that stay all differ: those keep what they have
            rows = rows[self._worth[rows] > 0]
        if not 2 <= len(rows) <= MOST_AT_ONCE:
            return None
        least: float | None = None
        for _ in range(_TRIES):
            refusals = len(self._refused)
            self._try(rows.tolist())
            least = self._bound if least is None and is_all else least
            if len(self._refused) == refusals or not self._search.goes_on():
                break
        return least

    def run(self, target: float = INF) -> None:
        """Go on until nodes worth `target` more are emptied, or the effort is spent, or `_PATIENCE` of it in vain."""
        target, effort, in_vain = target + self.gained, self._search.effort, 0
        for tried in range(effort):
            if self.gained >= target or in_vain > effort * _PATIENCE or not self._search.goes_on():
                return
            in_vain += 1
            if self._try(self._sample()):
                in_vain = 0
                emptied = int(self._emptying.closed.sum())
                self._search.report(f"{emptied} nodes emptied, {tried + 1} neighbourhoods tried")

    def _sample(self) -> list[int]:
        """A node that is cheap to empty for its worth, and others with room."""
        packing = self._packing
        is_open = packing.live & ~self._emptying.closed
        slack = (packing.free / packing.whole)[:, :-1].min(axis=1, initial=1.0)
        used = ((packing.room - packing.free) / packing.scale)[:, :-1].max(axis=1, initial=0.0)
        victims = np.flatnonzero(is_open & (self._worth > 0))
        if not len(victims):
            return []
        order = victims[np.argsort((used[victims] + 0.01) / self._worth[victims])]
        victim = int(order[min(int(self._rng.expovariate(6 / len(order))), len(order) - 1)])
        others = np.flatnonzero(is_open & (packing.moves > 0))
        keys = slack[others] * np.array([0.25 + self._rng.random() for _ in others])
        chosen = [int(row) for row in others[np.argsort(-keys)] if row != victim]
        return [victim, *chosen[: NODES_AT_ONCE - 1]]

    def _try(self, rows: list[int]) -> float:
        """What was gained by packing these rows anew; 0 if nothing."""
        if len(rows) < 2:
            return 0.0
        closed, worth = self._emptying.closed, self._worth
        paid = float(worth[rows][~closed[rows]].sum())
        repacked, self._bound = self._repack(rows, worth[rows], paid)
        if repacked is None or not self._carry_out(rows, *repacked):
            return 0.0
        counts = repacked[1]
        for i, row in enumerate(rows):
            closed[row] = worth[row] > 0 and not counts[:, i].any()
        gain = paid - float(worth[rows][~closed[rows]].sum())
        self.gained += gain
        return gain

    def _repack(self, rows: Sequence[int], worth: Float, paid: float) -> tuple[tuple[Int64, Int64] | None, float]:
        """Which kinds there are and, by kind and place in `rows`, how many pods to have there, for less than is paid.

        None if that was not found; and the least that it can cost.
        """
        packing, refused, began = self._packing, self._refused, self._began(rows)
        now = packing.counts[:, rows]
        kinds = np.flatnonzero(now.any(axis=1))
        if not len(kinds):
            return None, 0.0
        most = packing.taking()[np.ix_(kinds, np.array(rows))]
        for i, kind in enumerate(kinds.tolist()):
            for j, row in enumerate(rows):
                if (kind, row) in refused and not now[kind, j]:
                    most[i, j] = 0
        requests, room = packing.requests[kinds], packing.room[rows]
        alike = np.concatenate([room, most.T, worth[:, None]], axis=1)
        _, first, class_of, nodes = np.unique(alike, axis=0, return_index=True, return_inverse=True, return_counts=True)
        class_of = class_of.ravel()
        demand = now[kinds].sum(axis=1)
        cover = Cover(
            requests,
            demand,
            np.full(len(kinds), 10 * worth.max() + 1.0),
            room[first],
            nodes.astype(np.float64),
            worth[first],
            most[:, first],
            packing.per_node[kinds] == 1,
        )
        search = ColumnSearch(cover, self._search.goes_on)
        search.add((int(class_of[j]), now[kinds, j]) for j in range(len(rows)))
        search.start(np.zeros((len(kinds), len(first))), 1 / packing.scale)
        search.generate()
        if search.bound > paid - worth[worth > 0].min(initial=paid) + 1e-6:
            return None, search.bound
        for by_worth in (False, True):
            search.dive(by_worth=by_worth)
            best = search.best
            if best is not None and not best.unplaced.any() and best.cost <= paid - 1e-6:
                return (kinds, _on_rows(best, class_of, now[kinds], began[kinds])), search.bound
        return None, search.bound

    def _began(self, rows: Sequence[int]) -> Int64:
        """By kind and place in `rows`: how many pods of these rows began there."""
        index, began = {row: i for i, row in enumerate(rows)}, np.zeros((len(self._packing.kinds), len(rows)), np.int64)
        for row in rows:
            for uid in self._emptying.on[row]:
                place = index.get(self._emptying.began[uid])
                if place is not None:
                    began[self._packing.kind_of[uid], place] += 1
        return began

    def _carry_out(self, rows: Sequence[int], kinds: Int64, counts: Int64) -> bool:
        """Whether the engine agrees; if so, the pods are there."""
        emptying = self._emptying
        leaving = self._leaving(rows, kinds, counts)
        if leaving is None:
            return False
        with emptying.oracle.trying() as keep:
            off = [(emptying.oracle.take_off(pod), pod, row) for pod, row in leaving]
            for unplaced, _, row in off:
                if not emptying.oracle.place(unplaced, row):
                    self._refused.add((self._packing.kind_of[unplaced.uid], row))
                    return False
            keep()
        for _, pod, row in off:
            emptying.note(pod, row)
        return True

    def _leaving(self, rows: Sequence[int], kinds: Int64, counts: Int64) -> list[tuple[Pod, int]] | None:
        """Which pods go to which rows. Those that are where they began stay first; None if one may not move."""
        emptying, now, moves = self._emptying, self._packing.counts, list[tuple[Pod, int]]()
        for i, kind in enumerate(kinds.tolist()):
            arriving = [row for j, row in enumerate(rows) for _ in range(counts[i, j] - now[kind, row])]
            for j, row in enumerate(rows):
                surplus = int(now[kind, row] - counts[i, j])
                if surplus <= 0:
                    continue
                pods = [pod for uid, pod in emptying.on[row].items() if self._packing.kind_of[uid] == kind]
                pods.sort(key=lambda pod: emptying.began[pod.uid] == row)
                for pod in pods[:surplus]:
                    if not emptying.may_move(pod):
                        return None
                    home = emptying.began[pod.uid]
                    moves.append((pod, arriving.pop(arriving.index(home) if home in arriving else -1)))
        return moves


def _on_rows(covered: Covered, class_of: Int64, now: Int64, began: Int64) -> Int64:
    """Which place gets which load: each the one that has most in common with what is there."""
    counts = np.zeros_like(now)
    for c in range(int(class_of.max()) + 1):
        places = np.flatnonzero(class_of == c)
        loads = [load.counts for load in covered.loads if load.node_class == c]
        if not loads:
            continue
        shared = np.minimum(now[:, None, places] + began[:, None, places], np.array(loads).T[:, :, None]).sum(axis=0)
        for _ in range(len(loads)):
            i, place = np.unravel_index(int(shared.argmax()), shared.shape)
            counts[:, places[place]] = loads[int(i)]
            shared[i], shared[:, place] = -1, -1
    return counts
