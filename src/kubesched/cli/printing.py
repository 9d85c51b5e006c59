"""How output looks on a terminal and in a pipe: tables without frills, and a progress bar.

As wide as COLUMNS says; else at most 120 columns on a terminal, and 110 in a pipe.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import click
import yaml
from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

WIDEST = 120
PIPED = 110

GOOD = "green"
BAD = "red"
FAINT = "bright_black"
STRONG = "bold"


def console() -> Console:
    """A console that prints what it is given: no markup, no guesses at colours."""
    made = Console(markup=False, highlight=False, emoji=False)
    if not os.environ.get("COLUMNS", "").isdigit():  # who says how wide it is to be means it
        made.width = min(made.width, WIDEST) if made.is_terminal else PIPED
    return made


def table(*columns: str, right: Sequence[str] = (), wrap: Sequence[str] = ()) -> Table:
    """A table with these headings; those in `right` are numbers. The last column, and those in `wrap`, may be long."""
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style=STRONG, show_edge=False)
    for column in columns:
        may_wrap = column == columns[-1] or column in wrap
        made.add_column(
            Text(column),
            justify="right" if column in right else "left",
            vertical="top",
            no_wrap=not may_wrap,
            overflow="fold",
        )
    return made


def print_rows(out: Console, rows: Table, more: int = 0, flag: str = "--all-pods") -> None:
    """A table below what was printed before, and how many rows were left out of it."""
    out.print()
    out.print(rows)
    if more > 0:
        out.print(heading(f"... and {more} more ({flag} shows them)"))


def heading(text: str) -> Text:
    return Text(text, style=STRONG)


def print_plain(value: Any, output: str = "json") -> None:
    """Dictionaries, lists and scalars as JSON or YAML."""
    if output == "yaml":
        click.echo(yaml.dump(value, Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper), sort_keys=False), nl=False)
    else:
        click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def bar(share: float, width: int = 20) -> Text:
    """A bar that is full at 1, with the percentage behind it."""
    eighths = round(min(max(share, 0.0), 1.0) * width * 8)
    filled = "█" * (eighths // 8) + (" ▏▎▍▌▋▊▉"[eighths % 8] if eighths % 8 else "")
    style = BAD if share > 0.9 else GOOD
    return Text.assemble((filled.ljust(width, "·"), style), f" {share:4.0%}")


def print_skipped(out: Console, skipped: Mapping[str, int]) -> None:
    """Which objects of the input played no part."""
    if skipped:
        kinds = ", ".join(f"{count} {kind}" for kind, count in skipped.items())
        out.print()
        out.print(Text(f"Not read, as scheduling does not look at them: {kinds}", style=FAINT))


EVERY = 200
"""Steps between two looks at the bar."""


@contextmanager
def progress_bar(what: str, every: int = EVERY) -> Iterator[Callable[[int, int | None], None] | None]:
    """Something to call with the steps done and all there are, if known; None if standard error is no terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(what, total=None)
        calls = 0

        def update(done: int, total: int | None) -> None:
            nonlocal calls
            calls += 1
            if calls % every == 0:
                progress.update(task, completed=done, total=total)

        yield update
