"""The pages of documentation, taken apart: blocks, code in the text, links, and the command lines in all of them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[3]
PAGES = (*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md")), ROOT / "deploy" / "README.md")

_BLOCK = re.compile(r"^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"`([^`]+)`")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_COMMAND = re.compile(r"(?:^|[|$] )(kubesched .+)")


class Command(NamedTuple):
    """A call of kubesched, and where it stands."""

    page: str
    arguments: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.page}: kubesched {' '.join(self.arguments)}"


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def all_blocks(page: Path) -> list[tuple[str, str]]:
    """Their languages and texts, in the order of the page."""
    return [(block["language"], block["text"]) for block in _BLOCK.finditer(page.read_text())]


def blocks(page: Path, language: str) -> list[str]:
    return [text for its_language, text in all_blocks(page) if its_language == language]


def spans(page: Path) -> list[str]:
    """What is set as code within sentences and tables."""
    prose = _BLOCK.sub("", page.read_text())
    return [" ".join(span.replace("\\|", "|").split()) for span in _SPAN.findall(prose)]


def links(page: Path) -> list[str]:
    """Where the page leads within the repository: a path, a #heading, or both."""
    found = _LINK.findall(_BLOCK.sub("", page.read_text()))
    return [link for link in found if "://" not in link]


def anchors(page: Path) -> set[str]:
    """What its headings can be linked by."""
    headings = _HEADING.findall(_BLOCK.sub("", page.read_text()))
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def commands() -> Iterator[Command]:
    """Every call of kubesched on any page, in a console or in a sentence."""
    for page in PAGES:
        lines = [line for text in blocks(page, "console") for line in text.replace("\\\n", " ").splitlines()]
        for text in (*lines, *spans(page)):
            found = _COMMAND.search(text)
            if found is not None:
                words = shlex.split(found[1].partition(" > ")[0], comments=True)
                yield Command(name_of(page), tuple(words[1:]))
