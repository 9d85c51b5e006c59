"""Linear programs, solved by HiGHS: in one thread, silent, the same answer every time.

Work is limited by counts, not by time, so a busy machine changes how long an answer takes and never the answer.
`highspy` is imported when the first program is made; all else of planning knows it only through this file.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from importlib.util import find_spec

import numpy as np
import numpy.typing as npt

from kubesched.api.errors import UserError
from kubesched.state.columns import Float, Int64

INF = float("inf")
Entries = tuple[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike]
"""Of new columns: which column, counted from 0 among the new ones, in which row, and the coefficient there."""


class SolverMissingError(UserError):
    """HiGHS is not installed."""

    def __init__(self) -> None:
        super().__init__("plans need the solver HiGHS: from a checkout, pip install '.[plan]'")


def is_installed() -> bool:
    return find_spec("highspy") is not None


def require() -> None:
    """Raise SolverMissingError if there is no solver."""
    if not is_installed():
        raise SolverMissingError


class SolverOutcome(Enum):
    """How a search ended."""

    OPTIMAL = "optimal"
    INFEASIBLE = "infeasible"
    STOPPED = "stopped"
    """The limits of work were reached; there may be values all the same."""


@dataclass(frozen=True, slots=True)
class Solution:
    """What was found."""

    outcome: SolverOutcome
    objective: float
    values: Float
    """By column; empty if none were found."""
    duals: Float
    """By row, what one more unit of it would be worth; empty if that is not known."""

    @property
    def has_values(self) -> bool:
        return len(self.values) > 0


class Program:
    """A linear program that grows between searches. Each search goes on from the last basis."""

    def __init__(self, *, maximize: bool) -> None:
        require()
        import highspy

        self.rows = 0
        self.columns = 0
        self._highs = highs = highspy.Highs()
        for option, value in _OPTIONS.items():
            highs.setOptionValue(option, value)
        sense = highspy.ObjSense.kMaximize if maximize else highspy.ObjSense.kMinimize
        highs.changeObjectiveSense(sense)

    def add_rows(self, lower: npt.ArrayLike, upper: npt.ArrayLike) -> range:
        """Rows without entries: columns bring theirs."""
        low, high = np.broadcast_arrays(np.atleast_1d(_floats(lower)), np.atleast_1d(_floats(upper)))
        none = np.zeros(0, dtype=np.int32)
        starts = np.zeros(len(low), dtype=np.int32)
        self._highs.addRows(len(low), _floats(low), _floats(high), 0, starts, none, np.zeros(0))
        self.rows += len(low)
        return range(self.rows - len(low), self.rows)

    def add_columns(self, cost: npt.ArrayLike, lower: npt.ArrayLike, upper: npt.ArrayLike, entries: Entries) -> range:
        """Columns with their entries; a column has at most one entry in a row."""
        arrays = np.broadcast_arrays(np.atleast_1d(_floats(cost)), _floats(lower), _floats(upper))
        costs, low, high = (_floats(array) for array in arrays)
        count = len(costs)
        if not count:
            return range(self.columns, self.columns)
        which, rows, values = map(np.asarray, entries)
        order = np.argsort(which, kind="stable") if len(which) else np.zeros(0, dtype=np.intp)
        starts = np.searchsorted(which[order], np.arange(count)).astype(np.int32)
        indices, coefficients = rows[order].astype(np.int32), _floats(values[order])
        self._highs.addCols(count, costs, low, high, len(indices), starts, indices, coefficients)
        new = range(self.columns, self.columns + count)
        self.columns += count
        return new

    def set_costs(self, columns: npt.ArrayLike, costs: npt.ArrayLike) -> None:
        which = _ids(columns)
        self._highs.changeColsCost(len(which), which, _filled(costs, len(which)))

    def set_column_bounds(self, columns: npt.ArrayLike, lower: npt.ArrayLike, upper: npt.ArrayLike) -> None:
        which = _ids(columns)
        self._highs.changeColsBounds(len(which), which, _filled(lower, len(which)), _filled(upper, len(which)))

    def set_row_bounds(self, rows: npt.ArrayLike, lower: npt.ArrayLike, upper: npt.ArrayLike) -> None:
        which = _ids(rows)
        low, high = _filled(lower, len(which)).tolist(), _filled(upper, len(which)).tolist()
        for row, least, most in zip(which.tolist(), low, high):
            self._highs.changeRowBounds(row, least, most)

    def solve(self) -> Solution:
        """Search until the optimum, or the limit of work."""
        self._highs.run()
        solution = self._solution()
        if solution.outcome is SolverOutcome.STOPPED and not solution.has_values:
            self._highs.clearSolver()  # the basis of the last search led nowhere
            self._highs.run()
            solution = self._solution()
        return solution

    def _solution(self) -> Solution:
        import highspy

        status, info, solution = self._highs.getModelStatus(), self._highs.getInfo(), self._highs.getSolution()
        states = highspy.HighsModelStatus
        outcome = {
            states.kOptimal: SolverOutcome.OPTIMAL,
            states.kInfeasible: SolverOutcome.INFEASIBLE,
            states.kModelEmpty: SolverOutcome.OPTIMAL,
        }.get(status, SolverOutcome.STOPPED)
        is_feasible = info.primal_solution_status == 2 or outcome is SolverOutcome.OPTIMAL
        values = np.array(solution.col_value if is_feasible else (), dtype=np.float64)
        duals = np.array(solution.row_dual if solution.dual_valid else (), dtype=np.float64)
        return Solution(outcome, float(info.objective_function_value), values, duals)


def placement_entries(
    requests: Float | Int64, kinds: Int64, places: Int64, first_kind: int, first_place: int
) -> Entries:
    """Of a column for each pair of a kind of pods and a place: one pod of the kind, and the room that it takes there.

    Rows are by kind from `first_kind` on, and by place and resource from `first_place` on.
    """
    column, resource = np.nonzero(requests[kinds])
    return (
        np.concatenate([np.arange(len(kinds)), column]),
        np.concatenate([first_kind + kinds, first_place + places[column] * requests.shape[1] + resource]),
        np.concatenate([np.ones(len(kinds)), requests[kinds[column], resource]]),
    )


_OPTIONS: dict[str, bool | int | float | str] = {
    "output_flag": False,
    "log_to_console": False,
    "threads": 1,
    "parallel": "off",
    "random_seed": 0,
    "simplex_iteration_limit": 2_000_000,
}


def _floats(values: npt.ArrayLike) -> Float:
    return np.ascontiguousarray(values, dtype=np.float64)


def _filled(values: npt.ArrayLike, length: int) -> Float:
    return _floats(np.broadcast_to(_floats(values), (length,)))


def _ids(indices: npt.ArrayLike) -> npt.NDArray[np.int32]:
    return np.atleast_1d(np.ascontiguousarray(indices, dtype=np.int32))
