from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.api.duration import Duration


@pytest.mark.parametrize(
    ("text", "seconds", "printed"),
    [
        ("0", 0, "0s"),
        ("10s", 10, "10s"),
        ("600s", 600, "10m0s"),
        ("1h", 3600, "1h0m0s"),
        ("1h15m30.918s", 4530.918, "1h15m30.918s"),
        ("-1.5s", -1.5, "-1.5s"),
        ("+5m", 300, "5m0s"),
        (".5s", 0.5, "500ms"),
        ("1.s", 1, "1s"),
        ("100us", 0.0001, "100µs"),
        ("1500µs", 0.0015, "1.5ms"),
        ("7ns", 7e-9, "7ns"),
    ],
)
def test_durations_read_and_print_as_in_go(text: str, seconds: float, printed: str) -> None:
    duration = Duration.parse(text)
    assert duration == seconds
    assert str(duration) == printed


@pytest.mark.parametrize("text", ["", "5", "soon", "1", ".s", "1d", "s", "-", "1s ", "1.2.3s", "9999999h", None, 5])
def test_anything_else_is_refused_with_an_example(text: object) -> None:
    with pytest.raises(ValueError, match='expected a duration such as "10s"'):
        Duration.parse(text)


@given(st.integers(min_value=-(10**15), max_value=10**15))
def test_printing_loses_nothing_down_to_a_nanosecond(nanoseconds: int) -> None:
    duration = Duration(nanoseconds / 10**9)
    assert Duration.parse(str(duration)) == duration
