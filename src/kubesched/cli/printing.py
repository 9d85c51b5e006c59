"""How output looks on a terminal and in a pipe: tables, paragraphs and grids without frills, a progress bar.

As wide as COLUMNS says; else at most 120 columns on a terminal, and 110 in a pipe.
"""

from __future__ import annotations

import json
import os
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
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
GAP = 3
_INDENT = "  "
_UNBROKEN = "\N{NO-BREAK SPACE}"


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


def unbroken(text: str) -> str:
    """A cell, or part of one, that stays in one line."""
    return text.replace(" ", _UNBROKEN)


@dataclass
class Grid:
    """Rows of cells under headings. A cell may have several lines; those of columns in `right` are numbers."""

    headings: Sequence[str]
    right: Sequence[int] = ()
    rows: list[tuple[tuple[str, ...], str]] = field(default_factory=list)
    """Cells with the style of the row."""

    def add(self, *cells: str, style: str = "") -> None:
        self.rows.append((cells, style))

    def narrowest(self) -> int:
        """How wide it must be so that no word is cut."""
        return sum(map(self._longest_word, self._columns())) + GAP * (len(self.headings) - 1)

    def print(self, out: Console) -> None:
        lines = self._table(out.width) if self.narrowest() <= out.width else self._list(out.width)
        for line in lines:
            line.rstrip()
            out.print(line, soft_wrap=True)

    # -- as a table ---------------------------------------------------------------------------------------------------

    def _columns(self) -> list[list[str]]:
        return [[self.headings[i], *(cells[i] for cells, _ in self.rows)] for i in range(len(self.headings))]

    def _longest_word(self, column: Sequence[str]) -> int:
        return max(len(word) for cell in column for line in cell.split("\n") for word in line.split(" "))

    def _widths(self, most: int) -> list[int]:
        """As wide as their longest lines; where that is too much, the widest give way first."""
        columns = self._columns()
        least = [self._longest_word(column) for column in columns]
        widths = [max(len(line) for cell in column for line in cell.split("\n")) for column in columns]
        room = most - GAP * (len(widths) - 1)
        while sum(widths) > room:
            i = max((i for i in range(len(widths)) if widths[i] > least[i]), key=widths.__getitem__)
            widths[i] -= 1
        return widths

    def _table(self, most: int) -> Iterator[Text]:
        widths = self._widths(most)
        if any(self.headings):
            yield from self._row(self.headings, widths, STRONG, bottom=True)
            yield Text("─" * (sum(widths) + GAP * (len(widths) - 1)))
        for cells, style in self.rows:
            yield from self._row(cells, widths, style)

    def _row(self, cells: Sequence[str], widths: Sequence[int], style: str, *, bottom: bool = False) -> Iterator[Text]:
        wrapped = [wrap(cell, width) for cell, width in zip(cells, widths)]
        height = max(map(len, wrapped))
        for i, lines in enumerate(wrapped):
            missing = [""] * (height - len(lines))
            wrapped[i] = [*missing, *lines] if bottom else [*lines, *missing]
        for line in zip(*wrapped):
            parts = [
                part.rjust(width) if i in self.right else part.ljust(width)
                for i, (part, width) in enumerate(zip(line, widths))
            ]
            yield Text((" " * GAP).join(parts).replace(_UNBROKEN, " "), style=style)

    # -- as a list ----------------------------------------------------------------------------------------------------

    def _list(self, most: int) -> Iterator[Text]:
        """Each row a paragraph: the first cell, and the others below it with their headings."""
        for cells, style in self.rows:
            if cells[0]:
                yield Text(cells[0], style=style or STRONG)
            for heading, cell in zip(self.headings[1:], cells[1:]):
                if cell:
                    label = f"{' '.join(heading.split())}: " if heading else ""
                    for line in wrap(label + cell, max(most - len(_INDENT), 20)):
                        yield Text((_INDENT + line).replace(_UNBROKEN, " "), style=style)


def wrap(text: str, width: int) -> list[str]:
    """The lines of a text, none of them with a word that is cut."""
    lines = [
        line
        for part in text.split("\n")
        for line in textwrap.wrap(part, max(width, 1), break_long_words=False, break_on_hyphens=False) or [""]
    ]
    return lines or [""]


def paragraph(out: Console, text: str, style: str = "", *, first: str = "", rest: str = "") -> None:
    """Wrapped text, whole words only; `first` and `rest` begin its lines."""
    lines = wrap(text, out.width - max(len(first), len(rest)))
    for i, line in enumerate(lines):
        out.print(Text((rest if i else first) + line, style=style), soft_wrap=True)


def note(out: Console, text: str) -> None:
    """A remark at the foot of something."""
    paragraph(out, text, FAINT)
