"""Every decision is one record with a status, and the index has a row for each."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.unit.docs.pages import ROOT

FOLDER = ROOT / "docs" / "decisions"
INDEX = (FOLDER / "README.md").read_text()
RECORDS = sorted(path for path in FOLDER.glob("*.md") if path.name != "README.md")
_STATUS = re.compile(r"Status: (?:accepted|superseded by \[(?P<number>\d{3})\]\((?P<file>[\w-]+\.md)\))")


def file_name(path: Path) -> str:
    return path.name


@pytest.mark.parametrize("record", RECORDS, ids=file_name)
def test_a_record_has_its_number_a_status_and_three_parts_in_at_most_25_lines(record: Path) -> None:
    lines = record.read_text().splitlines()
    assert re.match(rf"# {record.name[:3]}: \S", lines[0])
    status = _STATUS.fullmatch(lines[2])
    assert status, lines[2]
    if status["file"]:
        assert status["file"].startswith(status["number"])
        assert (FOLDER / status["file"]).exists()
    text = "\n".join(lines)
    assert text.index("**Context.**") < text.index("**Decision.**") < text.index("**Consequences.**")
    assert len(lines) <= 25


def test_numbers_run_without_a_gap() -> None:
    assert [int(record.name[:3]) for record in RECORDS] == list(range(1, len(RECORDS) + 1))


def test_the_index_has_every_record_under_its_status_with_its_title() -> None:
    in_force, superseded = INDEX.split("## Superseded")
    for record in RECORDS:
        lines = record.read_text().splitlines()
        title, status = lines[0].partition(": ")[2], _STATUS.fullmatch(lines[2])
        assert status
        row = f"| [{record.name[:3]}]({record.name}) | {title} |"
        if status["file"]:
            assert f"{row} [{status['number']}]({status['file']}) |\n" in superseded
        else:
            assert f"{row}\n" in in_force
