"""Which nodes to empty, by linear programs over kinds of pods: in which order, with how many moves at least, if at all.

Two programs, each of which only leaves something out of account:

- *most worth*: movable pods may go anywhere that has room and takes their kind. No plan can empty more.
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
from kubesched.planning.solver import INF, Program, SolverOutcome, placement_entries
from kubesched.state.columns import Bool, Float, Int64

WHOLE_PODS = "that a pod stands on one node"
WHOLE_NODES = "that nodes are bought whole"
COUPLING = "spread, affinity between pods, devices and volumes that are not bound yet"
RELAXED = (WHOLE_PODS, COUPLING, "disruption budgets that allow some, and the order of moves")
MOST_ARRIVALS = 120_000
"""With more pairs of kind and node than this, nodes with like room are pooled."""
_SHARES = 8
_TINY = 1e-6


@dataclass(frozen=True, slots=True)
class Unit:
    """Nodes that are emptied together: one, or all of a domain."""

    name: str
    rows: tuple[int, ...]
    worth: float
    """What it counts for the target: one, or its price."""
    most: float = 1.0
    """How many of it there may be: where one stands for all that can be bought, a share below 0 is more than one."""
    is_new: bool = False
    """Whether it is bought: without pods it is not there."""


@dataclass(frozen=True, slots=True)
class Drained:
    """What a program says."""

    shares: Float
    """By unit, from 0 to 1: how much of it is emptied."""
    value: float
    """The least number of moves, or the most worth."""
    scarce: tuple[ShadowPrice, ...] = ()


def most_worth(
    packing: Packing, units: Sequence[Unit] = (), pods: Sequence[Pod] = (), rows: Bool | None = None
) -> Drained:
    """The most that emptied units can be worth, whatever is moved; each pending pod that finds room on rows is 1."""
    rows = packing.live if rows is None else rows
    room, taking = packing.room, packing.taking()
    features = np.concatenate([_features(packing, room, taking), rows[:, None]], axis=1)
    classes, class_of = _classes(packing, features)
    old, new = packing.counts.sum(axis=1), _demand(packing, pods)
    program = Program(maximize=True)
    placed = program.add_rows(old, old)
    waiting = program.add_rows(np.full(len(new), -INF), new)
    total = np.array([room[of].sum(axis=0) for of in classes]).reshape(len(classes), len(packing.resources))
    within = program.add_rows(np.full(total.size, -INF), total.ravel())
    worth = [unit.worth for unit in units]
    emptied = _freed_room(units, class_of, room, within)
    shares = program.add_columns(worth, [1.0 - unit.most for unit in units], 1.0, emptied)
    most = _arrivals(taking, units, classes, class_of)
    of_rows = np.array([rows[of[0]] for of in classes], dtype=np.bool_)
    _add_arrivals(program, packing, np.where(old[:, None] > 0, most, 0), placed, within)
    _add_arrivals(program, packing, np.where((new[:, None] > 0) & of_rows, most, 0), waiting, within, worth=1.0)
    solution = program.solve()
    if solution.outcome is not SolverOutcome.OPTIMAL:
        return Drained(np.zeros(len(units)), sum(worth) + len(pods))
    scarce = _scarce(packing, total, solution.duals[within.start : within.stop])
    return Drained(solution.values[shares.start : shares.stop], solution.objective, scarce)


def fewest_exchanges(packing: Packing, pods: Sequence[Pod], rows: Bool) -> float | None:
    """The least number of moves after which these pending pods have room on the rows; None if that is impossible."""
    if most_worth(packing, pods=pods, rows=rows).value < len(pods) - _TINY * len(pods):
        return None
    drained = fewest_moves(packing, (), 0.0, pods, rows)
    return None if drained is None else max(0.0, drained.value)


def fewest_moves(
    packing: Packing, units: Sequence[Unit], worth: float, pods: Sequence[Pod] = (), rows: Bool | None = None
) -> Drained | None:
    """The least number of moves after which emptied units have this worth; None if that is impossible."""
    rows = packing.live if rows is None else rows
    is_new = packing.counts.sum(axis=1) == 0
    fitting = np.where(is_new[:, None] & ~rows, 0, packing.fitting())
    pooled = int(np.count_nonzero(fitting)) > MOST_ARRIVALS
    features = _features(packing, packing.free, fitting) if pooled else np.arange(len(packing.live))[:, None]
    classes, class_of = _classes(packing, features)
    program = Program(maximize=False)
    demand = _demand(packing, pods)
    flow = program.add_rows(demand, demand)
    total = np.array([packing.free[of].sum(axis=0) for of in classes])
    within = program.add_rows(np.full(total.size, -INF), total.ravel())
    target = program.add_rows(worth * (1 - _TINY), INF)
    per_unit = [packing.counts[:, list(unit.rows)].sum(axis=1) for unit in units]
    leaving = np.array(per_unit).reshape(len(units), len(demand))
    which, places, values = _freed_room(units, class_of, packing.free, within)
    unit_ids, kind_ids = np.nonzero(leaving)
    every = np.arange(len(units))
    entries = (
        np.concatenate([which, unit_ids, every]),
        np.concatenate([places, kind_ids + flow.start, every * 0 + target.start]),
        np.concatenate([values, -leaving[unit_ids, kind_ids], [unit.worth for unit in units]]),
    )
    shares = program.add_columns(leaving.sum(axis=1), [1.0 - unit.most for unit in units], 1.0, entries)
    _add_arrivals(program, packing, _arrivals(fitting, units, classes, class_of), flow, within)
    add_exchanges(program, packing, flow)
    solution = program.solve()
    if solution.outcome is SolverOutcome.INFEASIBLE:
        return None
    if solution.outcome is not SolverOutcome.OPTIMAL:
        return Drained(np.zeros(len(units)), 0.0)
    return Drained(solution.values[shares.start : shares.stop], solution.objective)


def _demand(packing: Packing, pods: Sequence[Pod]) -> Int64:
    """How many of the pods are of each kind."""
    return np.bincount([packing.kind_of[pod.uid] for pod in pods], minlength=len(packing.kinds))


def _arrivals(taking: Int64, units: Sequence[Unit], classes: Sequence[Int64], class_of: Int64) -> Float:
    """By kind and class, how many pods can come; any number where there may be more nodes than there are rows."""
    most = np.array([taking[:, of].sum(axis=1) for of in classes], dtype=np.float64).reshape(len(classes), len(taking))
    endless = [int(class_of[row]) for unit in units if unit.most > 1 for row in unit.rows]
    most[endless] = np.where(most[endless] > 0, INF, 0.0)
    return most.T


def _add_arrivals(
    program: Program, packing: Packing, most: Float, flow: range, within: range, worth: float = 0.0
) -> None:
    """A column for each pair of kind and class that has any: how many pods of the kind go there."""
    classes, kinds = np.nonzero(most.T)
    entries = placement_entries(packing.requests, kinds, classes, flow.start, within.start)
    program.add_columns(np.full(len(kinds), worth), 0.0, most[kinds, classes], entries)


def _freed_room(units: Sequence[Unit], class_of: Int64, room: Int64, within: range) -> tuple[Int64, Int64, Float]:
    """An emptied unit takes its room away from the classes of its nodes."""
    sums: dict[tuple[int, int], Float] = {}
    for u, unit in enumerate(units):
        for row in unit.rows:
            key = (u, int(class_of[row]))
            sums[key] = sums.get(key, 0.0) + room[row].astype(float)
    ids = np.array(list(sums), dtype=np.int64).reshape(-1, 2)
    amounts = np.array(list(sums.values())).reshape(-1, room.shape[1])
    which, r = np.nonzero(amounts)
    return ids[which, 0], within.start + ids[which, 1] * room.shape[1] + r, amounts[which, r]


def _features(packing: Packing, room: Int64, taking: Int64) -> Int64:
    """By row, what nodes are pooled by: which kinds they take, and about how much of each resource they have."""
    levels = np.ceil(_SHARES * room / np.maximum(packing.whole, 1)).astype(np.int64)
    return np.concatenate([(taking > 0).T.astype(np.int64), packing.whole, levels], axis=1)


def _classes(packing: Packing, features: Int64) -> tuple[list[Int64], Int64]:
    """The rows of each class, and the class of each row."""
    rows = np.flatnonzero(packing.live)
    class_of = np.full(len(packing.live), -1, dtype=np.int64)
    if not len(rows):
        return [], class_of
    _, which = np.unique(features[rows], axis=0, return_inverse=True)
    class_of[rows] = which.ravel()
    return [rows[which.ravel() == c] for c in range(int(which.max()) + 1)], class_of


def _scarce(packing: Packing, total: Int64, duals: Float) -> tuple[ShadowPrice, ...]:
    """What one more of each resource would be worth, times how much there is, as shares."""
    worth = np.abs(duals.reshape(total.shape) * total).sum(axis=0)
    if not worth.sum():
        return ()
    shares = worth / worth.sum()
    order = np.argsort(-shares)
    return tuple(ShadowPrice(packing.resources[r], round(float(shares[r]), 4)) for r in order if shares[r] >= 0.005)
