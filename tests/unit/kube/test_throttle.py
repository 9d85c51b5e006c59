"""The token bucket, with client-go's meaning of its two numbers."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubesched.kube.client import Throttle


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_burst_goes_at_once_and_the_rest_in_step() -> None:
    throttle = Throttle(50, 100, clock=Clock())
    waits = [throttle.reserve() for _ in range(103)]
    assert waits[:100] == [0.0] * 100
    assert waits[100:] == pytest.approx([0.02, 0.04, 0.06])


def test_tokens_come_back_with_time_but_not_beyond_the_burst() -> None:
    clock = Clock()
    throttle = Throttle(10, 2, clock=clock)
    for _ in range(2):
        throttle.reserve()
    clock.now += 1000
    assert [throttle.reserve() for _ in range(3)] == pytest.approx([0, 0, 0.1])


def test_negative_is_no_limit_and_zero_is_the_default() -> None:
    unlimited = Throttle(-1, 0, clock=Clock())
    assert {unlimited.reserve() for _ in range(1000)} == {0.0}
    default = Throttle(0, 0, clock=Clock())
    assert [default.reserve() for _ in range(11)] == pytest.approx([0.0] * 10 + [0.2])


def test_token_given_back_is_there_for_the_next() -> None:
    throttle = Throttle(1, 1, clock=Clock())
    throttle.reserve()
    assert throttle.reserve() == pytest.approx(1)
    throttle.give_back()
    assert throttle.reserve() == pytest.approx(1)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.floats(0, 0.5), min_size=1, max_size=40), st.integers(1, 20), st.integers(1, 10))
def test_never_more_than_burst_and_rate_allow(gaps: list[float], qps: int, burst: int) -> None:
    clock = Clock()
    throttle = Throttle(qps, burst, clock=clock)
    sent: list[float] = []
    for gap in gaps:
        clock.now += gap
        sent.append(clock.now + throttle.reserve())
    assert sent == sorted(sent)
    for first in range(len(sent)):
        for last in range(first, len(sent)):
            allowed = burst + (sent[last] - sent[first]) * qps
            assert last - first + 1 <= allowed + 1e-6
