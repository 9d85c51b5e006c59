"""Every recorded life of kube-scheduler v1.36.4's queue, replayed: pods must be in the same places at each time."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.parity.queue_adapter import run
from tests.parity.queue_comparing import differences

RECORDINGS = Path(__file__).with_name("golden") / "queue"
FAMILIES = sorted(path.name.removesuffix(".jsonl.gz") for path in RECORDINGS.glob("*.jsonl.gz"))
PARTS = 4


def cases(family: str) -> Iterator[dict[str, Any]]:
    with gzip.open(RECORDINGS / f"{family}.jsonl.gz", "rt") as lines:
        for line in lines:
            yield json.loads(line)


def test_recordings_of_all_families_are_here() -> None:
    assert len(FAMILIES) == 18


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("family", FAMILIES)
def test_queue_moves_as_that_of_kube_scheduler(family: str, part: int) -> None:
    wrong: list[str] = []
    replayed = 0
    for number, recording in enumerate(cases(family)):
        if number % PARTS != part:
            continue
        replayed += 1
        found = differences(run(recording["case"]), recording["result"])
        wrong += [f"{recording['case']['id']}: {difference}" for difference in found]
    assert replayed
    assert not wrong, "\n".join(wrong[:20])


@pytest.mark.parametrize("field", ["moves", "events", "delivered", "outcome", "state"])
def test_a_wrong_result_is_noticed(field: str) -> None:
    recording = next(cases("backoff"))
    result = run(recording["case"])
    step = next(step for step in result["steps"] if step.get(field))
    del step[field]
    if field == "state":
        step[field] = {}
    assert differences(result, recording["result"])
