"""Every command of the page runs, and prints what the page shows of it; the example in Python runs, too."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import pytest
from click.testing import CliRunner
from tests.unit.docs.pages import ROOT, blocks

from kubesched.cli.main import main

PAGE = ROOT / "docs" / "why-pending.md"


def examples() -> Iterator[tuple[str, list[str]]]:
    """Each command with the lines that are shown below it."""
    for block in blocks(PAGE, "console"):
        for part in block.split("$ ")[1:]:
            command, *shown = part.splitlines()
            yield command, shown


@pytest.mark.parametrize(("command", "shown"), list(examples()), ids=lambda part: part if isinstance(part, str) else "")
def test_the_command_prints_what_the_page_shows(
    command: str, shown: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    result = CliRunner().invoke(main, shlex.split(command)[1:])
    assert result.exit_code == 0, result.output
    printed = "\n".join(line.rstrip() for line in result.stdout.splitlines())
    parts = [part.strip("\n") for part in f"\n{chr(10).join(shown)}\n".split("\n...\n")]
    for part in filter(None, parts):
        _, found, printed = printed.partition(part)
        assert found, part


def test_the_example_in_python_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(ROOT)
    (example,) = blocks(PAGE, "python")
    exec(example, {})
    assert "Request 7 less cpu: 5 instead of 12 -> spot-c1" in capsys.readouterr().out.splitlines()
