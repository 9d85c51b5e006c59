"""No pod stays pending that a scheduler started afresh on the same state would bind, whatever happened before."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.waiting_model import MIXTURES, WAYS, Step, left_waiting, random_history
from tests.waiting_world import Way

NUMBERS = st.integers(0, 255)


def histories(mixture: str) -> st.SearchStrategy[list[Step]]:
    return st.lists(st.tuples(st.sampled_from(MIXTURES[mixture]), NUMBERS, NUMBERS, NUMBERS), max_size=40)


FOUND: dict[str, tuple[str, list[Step]]] = {
    "a victim loses the label that the preemptor avoids": (
        "affinity",
        [
            *(("node", 48217, 59549, 61203), ("node", 19039, 52124, 58877), ("pod", 40087, 47962, 61174)),
            *(("node", 3360, 27053, 25025), ("pod", 54897, 61473, 56570), ("pod", 40885, 31900, 14982)),
            *(("wait", 41031, 3077, 61370), ("pod", 51817, 17343, 12818), ("affinity", 19583, 49896, 33629)),
            *(("finish", 33439, 31748, 57052), ("relabel", 31724, 53009, 19168)),
        ],
    ),
    "the API server says that a victim is gone which is there": (
        "refusals",
        [
            *(("pods", 60251, 15482, 65215), ("node", 24235, 14883, 11479), ("node", 9282, 32279, 55106)),
            *(("wait", 9865, 62461, 29212), ("refuse", 7034, 6377, 35480), ("priority", 5573, 4237, 64498)),
            ("finish", 31760, 24164, 55105),
        ],
    ),
    "a victim is made anew while its watch is slow": ("slow watches", random_history(11103, "slow watches")),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=[*WAYS])
@pytest.mark.parametrize("found", FOUND)
def test_no_pod_waits_after_a_history_that_was_found_once(found: str, way: Way) -> None:
    mixture, history = FOUND[found]
    assert left_waiting(history, mixture, way) == []


@pytest.mark.parametrize("way", WAYS.values(), ids=[*WAYS])
@pytest.mark.parametrize("mixture", MIXTURES)
def test_no_pod_waits_that_could_run(mixture: str, way: Way) -> None:
    @settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(histories(mixture))
    def check(history: list[Step]) -> None:
        assert left_waiting(history, mixture, way) == []

    check()
