"""Loads for whole nodes that together hold the pods at the least cost: columns as prices ask for them, and a dive.

A column is a class of nodes with so many pods of each kind. A linear program over the columns that are known (the
master) prices the pods, a knapsack per class finds the load that is worth most at these prices, and so on until no
load is worth more than its node. The dive then fixes whole columns, and goes on with what is left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from kubesched.planning.covers import Cover, Covered, NodeLoad, bins_of, cost_of, covered_by
from kubesched.planning.knapsack import Knapsack
from kubesched.planning.solver import INF, Program, Solution
from kubesched.state.columns import Float, Int64

_EPSILON = 1e-7
_ROUNDS = 60
_DIVE_ROUNDS = 20
_SURPLUS = 1e-2
"""What room for a pod that is not there costs, as a share of its penalty: columns without it are better for a dive."""
_SMOOTHING = 0.7
"""The share of the best prices known in those that loads are made for: prices that jump make useless loads."""

Report = Callable[[float, float], None]
"""Told of the best cost known and of the bound, while the search goes on."""


class ColumnSearch:
    """One search for loads."""

    def __init__(
        self, cover: Cover, goes_on: Callable[[], bool] = lambda: True, report: Report = lambda best_cost, bound: None
    ) -> None:
        """`goes_on` is asked again and again: the search ends with the best known once it says no."""
        self.cover = cover
        self.bound = -INF
        """Nothing costs less than this."""
        self.best: Covered | None = None
        self._report = report
        self._goes_on = goes_on
        kinds, classes = len(cover.demand), len(cover.price)
        most = np.minimum(cover.most, cover.demand[:, None])
        self._knapsacks = [Knapsack(cover.requests, cover.room[c], most[:, c]) for c in range(classes)]
        self._program = program = Program(maximize=False)
        program.add_rows(cover.demand, cover.demand)
        program.add_rows(-INF, cover.nodes)
        diagonal = np.arange(kinds)
        program.add_columns(cover.penalty, 0, INF, (diagonal, diagonal, np.ones(kinds)))
        program.add_columns(_SURPLUS * cover.penalty, 0, INF, (diagonal, diagonal, -np.ones(kinds)))
        self._first = program.columns
        self._class_of: list[int] = []
        self._counts: list[Int64] = []
        self._seen: set[tuple[int, bytes]] = set()
        self._best_prices: Float | None = None
        """The prices of pods, by kind, that proved the bound."""

    def suggest_prices(self, prices: Float) -> None:
        """Begin with these, by kind; the bound's program has good ones."""
        self._best_prices = np.clip(prices, 0, self.cover.penalty)

    def add(self, loads: Iterable[tuple[int, Int64]]) -> int:
        """Take these loads into account; how many were new."""
        which, rows, values, prices = list[int](), list[Int64](), list[Int64](), list[float]()
        for node_class, counts in loads:
            key = (node_class, counts.tobytes())
            if key in self._seen or not counts.any():
                continue
            self._seen.add(key)
            kinds = np.flatnonzero(counts)
            rows.append(np.append(kinds, len(self.cover.demand) + node_class))
            values.append(np.append(counts[kinds], 1))
            which += [len(prices)] * (len(kinds) + 1)
            prices.append(self.cover.price[node_class])
            self._class_of.append(node_class)
            self._counts.append(counts)
        if prices:
            self._program.add_columns(prices, 0, INF, (which, np.concatenate(rows), np.concatenate(values)))
        return len(prices)

    def generate(self, rounds: int = _ROUNDS, *, demand: Int64 | None = None, gain: float = 2e-5) -> Solution:
        """Make columns until the master gains nothing more; `demand` is what is left of it in a dive.

        Without `demand`, the bound is worked out on the way.
        """
        cover, kinds = self.cover, len(self.cover.demand)
        solution = self._program.solve()
        smoothing, before = _SMOOTHING, INF
        for _ in range(rounds):
            if not self._goes_on():
                break
            prices = np.clip(solution.duals[:kinds], 0, cover.penalty)
            dues = np.maximum(-solution.duals[kinds:], 0)
            smoothed = prices
            if demand is None and self._best_prices is not None and smoothing:
                smoothed = smoothing * self._best_prices + (1 - smoothing) * prices
            new, tops = list[tuple[int, Int64]](), np.zeros(len(cover.price))
            for c, knapsack in enumerate(self._knapsacks):
                load = knapsack.best(smoothed, demand)
                tops[c] = load.bound
                if load.counts @ prices > cover.price[c] + dues[c] + _EPSILON * (1 + cover.price[c]):
                    new.append((c, load.counts))
            if demand is None:
                self._note_bound(smoothed, tops)
            added = self.add(new)
            if not added:
                if not smoothing or demand is not None or smoothed is prices:
                    break
                smoothing = 0.0
                continue
            smoothing = _SMOOTHING
            solution = self._program.solve()
            if demand is None:
                self._tell(solution.objective)
            scale = max(abs(solution.objective), 1.0)
            if solution.objective - self.bound <= gain * scale and demand is None:
                break
            if demand is not None and before - solution.objective <= gain * scale:
                break
            before = solution.objective
        return solution

    def _note_bound(self, prices: Float, tops: Float) -> None:
        """What the prices prove, given the most that a load of each class is worth at them (Farley, Lagrange)."""
        cover = self.cover
        endless = np.isinf(cover.nodes)
        excess = tops[endless] / np.maximum(cover.price[endless], 1e-12)
        scale = max(1.0, float(excess.max(initial=1.0)))
        limited = ~endless
        paid = np.maximum(tops[limited] / scale - cover.price[limited], 0) @ cover.nodes[limited]
        bound = float(prices @ cover.demand / scale - paid)
        if bound > self.bound:
            self.bound, self._best_prices = bound, prices

    def room_worth(self, node_class: int) -> Float:
        """By resource, what the room of a node of the class is worth at the prices that proved the bound."""
        prices = self.cover.penalty if self._best_prices is None else self._best_prices
        cover = self.cover
        limits = np.where(cover.most[:, node_class] > 0, cover.demand, 0)
        return Knapsack(cover.requests, cover.room[node_class], limits).room_worth(prices)

    def _tell(self, cost: float) -> None:
        self._report(cost if self.best is None else self.best.cost, self.bound)

    def start(self, placed: Float, weights: Float) -> None:
        """Begin with loads that best fit makes of what a relaxed solution has by kind and class, and of everything.

        Only where nodes are limited. `weights` are of resources.
        """
        cover = self.cover
        largest = np.argsort(-(cover.requests @ weights), kind="stable").tolist()
        for by_class in (np.floor(placed + 1e-6).astype(np.int64), np.zeros_like(cover.most)):
            bins = bins_of(cover)
            for k in largest:
                waiting = int(cover.demand[k])
                for c in np.flatnonzero(by_class[k]).tolist():
                    count = int(min(by_class[k, c], waiting))
                    waiting -= count - bins.fill(k, count, weights, bins.class_of == c)
                bins.fill(k, waiting, weights)
            covered = covered_by(cover, bins)
            self.add((load.node_class, load.counts) for load in covered.loads)
            self.keep(covered)

    def dive(self, *, by_worth: bool = False, rounds: int = _DIVE_ROUNDS) -> Covered:
        """Fix whole columns, and generate again for what is left, until nothing is.

        Where no column is whole, one is rounded up: that with the largest part, or with the most worth for its price.
        """
        cover = self.cover
        demand, nodes = cover.demand.copy(), cover.nodes.copy()
        loads: list[NodeLoad] = []
        while demand.any() and self._goes_on():
            self._limit(demand, nodes)
            solution = self.generate(rounds, demand=demand, gain=1e-5)
            parts = solution.values[self._first :]
            fixed = self._unpack(self._whole(parts) or self._round_up(parts, solution, by_worth), demand)
            if not fixed:
                break
            loads += fixed
            for load in fixed:
                nodes[load.node_class] -= 1
        self._limit(cover.demand, cover.nodes)
        return self.keep(Covered(tuple(loads), demand, cost_of(cover, loads, demand)))

    def _limit(self, demand: Int64, nodes: Float) -> None:
        """Limit the program to the pods and nodes that are left. Columns with more pods than that are switched off."""
        kinds = len(self.cover.demand)
        self._program.set_row_bounds(np.arange(kinds), demand, demand)
        self._program.set_row_bounds(kinds + np.arange(len(nodes)), -INF, nodes)
        if self._counts:
            fits = np.where((np.array(self._counts) <= demand).all(axis=1), INF, 0.0)
            self._program.set_column_bounds(self._first + np.arange(len(self._counts)), 0, fits)

    def _whole(self, parts: Float) -> list[tuple[int, int]]:
        """Columns with how often they are taken for sure; of many not all, so that what is left can still be mixed."""
        whole = np.floor(parts + 1e-6).astype(np.int64)
        whole = np.where(whole > 3, (whole * 0.7).astype(np.int64), whole)
        return [(int(j), int(whole[j])) for j in np.flatnonzero(whole)]

    def _round_up(self, parts: Float, solution: Solution, by_worth: bool) -> list[tuple[int, int]]:
        fractional = np.flatnonzero(parts > 1e-6)
        if not len(fractional):
            return []
        if not by_worth:
            return [(int(fractional[parts[fractional].argmax()]), 1)]
        prices = solution.duals[: len(self.cover.demand)]
        worth = np.array([self._counts[j] @ prices for j in fractional])
        cost = np.array([self.cover.price[self._class_of[j]] for j in fractional])
        return [(int(fractional[(worth / np.maximum(cost, 1e-9) + 1e-3 * parts[fractional]).argmax()]), 1)]

    def _unpack(self, columns: Iterable[tuple[int, int]], demand: Int64) -> list[NodeLoad]:
        """A load for each time that a column is taken, without pods that are not there; demand is less after that."""
        loads: list[NodeLoad] = []
        for column, times in columns:
            for _ in range(times):
                counts = np.minimum(self._counts[column], demand)
                if not counts.any():
                    break
                demand -= counts
                loads.append(NodeLoad(self._class_of[column], counts))
        return loads

    def keep(self, covered: Covered) -> Covered:
        """Remember it if it is the best so far."""
        if self.best is None or covered.cost < self.best.cost:
            self.best = covered
            self._tell(covered.cost)
        return covered
