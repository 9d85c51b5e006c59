"""The page on plans: its commands run, and print what it shows."""

from __future__ import annotations

import re
import shlex

import pytest
from click.testing import CliRunner
from tests.unit.docs.pages import ROOT, blocks

from kubesched.cli.main import main

COMMANDS = [
    part.partition("\n")
    for text in blocks(ROOT / "docs" / "planning.md", "console")
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]
]


@pytest.mark.parametrize(("line", "printed"), [(line, printed) for line, _, printed in COMMANDS])
def test_command_runs_and_prints_what_the_page_shows(line: str, printed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    name, *arguments = shlex.split(line)
    assert name == "kubesched"
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith(printed.partition("...")[0].rstrip()), result.stdout


def test_the_page_shows_every_kind_of_plan() -> None:
    assert {line.split()[2] for line, _, _ in COMMANDS} == {"free", "fit", "consolidate", "pool", "queue"}
