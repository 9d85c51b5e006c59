"""The interface to HiGHS: the same answer every time, silent, and a clear word where it is missing."""

from __future__ import annotations

import sys

import pytest

from kubesched.planning import solver
from kubesched.planning.solver import INF, Program, SolverMissingError, SolverOutcome

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
    assert found.objective == pytest.approx(10)


def test_column_that_arrives_later_is_considered() -> None:
    program = furniture()
    assert program.solve().objective == pytest.approx(10)
    program.add_columns([5], 0, INF, ([0, 0], [0, 1], [1, 1]))
    assert program.solve().objective == pytest.approx(20)


def test_contradiction_is_infeasible() -> None:
    program = Program(maximize=True)
    program.add_rows([5], [INF])
    program.add_columns([1], 0, 2, ([0], [0], [1]))
    found = program.solve()
    assert found.outcome is SolverOutcome.INFEASIBLE
    assert not found.has_values


def test_nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    furniture().solve()
    assert capfd.readouterr() == ("", "")


def test_missing_solver_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "highspy", None)
    assert not solver.is_installed()
    with pytest.raises(SolverMissingError, match=r"HiGHS: from a checkout, pip install '\.\[plan\]'$"):
        Program(maximize=True)
