"""In a pipe no line of any command ends with blanks, at any width."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from kubesched.cli.main import main

ROOT = Path(__file__).parents[3]
SHOP = str(ROOT / "examples" / "shop")
COMMANDS = [
    ["explain", "-f", SHOP],
    ["explain", "-f", SHOP, "shop/search-indexer", "--nodes"],
    ["place", "-f", SHOP],
    ["simulate", "-f", SHOP],
    ["simulate", "-f", str(ROOT / "examples" / "nightly.yaml")],
    ["what-if", "-f", SHOP, "--drain", "zone=zone-a", "--upgrade", "pool=web"],
    ["what-if", "-f", SHOP, "--lose", "zone=zone-a"],
    ["check", "drain", "zone=zone-a", "-f", SHOP],
    ["test", str(ROOT / "examples" / "placement" / "tests")],
    ["plan", "free", "--nodes", "2", "-f", str(ROOT / "examples" / "planning")],
    ["plugin", "list"],
]


@pytest.mark.parametrize("columns", [60, 80, 120])
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command[:2]))
def test_no_line_ends_with_blanks(command: list[str], columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    result = CliRunner().invoke(main, command)
    assert result.exit_code in (0, 1), result.output
    lines = result.stdout.splitlines()
    assert lines
    assert [line for line in lines if line != line.rstrip()] == []
