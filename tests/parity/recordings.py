"""The recordings of kube-scheduler that are kept here, by release, and replaying a family of them in parts."""

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


_FOLDERS = {"1.36": _GOLDEN, "1.37": _GOLDEN / "1.37"}
"""By release. Of the later ones a sample of the same cases is here, and some of what the release brought."""


def families(of: str, release: str = "1.36") -> list[str]:
    """What there is of `decisions`, `queue` or `config`."""
    return sorted(path.name.removesuffix(".jsonl.gz") for path in (_FOLDERS[release] / of).glob("*.jsonl.gz"))


def cases(of: str, family: str, release: str = "1.36") -> Iterator[Json]:
    """Each with the `case` that was given and the `result` that came out."""
    with gzip.open(_FOLDERS[release] / of / f"{family}.jsonl.gz", "rt") as lines:
        for line in lines:
            yield json.loads(line)


def assert_replayed(
    of: str,
    family: str,
    part: int,
    replay: Callable[[Json, str], Json],
    differences: Callable[[Json, Json], list[str]],
    release: str = "1.36",
    parts: int = PARTS,
) -> None:
    """Every case of this part gives what was recorded."""
    wrong: list[str] = []
    replayed = 0
    for number, recording in enumerate(cases(of, family, release)):
        if number % parts != part:
            continue
        replayed += 1
        found = differences(replay(recording["case"], release), recording["result"])
        wrong += [f"{recording['case']['id']}: {difference}" for difference in found]
    assert replayed
    assert not wrong, "\n".join(wrong[:20])
