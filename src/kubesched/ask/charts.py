"""Where the points, ticks and labels of a line chart are; the template `pieces.html.j2` draws them as SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

WIDTH = 860
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 12, 12, 28
_TICKS = 4
_SECONDS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400)
"""Round steps of time."""
_MOST_POINTS = 600


class Line(NamedTuple):
    """One quantity, and the class of the stylesheet that gives it its colour."""

    label: str
    style: str
    values: Sequence[float]


class LineChart:
    """Lines over an axis that ends at `last`, on a grid that ends at `highest`."""

    def __init__(self, height: int, last: float, highest: float, step: float, *, percent: bool) -> None:
        self.height = height
        self._last = last
        self._highest = highest
        ticks = [step * i for i in range(round(highest / step) + 1)]
        self.grid = [(self._y(tick), f"{round(tick * 100, 6):g}%" if percent else f"{tick:,.0f}") for tick in ticks]
        self.time_labels: list[tuple[float, str]] = []
        self.remark = ""
        self.lines: list[tuple[str, str, str]] = []
        """Each with its label, its style, and its points as SVG wants them."""

    def add(self, line: Line, points: Sequence[tuple[float, float]]) -> None:
        self.lines.append((line.label, line.style, " ".join(f"{self._x(x):.1f},{self._y(y):.1f}" for x, y in points)))

    def label_times(self) -> None:
        step = round_seconds(self._last / _TICKS)
        self.time_labels = [(self._x(step * i), _clock(step * i)) for i in range(int(self._last / step + 1e-9) + 1)]

    def _x(self, value: float) -> float:
        return _LEFT + (WIDTH - _LEFT - _RIGHT) * value / self._last

    def _y(self, value: float) -> float:
        return _TOP + (self.height - _TOP - _BOTTOM) * (1 - value / self._highest)


def lines_over_time(times: Sequence[float], lines: Sequence[Line], *, percent: bool = False) -> LineChart:
    """Steps: a value holds until the next time."""
    last = times[-1] or 1.0
    highest = max((value for line in lines for value in line.values), default=0.0) or 1.0
    step = rounded(highest / _TICKS, whole=not percent)
    chart = LineChart(220, last, math.ceil(highest / step - 1e-9) * step, step, percent=percent)
    chart.label_times()
    for line in lines:
        points, previous = [], 0.0
        for i in _thinned(len(times)):
            points += [(times[i], previous), (times[i], line.values[i])]
            previous = line.values[i]
        chart.add(line, [*points, (last, previous)])
    return chart


def skyline(lines: Sequence[Line]) -> LineChart:
    """Shares of many nodes side by side, each line sorted by itself: how many are how full."""
    count = max(len(line.values) for line in lines)
    chart = LineChart(200, float(count), 1.0, 0.25, percent=True)
    chart.remark = f"{count} nodes, fullest first"
    for line in lines:
        ordered = sorted(line.values, reverse=True)
        chart.add(line, [*((i, ordered[i]) for i in _thinned(len(ordered))), (count, ordered[-1])])
    return chart


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
