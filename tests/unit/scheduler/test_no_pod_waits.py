"""No pod stays pending that a scheduler started afresh on the same state would bind, whatever happened before."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.waiting_model import MIXTURES, WAYS, Step, left_waiting
from tests.waiting_world import Way

NUMBERS = st.integers(0, 255)


def histories(mixture: str) -> st.SearchStrategy[list[Step]]:
    return st.lists(st.tuples(st.sampled_from(MIXTURES[mixture]), NUMBERS, NUMBERS, NUMBERS), max_size=40)


@pytest.mark.parametrize("way", WAYS.values(), ids=[*WAYS])
@pytest.mark.parametrize("mixture", MIXTURES)
def test_no_pod_waits_that_could_run(mixture: str, way: Way) -> None:
    @settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(histories(mixture))
    def check(history: list[Step]) -> None:
        assert left_waiting(history, mixture, way) == []

    check()
