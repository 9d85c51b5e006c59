"""No constructor takes more than eight parameters: settings objects and assemblies are for that."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SOURCES = [ROOT / "src" / "kubesched", ROOT / "sandbox" / "src" / "kubesched_sandbox"]
MOST = 8


def long_constructors(trees: Iterable[ast.AST]) -> Iterator[str]:
    """By class. A frozen dataclass is data, settings or an answer: its fields are its schema, and are not counted."""
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and (count := _parameters(node)) > MOST:
                yield f"{node.name} has {count}"


def _parameters(node: ast.ClassDef) -> int:
    for method in node.body:
        if isinstance(method, ast.FunctionDef) and method.name == "__init__":
            args = method.args
            return len(args.posonlyargs) + len(args.args) + len(args.kwonlyargs) - 1
    decorators = [ast.unparse(decorator) for decorator in node.decorator_list]
    if any(text.startswith("dataclass") and "frozen=True" not in text for text in decorators):
        return sum(isinstance(field, ast.AnnAssign) and _is_required(field) for field in node.body)
    return 0


def _is_required(field: ast.AnnAssign) -> bool:
    if "ClassVar" in ast.unparse(field.annotation):
        return False
    if isinstance(field.value, ast.Call) and ast.unparse(field.value.func) == "field":
        return not {"default", "default_factory", "init"} & {keyword.arg for keyword in field.value.keywords}
    return field.value is None


def test_no_constructor_has_more_than_eight_parameters() -> None:
    files = [path for source in SOURCES for path in sorted(source.rglob("*.py"))]
    assert list(long_constructors(ast.parse(path.read_text()) for path in files)) == []


FIELDS = "\n".join(f"    {letter}: int" for letter in "abcdefghi")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("class A:\n    def __init__(self, b, c, d, e, f, g, h, *, i, j): pass", ["A has 9"]),
        ("class A:\n    def __init__(self, b, c, d, e, f, g, h, *, i): pass", []),
        (f"@dataclass(eq=False)\nclass A:\n{FIELDS}", ["A has 9"]),
        (f"@dataclass(frozen=True)\nclass A:\n{FIELDS}", []),
        (f"@dataclass\nclass A:\n{FIELDS} = 0", []),
        (f"@dataclass\nclass A:\n{FIELDS} = field(default=0)", []),
        (f"@dataclass\nclass A:\n{FIELDS} = field(repr=False)", ["A has 9"]),
    ],
)
def test_parameters_are_counted(text: str, found: list[str]) -> None:
    assert list(long_constructors([ast.parse(text)])) == found
