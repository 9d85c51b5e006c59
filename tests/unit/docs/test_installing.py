"""No page, example or message tells people to install from where nothing is."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from tests.unit.docs.pages import PAGES, ROOT

PUBLISHED: set[str] = set()
"""Where a release can be installed from: none yet. Of "PyPI", "registry", "krew", "homebrew"."""

_OPTION = r"""(?:[ ]+-(?:r|c|-with|-python)[ ]+\S+|[ ]+-[\w-]+(?:=\S+)?)*"""
_KUBESCHED = r"""[ ]+["']?kubesched(?:-sandbox)?(?:\[[\w,]+\])?(?:[=<>~!]=?[\w.]+)?["']?(?![\w./@-]|[ ]+@)"""
_WORDS = r"""(?:[ ]+(?!&&|;|\|)["']?[\w.\[\],/=-]+["']?)*?"""
COMMANDS = {
    "PyPI": rf"\b(?:pip3?|pipx|uv tool) +(?:install|run|download){_OPTION}{_WORDS}{_KUBESCHED}"
    rf"|\buvx{_OPTION}{_KUBESCHED}|\buv add{_KUBESCHED}|\buvx --from{_KUBESCHED}",
    "registry": r"docker (?:pull|run)[^\n`]*\bghcr\.io/[\w-]+/kubesched|\bimage: *ghcr\.io/[\w-]+/kubesched"
    r"|helm repo add kubesched|\boci://[^\s`]*kubesched",
    "krew": r"kubectl krew install sched\b",
    "homebrew": r"brew install \S*kubesched\b",
}
TEXTS = [
    *PAGES,
    ROOT / "sandbox" / "README.md",
    ROOT / "action.yml",
    *(
        file
        for folder in ("examples", "deploy", "src", "sandbox/src")
        for file in sorted((ROOT / folder).rglob("*"))
        if file.is_file() and file.suffix in {".md", ".py", ".yaml", ".yml", ".ipynb", ".toml", ".j2", ".html", ".txt"}
    ),
]


def wrong_in(text: str) -> list[str]:
    """Commands that install from where there is no release, whatever quotes a notebook puts around them."""
    text = text.replace("\\n", "\n").replace('\\"', '"')
    return [
        found[0].strip()
        for place, pattern in COMMANDS.items()
        if place not in PUBLISHED
        for found in re.finditer(pattern, text)
    ]


@pytest.mark.parametrize(
    "text",
    [
        "pip install kubesched",
        "$ pip install --upgrade 'kubesched[mcp]'",
        "python -m pip install kubesched==0.1.0",
        "!pip install -q numpy kubesched",
        "pipx install kubesched",
        "pipx run kubesched explain",
        "uvx kubesched explain",
        "uv tool install kubesched --with kubesched-sandbox",
        "pip install kubesched-sandbox",
        "kubectl krew install sched",
        "brew install kubesched/tap/kubesched",
        "docker run ghcr.io/kubesched/kubesched:v0.1.0",
        '"source": ["!pip install kubesched\\n"]',
    ],
)
def test_a_command_that_finds_nothing_is_seen(text: str) -> None:
    assert wrong_in(text)


@pytest.mark.parametrize(
    "text",
    [
        "pip install . ./sandbox",
        "pip install -e '.[mcp]'",
        "pipx install . and `pipx inject kubesched ./sandbox`",
        "pip install ./kubesched",
        "pip install kubesched-0.1.0-py3-none-any.whl",
        'pip install "kubesched @ git+https://github.com/kubesched/kubesched@main"',
        "helm install kubesched deploy/helm/kubesched",
        "pip install ./examples/plugins && kubesched config check scheduler.yaml",
        "pip install -e .\nkubesched config check scheduler.yaml",
    ],
)
def test_a_command_that_installs_from_a_checkout_is_fine(text: str) -> None:
    assert wrong_in(text) == []


def test_nobody_is_sent_to_where_nothing_is() -> None:
    wrong = {str(file.relative_to(ROOT)): wrong_in(file.read_text()) for file in TEXTS}
    assert {name: commands for name, commands in wrong.items() if commands} == {}


def test_the_page_has_every_extra() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    page = (ROOT / "docs" / "installing.md").read_text()
    assert set(re.findall(r"`\.\[(\w+)\]`", page)) == set(project["optional-dependencies"])


def test_every_extra_that_is_imported_is_declared() -> None:
    """What only an extra brings is imported by the packages that say so where it is missing, and nowhere else."""
    optional = {"highspy", "mcp", "uvicorn", "matplotlib", "ipykernel", "nbconvert"}
    importing = {
        str(file.relative_to(ROOT / "src" / "kubesched")): set(found)
        for file in (ROOT / "src" / "kubesched").rglob("*.py")
        if (found := set(re.findall(r"^\s*(?:from|import) (\w+)", file.read_text(), re.MULTILINE)) & optional)
    }
    assert importing
    allowed = {"cli/mcp.py", "planning/solver.py"}
    assert all(Path(name).parts[0] == "mcp" or name in allowed for name in importing), importing
