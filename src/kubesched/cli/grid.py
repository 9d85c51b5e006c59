"""The one table of all commands: rows of cells under headings, or records below each other where a table is too wide.

No name, no heading and no number is ever cut: a word that is longer than the line runs over its end.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from rich.console import Console
from rich.text import Text

STRONG = "bold"
GAPS = (3, 2)
"""Blanks between columns; fewer only where there would be no room for a table."""
READABLE = 24
"""Columns that a sentence gets at least: in fewer it would be a word or two per line."""
_INDENT = "  "
_UNBROKEN = "\N{NO-BREAK SPACE}"
_BLANKS = str.maketrans("\t\v\f\r", "    ")

Cell = str | Text


def unbroken(text: str) -> str:
    """A cell, or part of one, that stays in one line."""
    return text.replace(" ", _UNBROKEN)


def wrap(cell: Cell, width: int) -> list[Text]:
    """The lines of a cell, none of them with a word that is cut; each keeps its styles."""
    lines: list[Text] = []
    for part in _text(cell).split("\n", allow_blank=True):
        part.plain = part.plain.translate(_BLANKS)
        begin = 0
        for line in textwrap.wrap(part.plain, max(width, 1), break_long_words=False, break_on_hyphens=False) or [""]:
            begin = part.plain.index(line, begin)
            lines.append(part[begin : begin + len(line)])
            begin += len(line)
    return lines or [Text()]


@dataclass
class Grid:
    """A cell may have several lines, and styles of its own; those of columns in `right` are numbers.

    With `spaced` an empty line divides rows.
    """

    headings: Sequence[str]
    right: Sequence[int] = ()
    spaced: bool = False
    rows: list[tuple[tuple[Text, ...], str]] = field(default_factory=list)
    """Cells with the style of the row."""

    def add(self, *cells: Cell, style: str = "") -> None:
        self.rows.append((tuple(map(_text, cells)), style))

    def narrowest(self, gap: int = GAPS[-1]) -> int:
        """How wide it must be so that no word is cut, and sentences can be read."""
        return sum(map(_least, self._columns())) + gap * (len(self.headings) - 1)

    def lines(self, width: int) -> Iterator[Text]:
        """As a table if there is room for one, else as records."""
        gap = next((gap for gap in GAPS if self.narrowest(gap) <= width), 0)
        for line in self._table(width, gap) if gap else self._records(width):
            line.rstrip()
            yield line

    def print(self, out: Console) -> None:
        for line in self.lines(out.width):
            out.print(line, soft_wrap=True)

    # -- as a table ---------------------------------------------------------------------------------------------------

    def _columns(self) -> list[list[str]]:
        return [[self.headings[i], *(cells[i].plain for cells, _ in self.rows)] for i in range(len(self.headings))]

    def _widths(self, most: int, gap: int) -> list[int]:
        """A width for each column: that of its longest line; if there is too little room, the widest give way first."""
        columns = self._columns()
        least, widths = [_least(column) for column in columns], [_longest_line(column) for column in columns]
        room = most - gap * (len(widths) - 1)
        while sum(widths) > room:
            i = max((i for i in range(len(widths)) if widths[i] > least[i]), key=widths.__getitem__)
            widths[i] -= 1
        return widths

    def _table(self, most: int, gap: int) -> Iterator[Text]:
        widths = self._widths(most, gap)
        if any(self.headings):
            yield from self._row([Text(heading) for heading in self.headings], widths, gap, STRONG, bottom=True)
            yield Text("─" * (sum(widths) + gap * (len(widths) - 1)))
        for i, (cells, style) in enumerate(self.rows):
            if i and self.spaced:
                yield Text()
            yield from self._row(cells, widths, gap, style)

    def _row(
        self, cells: Sequence[Text], widths: Sequence[int], gap: int, style: str, *, bottom: bool = False
    ) -> Iterator[Text]:
        wrapped = [wrap(cell, width) for cell, width in zip(cells, widths)]
        height = max(map(len, wrapped))
        for i, lines in enumerate(wrapped):
            missing = [Text()] * (height - len(lines))
            wrapped[i] = [*missing, *lines] if bottom else [*lines, *missing]
        for line in zip(*wrapped):
            row = Text(style=style)
            for i, (part, width) in enumerate(zip(line, widths)):
                blanks = " " * max(width - len(part), 0)
                row.append(" " * gap if i else "").append(blanks if i in self.right else "")
                row.append_text(_broken(part)).append("" if i in self.right else blanks)
            yield row

    # -- as records ---------------------------------------------------------------------------------------------------

    def _records(self, most: int) -> Iterator[Text]:
        """What the first column is about, then row by row: its first cell, below it the others with their headings."""
        width = max(most - len(_INDENT), 1)
        if title := " ".join(self.headings[0].split()):
            yield Text(title, style=STRONG)
            yield Text("─" * most)
        for i, (cells, style) in enumerate(self.rows):
            if i and self.spaced:
                yield Text()
            if cells[0].plain:
                yield from (Text.assemble(line, style=style or STRONG) for line in wrap(cells[0], most))
            for line in self._fields(cells, width):
                yield Text.assemble(_INDENT, _broken(line), style=style)

    def _fields(self, cells: Sequence[Text], width: int) -> Iterator[Text]:
        """Short ones share a line."""
        line = Text()
        for heading, cell in zip(self.headings[1:], cells[1:]):
            if not cell.plain.strip():
                continue
            shown = Text.assemble(f"{' '.join(heading.split())}: " if heading else "", cell)
            is_short = "\n" not in shown.plain and len(shown) <= width
            if line.plain and (not is_short or len(line) + GAPS[0] + len(shown) > width):
                yield line
                line = Text()
            if is_short:
                line = Text.assemble(line, " " * GAPS[0], shown) if line.plain else shown
            else:
                yield from wrap(shown, width)
        if line.plain:
            yield line


def _text(cell: Cell) -> Text:
    return Text(cell) if isinstance(cell, str) else cell


def _least(column: Sequence[str]) -> int:
    """The width of a column in which no word is cut, nor a sentence crammed."""
    longest_word = max(len(word) for cell in column for line in cell.split("\n") for word in line.split(" "))
    return max(longest_word, READABLE) if _longest_line(column[1:]) > READABLE else longest_word


def _longest_line(column: Sequence[str]) -> int:
    return max((len(line) for cell in column for line in cell.split("\n")), default=0)


def _broken(line: Text) -> Text:
    """With usual spaces in the place of those that must not be broken at."""
    line = line.copy()
    line.plain = line.plain.replace(_UNBROKEN, " ")
    return line
