"""The recipes and the page on readiness: every command runs where the page says, and prints what the page shows."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.unit.docs.pages import ROOT, all_blocks

from kubesched.cli.main import main

PAGES = [ROOT / "docs" / "readiness.md", *sorted((ROOT / "docs" / "recipes").glob("*.md"))]
_PART = re.compile(r"^\$ ", re.MULTILINE)


def commands(text: str) -> list[tuple[str, str]]:
    """Every command of a block with what it prints, up to a line of dots."""
    parts = (part.partition("\n") for part in _PART.split(text)[1:])
    return [(line, shown.partition("...\n")[0]) for line, _, shown in parts]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_command_prints_what_the_page_shows(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "110")
    run = 0
    for language, text in all_blocks(page):
        if language == "python":
            exec(compile(text, page.name, "exec"), {"__name__": "recipe"})
            run += 1
        for line, shown in commands(text) if language == "console" else ():
            run_command(line, shown)
            run += 1
    assert run, "a recipe shows something that runs"


def run_command(line: str, shown: str) -> None:
    call, _, file = line.partition(" > ")
    name, *arguments = shlex.split(call)
    assert name == "kubesched"
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code in (0, 1), f"{line}\n{result.output}"
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert result.stdout.startswith(shown), f"{line}\n{result.stdout}"
    if file:
        Path(file).write_text(result.stdout)
