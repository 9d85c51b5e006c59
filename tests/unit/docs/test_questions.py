"""The pages on what-if, upgrades and placement tests: their commands and Python run, their tables are complete."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import msgspec
import pytest
import yaml
from click.testing import CliRunner
from tests.unit.docs.pages import ROOT, blocks

from kubesched.api.schema import convert
from kubesched.ask.placement_tests.case import CaseContent, Expectation
from kubesched.cli.main import main

WHAT_IF, TESTING = ROOT / "docs" / "what-if.md", ROOT / "docs" / "testing-placement.md"
UPGRADING = ROOT / "docs" / "upgrading.md"


@pytest.fixture
def in_a_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The examples, where a command may write."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)


def lines_of(page: Path) -> list[tuple[str, str]]:
    """Every command of a page, with what the page says it prints."""
    found: list[tuple[str, str]] = []
    for text in blocks(page, "console"):
        for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
            line, _, printed = part.partition("\n")
            found.append((line, printed))
    return found


@pytest.mark.usefixtures("in_a_copy")
@pytest.mark.parametrize(
    ("page", "count"), [(WHAT_IF, 9), (UPGRADING, 5), (TESTING, 4)], ids=["what-if", "upgrading", "testing-placement"]
)
def test_every_command_runs_and_prints_what_the_page_shows(page: Path, count: int) -> None:
    commands = lines_of(page)
    assert len(commands) == count
    for line, printed in commands:
        name, *arguments = shlex.split(line.partition(" > ")[0])
        assert name == "kubesched"
        result = CliRunner().invoke(main, arguments)
        assert result.exit_code == 0, f"{line}\n{result.output}"
        assert result.stdout.startswith(printed.partition("...")[0]), result.stdout


@pytest.mark.usefixtures("in_a_copy")
def test_the_python_runs() -> None:
    [text] = blocks(TESTING, "python")
    names: dict[str, object] = {}
    exec(text, names)
    tests = [function for name, function in names.items() if name.startswith("test_")]
    assert len(tests) == 3
    for function in tests:
        function()  # type: ignore[operator]


def test_the_case_can_be_read_and_all_expectations_are_listed() -> None:
    case, _ = (yaml.safe_load(text) for text in blocks(TESTING, "yaml"))
    content, mistakes = convert(case, CaseContent, unknown="error")
    assert content is not None, mistakes
    listed = set(re.findall(r"^\| `(\w+): ", TESTING.read_text(), re.MULTILINE))
    fields = {field.encode_name for field in msgspec.structs.fields(Expectation)}
    assert listed == fields - {"pods", "namespace", "name"}


def test_the_workflow_gives_the_action_inputs_that_it_has() -> None:
    _, workflow = (yaml.safe_load(text) for text in blocks(TESTING, "yaml"))
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    [given] = [step["with"] for step in workflow["jobs"]["placement"]["steps"] if "kubesched" in step["uses"]]
    required = {name for name, each in action["inputs"].items() if each.get("required")}
    assert required <= set(given) <= set(action["inputs"])
