"""The page on plugins shows the files of the example, the example works, and it can be installed."""

from __future__ import annotations

import re
import runpy
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

from kubesched.framework.plugin import Plugin
from kubesched.framework.registry import ENTRY_POINT_GROUP

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "plugins"
TESTS = EXAMPLE / "tests" / "test_example_plugins.py"
PAGE = (ROOT / "docs" / "writing-a-plugin.md").read_text()

LISTING = re.compile(r"^`(?P<path>examples/\S+)`:\n\n```\w+\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(autouse=True)
def _example_on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLE / "src"))


def test_the_page_shows_every_file_as_it_is() -> None:
    shown = {ROOT / listing["path"]: listing["text"] for listing in LISTING.finditer(PAGE)}
    assert shown == {path: path.read_text() for path in shown}
    plugins = {path for path in (EXAMPLE / "src" / "example_plugins").glob("*.py") if path.name != "__init__.py"}
    assert set(shown) == plugins | {TESTS, EXAMPLE / "pyproject.toml", EXAMPLE / "scheduler.yaml"}


@pytest.mark.parametrize("name", re.findall(r"^def (test_\w+)", TESTS.read_text(), re.MULTILINE))
def test_the_tests_of_the_example_pass(name: str) -> None:
    runpy.run_path(str(TESTS))[name]()


def test_the_entry_points_lead_to_plugins() -> None:
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    for target in project["entry-points"][ENTRY_POINT_GROUP].values():
        module, _, name = target.partition(":")
        assert issubclass(getattr(import_module(module), name), Plugin)
