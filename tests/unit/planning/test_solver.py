"""The interface to HiGHS: the same answer every time, silent, and a clear word where it is missing."""

from __future__ import annotations

import sys

import pytest

from kubesched.planning import solver
from kubesched.planning.solver import INF, Program, SolverMissingError, SolverOutcome, WorkLimits

pytest.importorskip("highspy", reason="plans need HiGHS")


def furniture() -> Program:
    """Three for a table, two for a chair; wood for four, hours for six."""
    program = Program(maximize=True)
    program.add_rows(-INF, [4, 6])
    program.add_columns([3, 2], 0, INF, ([0, 1, 0, 1], [0, 0, 1, 1], [1, 1, 2, 1]))
    return program


def test_linear_program_has_values_and_what_more_of_a_row_is_worth() -> None:
    found = furniture().solve()
    assert found.outcome is SolverOutcome.OPTIMAL
    assert found.values.tolist() == pytest.approx([2, 2])
    assert found.duals.tolist() == pytest.approx([1, 1])
    assert found.bound == found.objective == pytest.approx(10)


def test_column_that_arrives_later_is_considered() -> None:
    program = furniture()
    assert program.solve().objective == pytest.approx(10)
    program.add_columns([5], 0, INF, ([0, 0], [0, 1], [1, 1]))
    assert program.solve().objective == pytest.approx(20)


def test_integer_program_has_a_bound_and_whole_values() -> None:
    program = Program(maximize=True)
    program.add_rows(-INF, [5])
    program.add_columns([3, 4], 0, INF, ([0, 1], [0, 0], [2, 3]), integer=True)
    found = program.solve()
    assert found.values.tolist() == [1, 1]
    assert found.bound == pytest.approx(7)


def test_columns_that_need_not_be_whole_any_more_have_duals_again() -> None:
    program = Program(maximize=True)
    program.add_rows(-INF, [5])
    program.add_columns([3, 4], 0, INF, ([0, 1], [0, 0], [2, 3]), integer=True)
    assert program.solve().bound == pytest.approx(7)
    program.set_integer([0, 1], False)
    relaxed = program.solve()
    assert relaxed.bound == relaxed.objective == pytest.approx(7.5)
    assert relaxed.duals.tolist() == pytest.approx([1.5])


def test_bound_of_a_search_that_was_stopped_is_not_below_the_best() -> None:
    program = Program(maximize=True)
    weights = [(37 * i) % 101 + 50 for i in range(60)]
    program.add_rows(-INF, [sum(weights) / 2 + 0.5] * 3)
    entries = [(i, row, weights[(i * (row + 3)) % 60]) for i in range(60) for row in range(3)]
    program.add_columns(weights, 0, 1, tuple(zip(*entries)), integer=True)  # type: ignore[arg-type]
    stopped, thorough = program.solve(WorkLimits(nodes=0)), program.solve(WorkLimits(nodes=2_000))
    assert stopped.bound >= thorough.objective - 1e-6


def test_contradiction_is_infeasible_and_has_a_ray() -> None:
    program = Program(maximize=True)
    program.add_rows([5], [INF])
    program.add_columns([1], 0, 2, ([0], [0], [1]))
    found = program.solve()
    assert found.outcome is SolverOutcome.INFEASIBLE
    assert not found.has_values
    assert len(found.duals) == 1


def test_nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    program = furniture()
    program.set_integer([0, 1])
    program.suggest([0], [1])
    program.solve()
    assert capfd.readouterr() == ("", "")


def test_missing_solver_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "highspy", None)
    assert not solver.is_installed()
    with pytest.raises(SolverMissingError, match=r"HiGHS: from a checkout, pip install '\.\[plan\]'$"):
        Program(maximize=True)
