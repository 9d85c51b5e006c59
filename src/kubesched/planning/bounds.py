"""Upper bounds on placements: a linear program in which all nodes of a class are one large node.

The program leaves out that a pod is whole and stands on one node, and all that `kinds` leaves out; it never asks for
more than the scheduler does. The bound is worked out from the prices of the solution (weak duality), not from its
objective: any prices give a bound that holds, so neither rounding nor a search that was stopped can make it wrong.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kubesched.planning.kinds import Problem
from kubesched.planning.solver import INF, Program, placement_entries
from kubesched.state.columns import Float, Int64, Rows

MOST_PAIRS = 40_000
"""With more pairs of kinds and classes than this, classes to which the same kinds may go are one pool."""


@dataclass(frozen=True, eq=False)
class Pools:
    """Classes of nodes, each taken as one large node; several classes may be one pool."""

    of_class: Rows
    """The pool of each class."""
    room: Float
    """By pool and resource."""
    most: Float
    """How many pods of a kind the nodes of a pool take if they take no others, by kind and pool."""


@dataclass(frozen=True, eq=False)
class UpperBound:
    """The value that no placement exceeds, with the relaxed solution and the shadow prices that prove it."""

    value: float
    placed: Float
    """How many pods of each kind and pool the relaxed solution has."""
    prices: Float
    """What one more unit of room would be worth, by pool and resource."""
    worth: Float
    """What one more pod of each kind would be worth."""
    pools: Pools

    def by_class(self) -> Float:
        """The relaxed solution by kind and class; nothing where several classes are one pool."""
        count = len(self.pools.of_class)
        return self.placed if self.placed.shape[1] == count else np.zeros((len(self.placed), count))

    def shares(self) -> Float:
        """By pool and resource, the share of the bound that its room accounts for; waiting pods have the rest."""
        total = self.value if self.value > 0 else 1.0
        return self.prices * self.pools.room / total


def pools_of(problem: Problem, most_pairs: int = MOST_PAIRS) -> Pools:
    """Every class a pool of its own, if they are few; else classes with the same kinds; else all of them one."""
    classes, kinds = len(problem.classes), len(problem.kinds)
    of_class = np.arange(classes)
    if classes * kinds > most_pairs:
        fits = np.packbits(problem.most > 0, axis=0).T
        _, of_class = np.unique(fits, axis=0, return_inverse=True)
        of_class = of_class.reshape(-1)
        if classes and (of_class.max() + 1) * kinds > most_pairs:
            of_class = np.zeros(classes, dtype=np.intp)
    count = int(of_class.max()) + 1 if len(of_class) else 0
    room = np.zeros((count, len(problem.resources)))
    np.add.at(room, of_class, problem.nodes[:, None] * problem.free)
    most = np.zeros((kinds, count))
    np.add.at(most.T, of_class, (problem.nodes * problem.most).T)
    return Pools(of_class, room, most)


def upper_bound(
    problem: Problem, values: Float, *, demand: Int64 | None = None, pools: Pools | None = None
) -> UpperBound:
    """No placement has pods of a greater total value; `values` are of one pod of each kind.

    `demand` takes the place of all pods of each kind.
    """
    pools = pools or pools_of(problem)
    demand = problem.demand if demand is None else demand
    upper = np.minimum(pools.most, demand[:, None])
    kind, pool = np.nonzero(upper > 0)
    highest = upper[kind, pool]
    # Bytes and cpus in one program make numbers of very different sizes: each resource counts in its own unit.
    units = np.maximum(pools.room.max(axis=0, initial=1.0), 1.0) / 1e4
    requests, room = problem.requests / units, pools.room / units
    with np.errstate(divide="ignore", invalid="ignore"):
        fitting = np.where(requests[kind] > 0, room[pool] / requests[kind], INF)
    # Where the rows say as much, there is no limit of the column: prices are to be those of room.
    limits = np.where(fitting.min(axis=1) <= highest + 1e-9, INF, highest)
    count = len(problem.kinds)
    placed, duals = np.zeros_like(upper), np.zeros(count + room.size)
    if len(kind):
        program = Program(maximize=True)
        program.add_rows(-INF, np.concatenate([demand, room.ravel()]))
        program.add_columns(values[kind], 0, limits, placement_entries(requests, kind, pool, 0, count))
        solution = program.solve()
        if solution.has_values:
            placed[kind, pool] = solution.values
        if len(solution.duals):
            duals = np.maximum(solution.duals, 0)
    worth, prices = duals[:count], duals[count:].reshape(room.shape)
    profit = values[kind] - worth[kind] - (prices[pool] * requests[kind]).sum(axis=1)
    lost = np.maximum(profit, 0) * highest
    value = float(worth @ demand + (prices * room).sum() + lost.sum())
    tightest = fitting.argmin(axis=1)
    np.add.at(prices, (pool, tightest), lost / np.maximum(room[pool, tightest], 1e-12))
    return UpperBound(value, placed, prices / units, worth, pools)
