"""Numbers on the pages that are constants in the code are those constants.

A writer marks one with a comment right after it: `20 ms<!-- = kubesched.scheduler.loop:_SLICE -->`. The comment names a
module and a constant in it (or a field of a class that needs no arguments), or one of the COUNTS below.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.unit.docs.pages import PAGES, ROOT, name_of

from kubesched.daemon.options import FLAGS

GOLDEN = ROOT / "tests" / "parity" / "golden"
WORDS = {
    "two": 2,
    "three": 3,
    "four": 4,
    "five": 5,
    "six": 6,
    "seven": 7,
    "eight": 8,
    "nine": 9,
    "ten": 10,
    "twelve": 12,
}
UNITS = {"": 1.0, "%": 0.01, "ms": 0.001, "s": 1, "second": 1, "minute": 60, "hour": 3600, "kB": 1 << 10, "MB": 1 << 20}
_MARKER = re.compile(r"<!-- = (?P<source>[\w.:-]+) -->")
_NUMBER = re.compile(r"(?P<number>[\d,]*\.?\d+|[A-Za-z]+)[ -]?(?P<unit>%|ms|s|seconds?|minutes?|hours?|kB|MB|)\Z")


class MarkedNumber(NamedTuple):
    """A number on a page, with what the comment after it names."""

    page: str
    line: int
    before: str
    source: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line} {self.source}"

    @property
    def value(self) -> float:
        found = _NUMBER.search(self.before)
        assert found, f"{self}: there must be a number right before the comment, as in 20 ms or 1,000"
        number = found["number"].lower().replace(",", "")
        unit = found["unit"] if found["unit"] in UNITS else found["unit"].removesuffix("s")
        return float(WORDS.get(number, number)) * UNITS[unit]


def recorded(of: str) -> int:
    files = (GOLDEN / of).glob("*.jsonl.gz")
    return sum(len(gzip.decompress(file.read_bytes()).splitlines()) for file in files)


def flags_of(group: str) -> int:
    return sum(flag.group == group for flag in FLAGS.values())


COUNTS: dict[str, Callable[[], int]] = {
    "count:recorded-decisions": lambda: recorded("decisions"),
    "count:recorded-configurations": lambda: recorded("config"),
    "count:recorded-queues": lambda: recorded("queue"),
    "count:own-flags": lambda: flags_of("Kubesched"),
    "count:policy-flags": lambda: flags_of("Legacy policy"),
}


def marked(page: Path) -> Iterator[MarkedNumber]:
    for number, line in enumerate(page.read_text().splitlines(), start=1):
        for marker in _MARKER.finditer(line):
            yield MarkedNumber(name_of(page), number, line[: marker.start()], marker["source"])


def value_in_the_code(source: str) -> float:
    if source in COUNTS:
        return COUNTS[source]()
    module, _, path = source.partition(":")
    found: Any = import_module(module)
    for name in path.split("."):
        found = getattr(found() if isinstance(found, type) else found, name)
    return float(found)


NUMBERS = [number for page in PAGES for number in marked(page)]


@pytest.mark.parametrize("number", NUMBERS, ids=str)
def test_a_marked_number_is_that_of_the_code(number: MarkedNumber) -> None:
    assert number.value == pytest.approx(value_in_the_code(number.source))


@pytest.mark.parametrize(
    ("text", "value"), [("20 ms", 0.02), ("65,536", 65536), ("three minutes", 180), ("64 MB", 64 << 20), ("0.5 s", 0.5)]
)
def test_numbers_are_read_with_their_units(text: str, value: float) -> None:
    assert MarkedNumber("", 1, f"in slices of {text}", "").value == pytest.approx(value)


def test_figures_that_were_once_wrong_are_marked() -> None:
    sources = {number.source for number in NUMBERS}
    assert set(COUNTS) <= sources
    assert len(sources) >= 20
