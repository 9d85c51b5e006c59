"""Pages and examples import only what is promised: `kubesched`, `kubesched.plugin`, `kubesched.testing`."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.docs.pages import PAGES, ROOT, blocks, name_of

PROMISED = {"kubesched", "kubesched.plugin", "kubesched.testing"}
EXAMPLES = ROOT / "examples"
_PLACEHOLDER = re.compile(r"\{\{.*?\}\}")
TEMPLATES = ROOT / "src" / "kubesched" / "cli" / "new_plugin"


def reached_for(source: str) -> Iterator[str]:
    """Modules of kubesched that a piece of code imports, and that are not promised."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names):
                modules = [alias.name for alias in names]
            case ast.ImportFrom(module=str(module)):
                modules = [module]
            case _:
                continue
        yield from (name for name in modules if name.split(".")[0] == "kubesched" and name not in PROMISED)


def notebook_code(path: Path) -> str:
    cells = json.loads(path.read_text())["cells"]
    lines = [line for cell in cells if cell["cell_type"] == "code" for line in "".join(cell["source"]).splitlines()]
    return "\n".join(line for line in lines if not line.startswith(("%", "!")))


@pytest.mark.parametrize("source", ["from kubesched.framework.nodes import Nodes", "import kubesched.state.cluster"])
def test_other_modules_are_noticed(source: str) -> None:
    assert list(reached_for(source)) != []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_page_imports_what_is_promised(page: Path) -> None:
    assert [name for block in blocks(page, "python") for name in reached_for(block)] == []


def test_examples_and_templates_import_what_is_promised() -> None:
    codes = [path.read_text() for path in EXAMPLES.rglob("*.py")]
    codes += [_PLACEHOLDER.sub("name", path.read_text()) for path in TEMPLATES.glob("*.py.j2")]
    codes += [notebook_code(path) for path in EXAMPLES.rglob("*.ipynb")]
    assert len(codes) > 5
    assert [name for code in codes for name in reached_for(code)] == []
