"""Every recorded decision of kube-scheduler v1.36.4, replayed: the engine must say the same, to the word."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.parity.adapter import evaluate
from tests.parity.comparing import differences

RECORDINGS = Path(__file__).with_name("golden") / "decisions"
FAMILIES = sorted(path.name.removesuffix(".jsonl.gz") for path in RECORDINGS.glob("*.jsonl.gz"))
PARTS = 4


def cases(family: str) -> Iterator[dict[str, Any]]:
    with gzip.open(RECORDINGS / f"{family}.jsonl.gz", "rt") as lines:
        for line in lines:
            yield json.loads(line)


def test_recordings_of_all_families_are_here() -> None:
    assert len(FAMILIES) == 27


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("family", FAMILIES)
def test_decisions_are_those_of_kube_scheduler(family: str, part: int) -> None:
    wrong: list[str] = []
    replayed = 0
    for number, recording in enumerate(cases(family)):
        if number % PARTS != part:
            continue
        replayed += 1
        found = differences(evaluate(recording["case"]), recording["result"])
        wrong += [f"{recording['case']['id']}: {difference}" for difference in found]
    assert replayed
    assert not wrong, "\n".join(wrong[:20])


def test_a_wrong_result_is_noticed() -> None:
    recording = next(cases("basics"))
    result = evaluate(recording["case"])
    scored = next(pod for pod in result["pods"] if pod.get("total"))
    node = next(iter(scored["total"]))
    scored["total"][node] += 1
    assert differences(result, recording["result"])
