"""No constructor takes more than eight parameters: settings objects and assemblies are for that."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import kubesched

SOURCE = Path(kubesched.__file__).parent
MOST = 8


def long_constructors() -> Iterator[str]:
    """By file and class. Dataclasses and records write theirs themselves, field by field."""
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            methods = node.body if isinstance(node, ast.ClassDef) else ()
            for method in methods:
                if isinstance(method, ast.FunctionDef) and method.name == "__init__":
                    args = method.args
                    count = len(args.posonlyargs) + len(args.args) + len(args.kwonlyargs) - 1
                    if count > MOST and isinstance(node, ast.ClassDef):
                        yield f"{path.relative_to(SOURCE).as_posix()}: {node.name} has {count}"


def test_no_constructor_has_more_than_eight_parameters() -> None:
    assert list(long_constructors()) == []
