"""The page on plugins shows the files of the example, the example works, and it can be installed."""

from __future__ import annotations

import re
import runpy
import shlex
import tomllib
from importlib import import_module
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.installed_plugin import install_plugin
from tests.unit.docs.pages import ROOT, blocks

from kubesched.cli.main import main
from kubesched.framework.plugin import Plugin
from kubesched.framework.registry import ENTRY_POINT_GROUP

EXAMPLE = ROOT / "examples" / "plugins"
TESTS = EXAMPLE / "tests" / "test_example_plugins.py"
PLUGINS = ROOT / "docs" / "writing-a-plugin.md"
PAGE = PLUGINS.read_text()

LISTING = re.compile(r"^`(?P<path>examples/\S+)`:\n\n```\w+\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(autouse=True)
def _example_on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLE / "src"))


def test_the_page_shows_every_file_as_it_is() -> None:
    shown = {ROOT / listing["path"]: listing["text"] for listing in LISTING.finditer(PAGE)}
    assert shown == {path: path.read_text() for path in shown}
    plugins = {path for path in (EXAMPLE / "src" / "example_plugins").glob("*.py") if path.name != "__init__.py"}
    assert set(shown) == plugins | {TESTS, EXAMPLE / "pyproject.toml", EXAMPLE / "scheduler.yaml"}


def test_the_page_shows_what_explain_prints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for target in entry_points_of_the_example():
        module, _, name = target.partition(":")
        install_plugin(tmp_path, monkeypatch, f"from {module} import {name}\n", name=name)
    [shown] = [text for text in blocks(PLUGINS, "console") if "explain" in text]
    _, command, *output = shown.splitlines()
    monkeypatch.chdir(ROOT)
    result = CliRunner().invoke(main, shlex.split(command)[2:])
    assert [line.rstrip() for line in result.stdout.splitlines()] == output
    assert "CheapNodes" in result.stdout
    assert "had noisy neighbours" in result.stdout


@pytest.mark.parametrize("name", re.findall(r"^def (test_\w+)", TESTS.read_text(), re.MULTILINE))
def test_the_tests_of_the_example_pass(name: str) -> None:
    runpy.run_path(str(TESTS))[name]()


def entry_points_of_the_example() -> list[str]:
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    return list(project["entry-points"][ENTRY_POINT_GROUP].values())


def test_the_entry_points_lead_to_plugins() -> None:
    for target in entry_points_of_the_example():
        module, _, name = target.partition(":")
        assert issubclass(getattr(import_module(module), name), Plugin)
