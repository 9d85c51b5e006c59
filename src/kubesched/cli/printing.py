"""How output looks on a terminal and in a pipe: paragraphs, headings, bars, documents; tables are in `grid.py`.

As wide as COLUMNS says; else at most 120 columns on a terminal, and 110 in a pipe.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import click
import yaml
from rich.console import Console
from rich.text import Text

from kubesched.cli.grid import STRONG, Cell, Grid, unbroken, wrap

WIDEST = 120
PIPED = 110

GOOD = "green"
BAD = "red"
FAINT = "bright_black"

TEXT = "text"
DOCUMENTS = ("json", "yaml")
F = TypeVar("F", bound=Callable[..., Any])


def output_option(*formats: str) -> Callable[[F], F]:
    """`-o`: text for people by default, documents for programs, and whatever else the command has."""
    return click.option(
        "-o",
        "--output",
        type=click.Choice([TEXT, *DOCUMENTS, *formats]),
        default=TEXT,
        show_default=True,
        help="Output format.",
    )


def console() -> Console:
    """A console that prints what it is given: no markup, no guesses at colours."""
    out = Console(markup=False, highlight=False, emoji=False)
    if not os.environ.get("COLUMNS", "").isdigit():  # a width that the user set is kept
        out.width = min(out.width, WIDEST) if out.is_terminal else PIPED
    return out


def print_rows(out: Console, rows: Grid, more: int = 0, flag: str = "--all-pods") -> None:
    """A table below what was printed before, and how many rows were left out of it."""
    out.print()
    rows.print(out)
    if more > 0:
        paragraph(out, f"... and {more} more ({flag} shows them)", STRONG)


def heading(text: str) -> Text:
    return Text(text, style=STRONG)


def print_plain(value: Any, output: str = "json") -> None:
    """Dictionaries, lists and scalars as JSON or YAML."""
    if output == "yaml":
        click.echo(yaml.dump(value, Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper), sort_keys=False), nl=False)
    else:
        click.echo(json.dumps(value, indent=2, ensure_ascii=False))


BARS = (20, 12, 8, 5, 0)
"""Lengths of bars, the longest that a table has room for is taken."""


def with_bars(filled: Callable[[int], Grid], width: int, longest: int = BARS[0]) -> Grid:
    """A table with bars as long as there is room for; `filled` makes one with bars of a length."""
    lengths = [length for length in BARS if length <= longest]
    tables = map(filled, lengths)
    return next((table for table in tables if table.narrowest() <= width), filled(lengths[-2]))


def bar(share: float, width: int = BARS[0]) -> Text:
    """A bar that is full at 1, with the percentage behind it; the percentage alone if the bar has no length."""
    eighths = round(min(max(share, 0.0), 1.0) * width * 8)
    filled = "█" * (eighths // 8) + ("▏▎▍▌▋▊▉"[eighths % 8 - 1] if eighths % 8 else "")
    style = BAD if share > 0.9 else GOOD
    return Text.assemble((filled.ljust(width, "·"), style), unbroken(f" {share:4.0%}") if width else f"{share:.0%}")


def print_counts(
    out: Console, titles: tuple[str, str], counts: Mapping[str, int], most: int | None = None, flag: str = "--all-pods"
) -> None:
    """A row for each name with its number; with `most`, of the first ones."""
    rows = Grid(titles, right=(1,))
    for name, count in list(counts.items())[:most]:
        rows.add(name, str(count))
    print_rows(out, rows, len(counts) - (most or len(counts)), flag)


def print_skipped(out: Console, skipped: Mapping[str, int]) -> None:
    """Which objects of the input played no part."""
    if skipped:
        kinds = ", ".join(f"{count} {kind}" for kind, count in skipped.items())
        out.print()
        note(out, f"Not read, as scheduling does not look at them: {kinds}")


EVERY = 200
"""Steps between two looks at the bar."""


@contextmanager
def progress_bar(title: str, every: int = EVERY) -> Iterator[Callable[[int, int | None], None] | None]:
    """Something to call with the steps done and all there are, if known; None if standard error is no terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(title, total=None)
        calls = 0

        def update(done: int, total: int | None) -> None:
            nonlocal calls
            calls += 1
            if calls % every == 0:
                progress.update(task, completed=done, total=total)

        yield update


def paragraph(out: Console, text: Cell, style: str = "", *, first: str = "", rest: str = "") -> None:
    """Wrapped text, whole words only; `first` and `rest` begin its lines."""
    for i, line in enumerate(wrap(text, out.width - max(len(first), len(rest)))):
        out.print(Text.assemble(rest if i else first, line, style=style), soft_wrap=True)


def note(out: Console, text: str) -> None:
    """A remark at the foot of something."""
    paragraph(out, text, FAINT)
