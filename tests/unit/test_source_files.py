"""Every source file has at most 400 lines, and its first line says what it is for."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = ("src", "sandbox/src", "bench", "soak", "tools", "e2e", "examples")
MOST_LINES = 400


def mistakes_of(text: str) -> Iterator[str]:
    """What is wrong with a file. An empty one, such as an `__init__.py`, needs no first line."""
    if (count := len(text.splitlines())) > MOST_LINES:
        yield f"{count} lines"
    if text.strip() and not ast.get_docstring(ast.parse(text)):
        yield "no docstring"


@pytest.mark.parametrize(
    ("text", "mistakes"),
    [
        ('"""Filters."""\n' + "\n" * 400, ["401 lines"]),
        ('"""Filters."""\n' + "\n" * 399, []),
        ("import os\n", ["no docstring"]),
        ("", []),
    ],
)
def test_long_files_and_files_without_a_docstring_are_noticed(text: str, mistakes: list[str]) -> None:
    assert list(mistakes_of(text)) == mistakes


def test_source_files_are_short_and_say_what_they_are_for() -> None:
    files = [path for folder in SOURCES for path in sorted((ROOT / folder).rglob("*.py"))]
    assert len(files) > 500
    wrong = {str(path.relative_to(ROOT)): found for path in files if (found := list(mistakes_of(path.read_text())))}
    assert wrong == {}
