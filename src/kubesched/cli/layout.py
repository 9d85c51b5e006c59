"""Tables in which no word is ever cut: text wraps between words, and a table that is too wide becomes a list."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from rich.console import Console
from rich.text import Text

from kubesched.cli.printing import FAINT, STRONG

GAP = 3
_INDENT = "  "
_UNBROKEN = "\N{NO-BREAK SPACE}"


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
