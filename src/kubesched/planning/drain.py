"""Which nodes to empty, by linear programs over kinds of pods: in which order, with how many moves at least, if at all.

Two programs, each of which only leaves something out of account:

- *most worth*: movable pods may go anywhere that has room and takes their kind. What it cannot empty nobody can.
- *fewest moves*: pods that leave a node go into the room that others have now; a node that takes more than that has to
  lose a pod first, which is a move, too, and goes elsewhere in its turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kubesched.api.pod import Pod
from kubesched.planning.exchanges import add_exchanges
from kubesched.planning.packing import Packing
from kubesched.planning.plan import ShadowPrice
from kubesched.planning.solver import INF, Program, SolverOutcome
from kubesched.state.columns import Bool, Float, Int64

RELAXED = (
    "pods can be divided between nodes",
    "spread, affinity between pods, devices and volumes that are not bound yet",
    "disruption budgets that allow some, and the order of moves",
)
MOST_ARRIVALS = 120_000
"""Beyond so many pairs of kind and node, nodes with like room are pooled."""
_SHARES = 8
_TINY = 1e-6


@dataclass(frozen=True, slots=True)
class Unit:
    """Nodes that are emptied together: one, or all of a domain."""

    name: str
    rows: tuple[int, ...]
    worth: float
    """What it counts for the target: one, or its price."""


@dataclass(frozen=True, slots=True)
class Drained:
    """What a program says."""

    shares: Float
    """By unit, from 0 to 1: how much of it is emptied."""
    value: float
    """The least number of moves, or the most worth."""
    scarce: tuple[ShadowPrice, ...] = ()


def most_worth(packing: Packing, units: Sequence[Unit]) -> Drained:
    """The most that emptied units can be worth, whatever is moved."""
    classes, class_of = _classes(packing, units, _features(packing, packing.room, packing.taking()))
    taking, room = packing.taking(), packing.room
    program = Program(maximize=True)
    kinds, resources = packing.requests.shape
    demand = packing.counts.sum(axis=1)
    placed = program.add_rows(demand, demand)
    total = np.array([room[rows].sum(axis=0) for rows in classes])
    within = program.add_rows(np.full(total.size, -INF), total.ravel())
    shares = program.add_columns(
        [unit.worth for unit in units], 0.0, 1.0, _emptied(units, class_of, room, within, resources)
    )
    pairs = [(k, c) for c, rows in enumerate(classes) for k in range(kinds) if demand[k] and taking[k, rows].any()]
    _add_arrivals(program, packing, pairs, placed, within, [float(taking[k, classes[c]].sum()) for k, c in pairs])
    solution = program.solve()
    if solution.outcome is not SolverOutcome.OPTIMAL:
        return Drained(np.zeros(len(units)), INF)
    scarce = _scarce(packing, classes, total, solution.duals[within.start : within.stop])
    return Drained(solution.values[shares.start : shares.stop], solution.objective, scarce)


def fewest_moves(packing: Packing, units: Sequence[Unit], wanted: float) -> Drained | None:
    """The least number of moves after which emptied units are worth so much; None if that is impossible."""
    fitting = packing.fitting()
    pooled = int(np.count_nonzero(fitting)) > MOST_ARRIVALS
    features = _features(packing, packing.free, fitting) if pooled else np.arange(len(packing.live))[:, None]
    classes, class_of = _classes(packing, units, features)
    kinds, resources = packing.requests.shape
    moves = packing.moves
    program = Program(maximize=False)
    flow = program.add_rows(np.zeros(kinds), np.zeros(kinds))
    total = np.array([packing.free[rows].sum(axis=0) for rows in classes])
    within = program.add_rows(np.full(total.size, -INF), total.ravel())
    target = program.add_rows(wanted * (1 - _TINY), INF)
    leaving = np.array([packing.counts[:, list(unit.rows)].sum(axis=1) for unit in units]).reshape(len(units), kinds)
    which, rows, values = _emptied(units, class_of, packing.free, within, resources)
    unit_ids, kind_ids = np.nonzero(leaving)
    every = np.arange(len(units))
    entries = (
        np.concatenate([which, unit_ids, every]),
        np.concatenate([rows, kind_ids + flow.start, every * 0 + target.start]),
        np.concatenate([values, -leaving[unit_ids, kind_ids], [unit.worth for unit in units]]),
    )
    shares = program.add_columns([float(moves[list(unit.rows)].sum()) for unit in units], 0.0, 1.0, entries)
    pairs = [(k, c) for c, of in enumerate(classes) for k in np.flatnonzero(fitting[:, of].any(axis=1)).tolist()]
    _add_arrivals(program, packing, pairs, flow, within, [float(fitting[k, classes[c]].sum()) for k, c in pairs])
    add_exchanges(program, packing, flow)
    solution = program.solve()
    if solution.outcome is SolverOutcome.INFEASIBLE:
        return None
    if solution.outcome is not SolverOutcome.OPTIMAL:
        return Drained(np.zeros(len(units)), 0.0)
    return Drained(solution.values[shares.start : shares.stop], solution.objective)


def fewest_exchanges(packing: Packing, pods: Sequence[Pod], rows: Bool) -> float | None:
    """The least number of moves after which these pending pods have room on the rows; None if that is impossible."""
    if most_placed(packing, pods, rows).value < len(pods) - _TINY * len(pods):
        return None
    is_new = packing.counts.sum(axis=1) == 0
    fitting = np.where(is_new[:, None] & ~rows, 0, packing.fitting())
    demand = np.bincount([packing.kind_of[pod.uid] for pod in pods], minlength=len(packing.kinds))
    program = Program(maximize=False)
    flow = program.add_rows(demand, demand)
    within = program.add_rows(np.full(packing.free.size, -INF), packing.free.ravel())
    pairs = [(k, i) for k, i in zip(*(ids.tolist() for ids in np.nonzero(fitting * packing.live)))]
    _add_arrivals(program, packing, pairs, flow, within, [float(fitting[k, i]) for k, i in pairs])
    add_exchanges(program, packing, flow)
    solution = program.solve()
    if solution.outcome is SolverOutcome.INFEASIBLE:
        return None
    return max(0.0, solution.objective) if solution.outcome is SolverOutcome.OPTIMAL else 0.0


def most_placed(packing: Packing, pods: Sequence[Pod], rows: Bool) -> Drained:
    """The most of these pending pods that find room on the rows, while all movable pods find room anywhere."""
    room, taking = packing.room, packing.taking()
    features = np.concatenate([_features(packing, room, taking), rows[:, None]], axis=1)
    classes, _ = _classes(packing, (), features)
    new = np.bincount([packing.kind_of[pod.uid] for pod in pods], minlength=len(packing.kinds))
    old = packing.counts.sum(axis=1)
    program = Program(maximize=True)
    placed = program.add_rows(old, old)
    total = np.array([room[of].sum(axis=0) for of in classes]).reshape(len(classes), -1)
    within = program.add_rows(np.full(total.size, -INF), total.ravel())
    most = [[float(taking[k, of].sum()) for of in classes] for k in range(len(packing.kinds))]
    pairs = [(k, c) for k in np.flatnonzero(old).tolist() for c in range(len(classes)) if most[k][c]]
    _add_arrivals(program, packing, pairs, placed, within, [most[k][c] for k, c in pairs])
    limits = program.add_rows(np.full(len(new), -INF), new)
    pairs = [(k, c) for k in np.flatnonzero(new).tolist() for c in range(len(classes)) if most[k][c]]
    pairs = [(k, c) for k, c in pairs if rows[classes[c][0]]]
    _add_arrivals(program, packing, pairs, limits, within, [most[k][c] for k, c in pairs], worth=1.0)
    solution = program.solve()
    if solution.outcome is not SolverOutcome.OPTIMAL:
        return Drained(np.zeros(0), float(len(pods)))
    return Drained(
        np.zeros(0), solution.objective, _scarce(packing, classes, total, solution.duals[within.start : within.stop])
    )


def _add_arrivals(
    program: Program,
    packing: Packing,
    pairs: Sequence[tuple[int, int]],
    flow: range,
    within: range,
    most: Sequence[float],
    worth: float = 0.0,
) -> None:
    """A column for each pair of kind and class: how many pods of the kind go there."""
    if not pairs:
        return
    ids = np.array(pairs)
    resources = packing.requests.shape[1]
    which, r = np.nonzero(packing.requests[ids[:, 0]])
    entries = (
        np.concatenate([np.arange(len(ids)), which]),
        np.concatenate([ids[:, 0] + flow.start, within.start + ids[which, 1] * resources + r]),
        np.concatenate([np.ones(len(ids)), packing.requests[ids[which, 0], r]]),
    )
    program.add_columns(np.full(len(ids), worth), 0.0, most, entries)


def _emptied(
    units: Sequence[Unit], class_of: Int64, room: Int64, within: range, resources: int
) -> tuple[Int64, Int64, Float]:
    """An emptied unit takes its room away from the classes of its nodes."""
    sums: dict[tuple[int, int], Float] = {}
    for u, unit in enumerate(units):
        for row in unit.rows:
            key = (u, int(class_of[row]))
            sums[key] = sums.get(key, 0.0) + room[row].astype(float)
    ids = np.array(list(sums), dtype=np.int64).reshape(-1, 2)
    amounts = np.array(list(sums.values())).reshape(-1, resources)
    which, r = np.nonzero(amounts)
    return ids[which, 0], within.start + ids[which, 1] * resources + r, amounts[which, r]


def _features(packing: Packing, room: Int64, taking: Int64) -> Int64:
    """By row, what nodes are pooled by: which kinds they take, and about how much of each resource they have."""
    levels = np.ceil(_SHARES * room / np.maximum(packing.whole, 1)).astype(np.int64)
    return np.concatenate([(taking > 0).T.astype(np.int64), packing.whole, levels], axis=1)


def _classes(packing: Packing, units: Sequence[Unit], features: Int64) -> tuple[list[Int64], Int64]:
    """The rows of each class, and the class of each row."""
    live: Bool = packing.live
    rows = np.flatnonzero(live)
    class_of = np.full(len(live), -1, dtype=np.int64)
    if not len(rows):
        return [], class_of
    _, which = np.unique(features[rows], axis=0, return_inverse=True)
    class_of[rows] = which.ravel()
    return [rows[which.ravel() == c] for c in range(int(which.max()) + 1)], class_of


def _scarce(packing: Packing, classes: Sequence[Int64], total: Int64, duals: Float) -> tuple[ShadowPrice, ...]:
    """What one more of each resource would be worth, times how much there is, as shares."""
    worth = np.abs(duals.reshape(total.shape) * total).sum(axis=0)
    if not worth.sum():
        return ()
    shares = worth / worth.sum()
    order = np.argsort(-shares)
    return tuple(ShadowPrice(packing.resources[r], round(float(shares[r]), 4)) for r in order if shares[r] >= 0.005)
