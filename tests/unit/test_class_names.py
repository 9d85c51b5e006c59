"""One public class name, one thing: a reader who greps for a class finds one definition."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = [ROOT / "src" / "kubesched", ROOT / "sandbox" / "src" / "kubesched_sandbox"]

SHARED: dict[str, str] = {
    "Kind": "a row of the table of API kinds; for plugins, what an event is about",
    "ReplicaSet": "the scheduler's record; with its pod template, what manifests are read as",
    "StatefulSet": "likewise",
}
"""Names that stand for two things, and why."""


def definitions() -> dict[str, list[str]]:
    """Where each public class of kubesched and its sandbox is defined, by name."""
    places = defaultdict(list)
    for path in sorted(path for source in SOURCES for path in source.rglob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(str(path.relative_to(ROOT)))
    return places


def test_no_public_class_name_stands_for_two_things() -> None:
    repeated = {name: places for name, places in definitions().items() if len(places) > 1 and name not in SHARED}
    assert not repeated, "\n".join(f"{name}: {', '.join(places)}" for name, places in sorted(repeated.items()))


def test_the_list_of_shared_names_is_short_and_current() -> None:
    places = definitions()
    assert len(SHARED) <= 15
    assert [name for name in SHARED if len(places[name]) < 2] == []
