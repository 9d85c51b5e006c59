"""Writes the table of questions in docs/library.md from docstrings: `python tools/library_page.py`."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from kubesched.library.cluster import Cluster

PAGE = Path(__file__).parents[1] / "docs" / "library.md"
BEGIN, END = "<!-- begin: from the docstrings, by tools/library_page.py -->\n", "<!-- end -->\n"
QUESTIONS = (
    "explain",
    "pending",
    "place",
    "capacity",
    "what_if",
    "compare_releases",
    "plan",
    "simulate",
    "compare",
    "save",
)
"""The methods of Cluster that the page tells of, in this order."""


def described() -> str:
    """The table, a row per question."""
    rows = ["| | |", "|---|---|"]
    for name in QUESTIONS:
        method = getattr(Cluster, name)
        parameters = [each for each in inspect.signature(method).parameters.values() if each.name != "self"]
        shown = ", ".join(f"*{each.name}" if each.kind is each.VAR_POSITIONAL else each.name for each in parameters)
        text = " ".join((inspect.getdoc(method) or "").split())
        rows.append(f"| `cluster.{name}({shown})` | {text} |")
    return "\n".join(rows) + "\n"


def page_with_table(text: str) -> str:
    """The page, with the table as it should be."""
    return re.sub(f"{re.escape(BEGIN)}.*?{re.escape(END)}", lambda _: BEGIN + described() + END, text, flags=re.DOTALL)


if __name__ == "__main__":
    PAGE.write_text(page_with_table(PAGE.read_text()))
