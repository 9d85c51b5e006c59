"""Tests below tests/unit start no processes and do not sleep: what does is in tests/integration."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

UNIT = Path(__file__).parent
STARTS_PROCESSES = frozenset({"subprocess", "multiprocessing", "pty"})
LONGEST_POLL = 0.05
"""Seconds that a test may wait before it looks again whether a socket or a thread is done, in real time."""
FOR_EVER = 3600
"""A sleep of so many seconds is one that the test cancels; in virtual time it ends, and nothing hangs."""


def habits_broken(source: str) -> Iterator[str]:
    """Why a file does not belong below tests/unit."""
    tree = ast.parse(source)
    imported = set(_imported(tree))
    yield from (f"imports {name}" for name in sorted(imported & STARTS_PROCESSES))
    is_virtual = any("virtual_time" in name for name in imported)
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(ast.Name("time"), "sleep"):
                yield f"line {node.lineno}: time.sleep"
            case ast.Attribute(ast.Name("asyncio"), str(name)) if name.startswith("create_subprocess"):
                yield f"line {node.lineno}: asyncio.{name}"
            case ast.Call(ast.Attribute(ast.Name("asyncio"), "sleep"), [ast.Constant(float() | int() as seconds)]):
                if LONGEST_POLL < seconds < FOR_EVER and not is_virtual:
                    yield f"line {node.lineno}: asyncio.sleep({seconds}) without tests.virtual_time"
    if "time.sleep" in imported:
        yield "imports time.sleep"


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("source", ["import subprocess", "from subprocess import run", "import time\ntime.sleep(1)"])
def test_processes_and_sleep_are_noticed(source: str) -> None:
    assert list(habits_broken(source)) != []


@pytest.mark.parametrize(
    ("source", "is_fine"),
    [
        ("import asyncio\nawait asyncio.sleep(1)", False),
        ("import asyncio\nawait asyncio.create_subprocess_exec('true')", False),
        ("from time import sleep", False),
        ("import asyncio\nfrom tests import virtual_time\nawait asyncio.sleep(1)", True),
        ("import asyncio\nfrom tests.virtual_time import run\nawait asyncio.sleep(1)", True),
        ("import asyncio\nawait asyncio.sleep(0.01)", True),
        ("import asyncio\nawait asyncio.sleep(3600)", True),
    ],
)
def test_virtual_time_and_short_polls_are_fine(source: str, is_fine: bool) -> None:
    assert (list(habits_broken(source)) == []) is is_fine


def test_no_unit_test_starts_a_process_or_sleeps() -> None:
    broken = {
        str(path.relative_to(UNIT)): found
        for path in sorted(UNIT.rglob("*.py"))
        if (found := list(habits_broken(path.read_text())))
    }
    assert broken == {}
