"""The most valuable load of one node: a knapsack with several resources and a limited number of pods of each kind.

The linear relaxation gives a bound and prices of the room. Its whole pods are a load to begin with; what is left of the
room is filled by what is worth most for it, and pods are exchanged for as long as that gains anything.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kubesched.planning.solver import INF, Program
from kubesched.state.columns import Float, Int64, Rows

_MOST_PAIRED = 150
"""Of more kinds, pairs are not tried."""
_TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class BestLoad:
    """Pods for one node."""

    counts: Int64
    """By kind."""
    value: float
    bound: float
    """No load has a greater value."""


class Knapsack:
    """One class of nodes, asked again and again for the best load as the values of pods change."""

    def __init__(self, requests: Int64, room: Int64, most: Int64) -> None:
        """`most` pods of each kind at most, by kind; `requests` by kind and resource."""
        self.kinds: Rows = np.flatnonzero(most > 0)
        self._count, self._resources = len(most), len(room)
        self._requests = requests[self.kinds]
        self._most = most[self.kinds]
        self._used = np.flatnonzero(((self._requests * self._most[:, None]).sum(axis=0) > room) & (room > 0))
        """Resources that can run out."""
        self._requests = np.ascontiguousarray(self._requests[:, self._used])
        self._room = room[self._used]
        self._shares = self._requests / np.maximum(self._room, 1)
        self._program: Program | None = None

    def best(self, values: Float, most: Int64 | None = None) -> BestLoad:
        """The best load found for these values of one pod of each kind, and what none can exceed.

        `most` limits the numbers further, by kind.
        """
        limits = self._most if most is None else np.minimum(self._most, most[self.kinds])
        worth = values[self.kinds]
        worthy = np.flatnonzero((worth > _TOLERANCE) & (limits > 0))
        counts = np.zeros(self._count, dtype=np.int64)
        if not len(worthy):
            return BestLoad(counts, 0.0, 0.0)
        search = _Search(worth[worthy], self._requests[worthy], self._room, limits[worthy])
        relaxed, prices = self._relax(worth, limits)
        load, value, bound = search.run(relaxed[worthy], prices / np.maximum(self._room, 1))
        counts[self.kinds[worthy]] = load
        return BestLoad(counts, value, bound)

    def room_worth(self, values: Float) -> Float:
        """By resource, what the room is worth for these values of pods."""
        worth = np.zeros(self._resources)
        worth[self._used] = self._relax(values[self.kinds], self._most)[1]
        return worth

    def _relax(self, worth: Float, limits: Int64) -> tuple[Float, Float]:
        """The knapsack of which parts of pods are taken, and what one more unit of each resource is worth to it."""
        if not len(self._used):
            return limits.astype(np.float64), np.zeros(0)
        program = self._program
        if program is None:
            program = self._program = Program(maximize=True)
            program.add_rows(-INF, np.ones(len(self._used)))
            column, row = np.nonzero(self._shares)
            program.add_columns(np.zeros(len(self.kinds)), 0, 0, (column, row, self._shares[column, row]))
        columns = np.arange(len(self.kinds))
        program.set_costs(columns, worth)
        program.set_column_bounds(columns, 0, np.where(worth > _TOLERANCE, limits, 0))
        solution = program.solve()
        if not len(solution.duals) or not solution.has_values:
            return np.zeros(len(self.kinds)), np.zeros(len(self._used))
        return solution.values, np.maximum(solution.duals, 0)


class _Search:
    """One search over loads."""

    def __init__(self, worth: Float, requests: Int64, room: Int64, most: Int64) -> None:
        self._worth, self._requests, self._room, self._most = worth, requests, room, most

    def run(self, relaxed: Float, prices: Float) -> tuple[Int64, float, float]:
        """The best load, its value and a bound, for these prices of one unit of each resource."""
        profit = self._worth - self._requests @ prices
        limit = float(prices @ self._room + np.maximum(profit, 0) @ self._most)
        best = self._improve(self._fill(np.floor(relaxed + 1e-6).astype(np.int64), prices))
        value = float(self._worth @ best)
        return best, value, max(limit, value)

    def _fill(self, counts: Int64, prices: Float) -> Int64:
        """What is left of the room is filled by what is worth most for it."""
        room = self._room - counts @ self._requests
        if (room < 0).any():
            counts, room = np.zeros_like(counts), self._room.copy()
        cost = np.maximum(self._requests @ prices, 1e-12)
        for k in np.argsort(-self._worth / cost, kind="stable").tolist():
            request = self._requests[k]
            requested, more = request > 0, self._most[k] - counts[k]
            count = int(min(more, (room[requested] // request[requested]).min(initial=more)))
            if count > 0:
                counts[k] += count
                room -= count * request
        return counts

    def _improve(self, counts: Int64) -> Int64:
        """Exchange one or two pods for one, or none or one for two, for as long as that gains anything."""
        requests, worth = self._requests, self._worth
        first, second = np.triu_indices(len(worth)) if len(worth) <= _MOST_PAIRED else (np.zeros(0, dtype=np.intp),) * 2
        pairs, pair_worth = requests[first] + requests[second], worth[first] + worth[second]
        room = self._room - counts @ requests
        while True:
            inside, open_kinds = np.flatnonzero(counts), np.flatnonzero(counts < self._most)
            a, b = np.triu_indices(len(inside))
            twice = (a != b) | (counts[inside[a]] > 1)
            a, b = inside[a[twice]], inside[b[twice]]
            freed = np.concatenate([room[None, :], room + requests[inside], room + requests[a] + requests[b]])
            price = np.concatenate([[0.0], worth[inside], worth[a] + worth[b]])
            out, new, gain = _best_exchange(freed, price, requests[open_kinds], worth[open_kinds])
            added = [int(open_kinds[new])] if gain > 0 else []
            room_for = counts < self._most
            able = np.flatnonzero(
                room_for[first] & room_for[second] & ((first != second) | (counts[first] + 1 < self._most[first]))
            )
            singles = 1 + len(inside)
            out_2, new_2, gain_2 = _best_exchange(freed[:singles], price[:singles], pairs[able], pair_worth[able])
            if gain_2 > gain:
                out, added, gain = out_2, [int(first[able[new_2]]), int(second[able[new_2]])], gain_2
            if gain <= _TOLERANCE:
                return counts
            removed = [] if not out else [inside[out - 1]] if out < singles else [a[out - singles], b[out - singles]]
            counts = counts.copy()
            np.subtract.at(counts, np.array(removed, dtype=np.intp), 1)
            np.add.at(counts, np.array(added, dtype=np.intp), 1)
            room = self._room - counts @ requests


def _best_exchange(freed: Int64, price: Float, requests: Int64, worth: Float) -> tuple[int, int, float]:
    """Which of the rooms that can be freed, at its price, takes which request for the greatest gain."""
    if not len(worth):
        return 0, 0, 0.0
    gain = worth[None, :] - price[:, None]
    for room, request in zip(freed.T, requests.T):
        gain[room[:, None] < request[None, :]] = 0.0
    best = int(gain.argmax())
    return best // len(worth), best % len(worth), float(gain.flat[best])
