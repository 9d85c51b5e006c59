"""`make mutants`: takes away one guard of tests/guards.toml at a time, and sees whether a test notices.

Each guard is a place in the code that keeps a promise of docs/reliability.md: the text with it, the text without it,
and the tests that must fail then. The tree is copied, so nothing of it is changed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
LIST = ROOT / "tests/guards.toml"
LONGEST = 300.0
"""Seconds. What takes longer without its guard would not end: in virtual time nothing else takes so long."""
_COPIED = ("src", "sandbox", "tests", "soak", "bench", "tools", "docs", "deploy", "pyproject.toml")


class Guard(NamedTuple):
    """One guard, and how to take it away."""

    promise: str
    file: str
    guarded: str
    unguarded: str
    tests: list[str]


def guards(only: str = "") -> list[Guard]:
    """Those of the list whose promise contains the words."""
    listed = tomllib.loads(LIST.read_text())["guard"]
    return [guard for guard in (Guard(**entry) for entry in listed) if only in guard.promise]


def mistakes_in(listed: Iterable[Guard], root: Path = ROOT) -> Iterator[str]:
    """Guards that are no longer where the list says: the list has to follow the code."""
    for guard in listed:
        found = (root / guard.file).read_text().count(guard.guarded)
        if found != 1:
            yield f'"{guard.promise}": its text is {found} times in {guard.file}, expected once'
        yield from (
            f'"{guard.promise}": no {test}' for test in guard.tests if not (root / test.partition("::")[0]).exists()
        )


def is_noticed(guard: Guard, tree: Path) -> bool:
    """Whether the tests of the guard fail without it."""
    with _without(guard, tree):
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *guard.tests]
        environ = {**os.environ, "PYTHONPATH": f"{tree / 'src'}{os.pathsep}{tree / 'sandbox/src'}"}
        try:
            ended = subprocess.run(
                command, cwd=tree, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=LONGEST
            )
        except subprocess.TimeoutExpired:
            return True
        if ended.returncode not in (0, 1):
            raise SystemExit(f'"{guard.promise}": its tests could not be run: {" ".join(command)}')
        return ended.returncode == 1


@contextmanager
def _without(guard: Guard, tree: Path) -> Iterator[None]:
    file = tree / guard.file
    text = file.read_text()
    file.write_text(text.replace(guard.guarded, guard.unguarded))
    try:
        yield
    finally:
        file.write_text(text)


def main(only: str) -> int:
    """The exit code: 1 if a guard is not held by any test."""
    listed = guards(only)
    if mistakes := list(mistakes_in(listed)):
        print("\n".join(mistakes))
        return 1
    missed = 0
    with tempfile.TemporaryDirectory(prefix="kubesched-mutants-") as directory:
        tree = Path(directory)
        for name in _COPIED:
            source = ROOT / name
            (shutil.copytree if source.is_dir() else shutil.copy)(source, tree / name)
        for guard in listed:
            noticed = is_noticed(guard, tree)
            missed += not noticed
            print(f"{'ok  ' if noticed else 'MISS'} {guard.promise}", flush=True)
    print(f"{len(listed)} guards, {missed} of them held by no test")
    return 1 if missed else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python tools/mutants.py", description=__doc__)
    parser.add_argument("only", nargs="?", default="", help="guards whose promise contains this")
    sys.exit(main(parser.parse_args().only))
