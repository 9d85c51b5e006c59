"""Pieces of a page of HTML that needs nothing else: sections, tables, and plots as inline SVG."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from string import Template
from typing import NamedTuple

from kubesched import __version__

_PAGE = Template(files(__package__).joinpath("page.html").read_text(encoding="utf-8"))


def whole_page(title: str, remark: str, sections: Iterable[str]) -> str:
    """The page of these sections; those that are empty are left out. It says which version made it."""
    inside = "\n".join(section for section in sections if section)
    return _PAGE.substitute(title=escape(title), remark=escape(remark), sections=inside, version=escape(__version__))


class Bad(str):
    """A cell or a paragraph that says something bad."""


def cards(figures: Mapping[str, str]) -> str:
    """Figures, each with its name below it."""
    inside = "".join(f"<div><b>{escape(value)}</b><span>{escape(name)}</span></div>" for name, value in figures.items())
    return f'<div class="cards">{inside}</div>'


def section(title: str, inside: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{inside}</section>"


def paragraphs(*texts: str) -> str:
    """A paragraph each; those that are empty are left out."""
    return "".join(f"<p{' class=bad' if isinstance(text, Bad) else ''}>{escape(text)}</p>" for text in texts if text)


def bullets(texts: Iterable[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(text)}</li>' for text in texts)}</ul>"


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    body = "".join("<tr>" + "".join(_cell(cell) for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(text: str) -> str:
    return f"<td{' class=bad' if isinstance(text, Bad) else ''}>{escape(text)}</td>"


def legend(entries: Iterable[tuple[str, str]], remark: str = "") -> str:
    """What the colours mean: a label and a style each."""
    items = "".join(f'<span><i class="{style}"></i>{escape(label)}</span>' for label, style in entries)
    return f'<p class="legend">{items}{escape(remark)}</p>'


WIDTH = 860
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 12, 12, 28
_TICKS = 4
_SECONDS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400)
"""Round steps of time."""
_MOST_POINTS = 600
_ROW = 22


class Line(NamedTuple):
    """One quantity over time; `style` is the class that gives it its colour."""

    label: str
    style: str
    values: Sequence[float]


def lines_over_time(times: Sequence[float], lines: Sequence[Line], *, percent: bool = False, height: int = 220) -> str:
    """Steps: a value holds until the next time."""
    kept = _thinned(len(times))
    last = times[-1] or 1.0
    highest = max((value for line in lines for value in line.values), default=0.0) or 1.0
    step = rounded(highest / _TICKS, whole=not percent)
    plot = _Plot(height, last, math.ceil(highest / step - 1e-9) * step, step)
    parts = [plot.grid(percent=percent), plot.time_axis(last)]
    for line in lines:
        points, previous = [], 0.0
        for i in kept:
            points += [plot.point(times[i], previous), plot.point(times[i], line.values[i])]
            previous = line.values[i]
        points.append(plot.point(last, previous))
        parts.append(f'<polyline class="line {line.style}" points="{" ".join(points)}"/>')
    return _svg(height, parts) + legend((line.label, line.style) for line in lines)


def skyline(lines: Sequence[Line], *, height: int = 200) -> str:
    """Shares of many things side by side, each line sorted by itself: how many are how full."""
    count = max(len(line.values) for line in lines)
    plot = _Plot(height, float(count), 1.0, 0.25)
    parts = [plot.grid(percent=True)]
    for line in lines:
        ordered = sorted(line.values, reverse=True)
        points = [plot.point(i, ordered[i]) for i in _thinned(len(ordered))] + [plot.point(count, ordered[-1])]
        parts.append(f'<polyline class="line {line.style}" points="{" ".join(points)}"/>')
    parts.append(f'<text x="{WIDTH - _RIGHT}" y="{height - 8}" text-anchor="end">{count} nodes, fullest first</text>')
    return _svg(height, parts) + legend((line.label, line.style) for line in lines)


def bars(rows: Sequence[tuple[str, Sequence[tuple[str, float, str]]]], *, label_width: int = 180) -> str:
    """A row per name, in it a bar per (style, share, text)."""
    space = WIDTH - label_width - 70
    parts, y = [], 4
    for name, shares in rows:
        label = escape(_short(name, label_width // 7))
        parts.append(f'<text x="{label_width - 8}" y="{y + 13}" text-anchor="end">{label}</text>')
        thickness = 16 / len(shares)
        for i, (style, share, text) in enumerate(shares):
            top, long = y + i * thickness, max(min(share, 1.0), 0.0) * space
            parts.append(
                f'<rect class="track" x="{label_width}" y="{top:.1f}" width="{space}" height="{thickness - 1}"/>'
            )
            tip = f"<title>{escape(name)}: {escape(text)}</title>"
            size = f'width="{long:.1f}" height="{thickness - 1}"'
            parts.append(f'<rect class="fill {style}" x="{label_width}" y="{top:.1f}" {size}>{tip}</rect>')
        shown = " / ".join(text for _, _, text in shares)
        parts.append(f'<text x="{label_width + space + 6}" y="{y + 13}">{escape(shown)}</text>')
        y += _ROW
    return _svg(y + 4, parts)


def stacks(rows: Sequence[tuple[str, Sequence[tuple[str, str, float]], str]], *, label_width: int = 180) -> str:
    """A row per name, in it parts of (label, style, value) one after the other, and a text behind them."""
    space = WIDTH - label_width - 70
    longest = max((sum(value for _, _, value in parts) for _, parts, _ in rows), default=0.0) or 1.0
    shapes, y = [], 4
    for name, parts, text in rows:
        label = escape(_short(name, label_width // 7))
        shapes.append(f'<text x="{label_width - 8}" y="{y + 13}" text-anchor="end">{label}</text>')
        x = float(label_width)
        for what, style, value in parts:
            long = value / longest * space
            tip = f"<title>{escape(name)}: {escape(what)} {value:g}</title>"
            size = f'width="{long:.1f}" height="15"'
            shapes.append(f'<rect class="fill {style}" x="{x:.1f}" y="{y}" {size}>{tip}</rect>')
            x += long
        shapes.append(f'<text x="{x + 6:.1f}" y="{y + 13}">{escape(text)}</text>')
        y += _ROW
    return _svg(y + 4, shapes)


class _Plot:
    """Where values are on the paper."""

    def __init__(self, height: int, last: float, highest: float, step: float) -> None:
        self._step = step
        self._height = height
        self._last = last
        self._highest = highest

    def point(self, x: float, y: float) -> str:
        return f"{self._x(x):.1f},{self._y(y):.1f}"

    def grid(self, *, percent: bool) -> str:
        parts = []
        for i in range(round(self._highest / self._step) + 1):
            value = self._step * i
            y = self._y(value)
            text = f"{round(value * 100, 6):g}%" if percent else f"{value:,.0f}"
            parts.append(f'<line class="grid" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
            parts.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{text}</text>')
        return "".join(parts)

    def time_axis(self, last: float) -> str:
        step = round_seconds(last / _TICKS)
        return "".join(
            f'<text x="{self._x(step * i):.1f}" y="{self._height - 8}" text-anchor="middle">{_clock(step * i)}</text>'
            for i in range(int(last / step + 1e-9) + 1)
        )

    def _x(self, value: float) -> float:
        return _LEFT + (WIDTH - _LEFT - _RIGHT) * value / self._last

    def _y(self, value: float) -> float:
        return _TOP + (self._height - _TOP - _BOTTOM) * (1 - value / self._highest)


def _svg(height: int, parts: Sequence[str]) -> str:
    return f'<svg viewBox="0 0 {WIDTH} {height}" role="img">{"".join(parts)}</svg>'


def _thinned(count: int) -> list[int]:
    """So many of the indices that a line looks the same; the last is always among them."""
    step = max(1, count // _MOST_POINTS)
    return sorted({*range(0, count, step), count - 1})


def rounded(value: float, *, whole: bool) -> float:
    """The next step of 1, 2 or 5 times a power of ten; a whole number of what can only be counted."""
    power = 10.0 ** math.floor(math.log10(value))
    step = next(step * power for step in (1, 2, 5, 10) if step * power >= value * (1 - 1e-9))
    return max(step, 1.0) if whole else step


def round_seconds(value: float) -> float:
    """The next round step of time; below a second, and above a day, by tens."""
    if value < 1:
        return rounded(value, whole=False)
    return next((float(step) for step in _SECONDS if step >= value), rounded(value / 86400, whole=True) * 86400)


def _clock(seconds: float) -> str:
    size, unit = next(((s, u) for s, u in ((86400, "d"), (3600, "h"), (60, "m")) if seconds >= s), (1, "s"))
    return f"{seconds / size:.4g}{unit}"


def _short(name: str, most: int = 26) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"
