"""The recordings of kube-scheduler v1.36.4 that are kept here, and replaying a family of them in parts."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

Json = dict[str, Any]

PARTS = 4
"""A family is replayed in so many tests, so that several processes share it."""

_GOLDEN = Path(__file__).with_name("golden")


def families(of: str) -> list[str]:
    """What there is of `decisions` or `queue`."""
    return sorted(path.name.removesuffix(".jsonl.gz") for path in (_GOLDEN / of).glob("*.jsonl.gz"))


def cases(of: str, family: str) -> Iterator[Json]:
    """Each with the `case` that was given and the `result` that came out."""
    with gzip.open(_GOLDEN / of / f"{family}.jsonl.gz", "rt") as lines:
        for line in lines:
            yield json.loads(line)


def assert_replayed(
    of: str,
    family: str,
    part: int,
    replay: Callable[[Json], Json],
    differences: Callable[[Json, Json], list[str]],
) -> None:
    """Every case of this part gives what was recorded."""
    wrong: list[str] = []
    replayed = 0
    for number, recording in enumerate(cases(of, family)):
        if number % PARTS != part:
            continue
        replayed += 1
        found = differences(replay(recording["case"]), recording["result"])
        wrong += [f"{recording['case']['id']}: {difference}" for difference in found]
    assert replayed
    assert not wrong, "\n".join(wrong[:20])
