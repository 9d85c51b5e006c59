"""Every recorded life of kube-scheduler's queue, of each release, replayed: pods must be in the same places."""

from __future__ import annotations

import pytest
from tests.parity.queue_adapter import run
from tests.parity.queue_comparing import differences
from tests.parity.recordings import PARTS, assert_replayed, cases, families

FAMILIES = families("queue")
NEWER = families("queue", "1.37")


def test_recordings_of_all_families_are_here() -> None:
    assert len(FAMILIES) == 21
    assert set(NEWER) == {*FAMILIES, "gated", "tainted"}


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("family", FAMILIES)
def test_queue_moves_as_that_of_kube_scheduler(family: str, part: int) -> None:
    assert_replayed("queue", family, part, run, differences)


@pytest.mark.parametrize("family", NEWER)
def test_queue_moves_as_that_of_kube_scheduler_1_37(family: str) -> None:
    assert_replayed("queue", family, 0, run, differences, "1.37", parts=1)


@pytest.mark.parametrize("field", ["moves", "events", "delivered", "outcome", "state"])
def test_a_wrong_result_is_noticed(field: str) -> None:
    recording = next(cases("queue", "backoff"))
    result = run(recording["case"])
    step = next(step for step in result["steps"] if step.get(field))
    del step[field]
    if field == "state":
        step[field] = {}
    assert differences(result, recording["result"])
