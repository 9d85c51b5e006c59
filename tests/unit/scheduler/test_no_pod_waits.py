"""No pod stays pending that a scheduler started afresh on the same state would bind, whatever happened before."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.waiting_model import MIXTURES, Step, left_waiting

NUMBERS = st.integers(0, 255)
MODES = [pytest.param(True, id="batched"), pytest.param(False, id="parity")]


def histories(mixture: str) -> st.SearchStrategy[list[Step]]:
    return st.lists(st.tuples(st.sampled_from(MIXTURES[mixture]), NUMBERS, NUMBERS, NUMBERS), max_size=40)


@pytest.mark.parametrize("batched", MODES)
@pytest.mark.parametrize("mixture", MIXTURES)
def test_no_pod_waits_that_could_run(mixture: str, batched: bool) -> None:
    @settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(histories(mixture))
    def check(history: list[Step]) -> None:
        assert left_waiting(history, groups=mixture == "groups", batched=batched) == []

    check()
