"""Charts: ticks are round, whatever is drawn."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kubesched.ask.html import Line, lines_over_time, round_seconds, round_up


@given(st.floats(1e-3, 1e9))
def test_step_is_the_next_round_number(value: float) -> None:
    step = round_up(value, whole=False)
    assert value * (1 - 1e-6) <= step <= value * 2.5 * (1 + 1e-6)
    assert f"{step:.0e}"[0] in "125"


@given(st.floats(1e-3, 1e8))
def test_step_of_time_is_no_smaller_and_not_much_larger(seconds: float) -> None:
    assert seconds * (1 - 1e-6) <= round_seconds(seconds) <= seconds * 2.5 * (1 + 1e-6)


def ticks(*values: float, until: float, percent: bool = False) -> list[str]:
    chart = lines_over_time([0.0, until], [Line("pods", "a", values)], percent=percent)
    return [text for _, text in (*chart.grid, *chart.time_labels)]


def test_ticks_are_round_and_reach_beyond_the_highest_value() -> None:
    assert ticks(0, 17, until=1860.0) == ["0", "5", "10", "15", "20", "0s", "10m", "20m", "30m"]
    assert ticks(0.0, 0.775, until=95.0, percent=True) == ["0%", "20%", "40%", "60%", "80%", "0s", "30s", "1m", "1.5m"]
    assert ticks(0, 1, until=2.0) == ["0", "1", "0s", "0.5s", "1s", "1.5s", "2s"]
