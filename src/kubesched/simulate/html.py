"""A simulation as one page of HTML that needs nothing else: figures, plots as inline SVG, tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from typing import NamedTuple

from kubesched.config import Duration
from kubesched.simulate.report import Share, SimulationReport, Utilisation

MOST_BARS = 40
MOST_ROWS = 200

_STYLE = files(__package__).joinpath("page.css").read_text(encoding="utf-8")


def page(report: SimulationReport) -> str:
    """The whole page."""
    sections = [
        _cards(report),
        _over_time(report),
        _zones(report),
        _nodes(report),
        _pending(report),
        _preemptions(report),
        _placements(report),
    ]
    title = f"{len(report.pods)} pods on {report.nodes} nodes"
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>kubesched: {title}</title><style>\n{_STYLE}</style></head>\n"
        f'<body><h1>{title}</h1><p class="faint">Simulated by kubesched in virtual time, seed {report.seed}.</p>\n'
        + "\n".join(section for section in sections if section)
        + "\n</body></html>\n"
    )


def _cards(report: SimulationReport) -> str:
    figures = {
        "placed": str(len(report.placed)),
        "pending": str(len(report.pending)),
        "evicted": str(report.evicted),
        "virtual time": _time(report.ended),
        "CPU requested, mean": f"{report.total.cpu.mean:.0%}",
        "memory requested, mean": f"{report.total.memory.mean:.0%}",
    }
    inside = "".join(f"<div><b>{value}</b><span>{name}</span></div>" for name, value in figures.items())
    return f'<div class="cards">{inside}</div>'


def _over_time(report: SimulationReport) -> str:
    moments = report.timeline
    if not report.ended:
        return _section("Placements over time", '<p class="faint">Everything happened at once, at the start.</p>')
    times = [moment.time for moment in moments]
    pods = [
        Line("placed so far", "a", [moment.placed for moment in moments]),
        Line("running", "b", [moment.running for moment in moments]),
        Line("pending", "c", [moment.pending for moment in moments]),
    ]
    load = [
        Line("CPU", "a", [moment.cpu for moment in moments]),
        Line("memory", "b", [moment.memory for moment in moments]),
    ]
    return _section("Placements over time", lines_over_time(times, pods)) + _section(
        "Requested over time", lines_over_time(times, load, percent=True)
    )


def _zones(report: SimulationReport) -> str:
    return _section("Utilisation per zone", _shares(report, report.by_zone)) if len(report.by_zone) > 1 else ""


def _nodes(report: SimulationReport) -> str:
    nodes = report.by_node
    if not nodes:
        return ""
    if len(nodes) <= MOST_BARS:
        return _section("Utilisation per node", _shares(report, nodes))
    lines = [
        Line("CPU", "a", [_share(report, node.cpu) for node in nodes]),
        Line("memory", "b", [_share(report, node.memory) for node in nodes]),
    ]
    return _section("Utilisation per node", skyline(lines))


def _shares(report: SimulationReport, members: Sequence[Utilisation]) -> str:
    rows = []
    for each in members:
        cpu, memory = _share(report, each.cpu), _share(report, each.memory)
        rows.append((each.name, [("a", cpu, f"{cpu:.0%}"), ("b", memory, f"{memory:.0%}")]))
    of_time = "mean over the run" if report.ended else "at the end"
    return (
        bars(rows)
        + f'<p class="legend"><span><i class="a"></i>CPU</span><span><i class="b"></i>memory</span>{of_time}</p>'
    )


def _share(report: SimulationReport, share: Share) -> float:
    return share.mean if report.ended else share.end


def _pending(report: SimulationReport) -> str:
    if not report.pending:
        return ""
    most = len(report.reasons[0][1])
    rows = [
        (f"reason {i}", [("c", len(stories) / most, str(len(stories)))])
        for i, (_, stories) in enumerate(report.reasons[:MOST_BARS], 1)
    ]
    listed = (
        (str(i), str(len(stories)), ", ".join(story.pod for story in stories[:5]), reason)
        for i, (reason, stories) in enumerate(report.reasons[:MOST_ROWS], 1)
    )
    return _section("Pending reasons", bars(rows) + _table(("", "Pods", "For example", "Why"), listed))


def _preemptions(report: SimulationReport) -> str:
    if not report.preemptions:
        return ""
    rows = (
        (_time(each.time), each.preemptor, str(each.priority), each.node, ", ".join(each.victims))
        for each in report.preemptions[:MOST_ROWS]
    )
    return _section("Preemptions", _table(("At", "Preemptor", "Priority", "Node", "Evicted"), rows))


def _placements(report: SimulationReport) -> str:
    rows = (
        (story.pod, story.node, _time(story.arrived), _time(story.placed or 0.0), str(story.attempts))
        for story in report.placed[:MOST_ROWS]
    )
    more = len(report.placed) - MOST_ROWS
    note = f'<p class="faint">... and {more} more.</p>' if more > 0 else ""
    return _section("Placements", _table(("Pod", "Node", "Arrived", "Placed", "Tries"), rows) + note)


def _section(title: str, inside: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{inside}</section>"


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _time(seconds: float) -> str:
    return str(Duration(round(seconds, 3)))


WIDTH = 860
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 12, 12, 28
_TICKS = 4
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
    plot = _Plot(height, last, highest)
    parts = [plot.grid(percent=percent), plot.time_axis(last)]
    for line in lines:
        points, previous = [], 0.0
        for i in kept:
            points += [plot.point(times[i], previous), plot.point(times[i], line.values[i])]
            previous = line.values[i]
        points.append(plot.point(last, previous))
        parts.append(f'<polyline class="line {line.style}" points="{" ".join(points)}"/>')
    return _svg(height, parts) + _legend([(line.label, line.style) for line in lines])


def skyline(lines: Sequence[Line], *, height: int = 200) -> str:
    """Shares of many things side by side, each line sorted by itself: how many are how full."""
    count = max(len(line.values) for line in lines)
    plot = _Plot(height, float(count), 1.0)
    parts = [plot.grid(percent=True)]
    for line in lines:
        ordered = sorted(line.values, reverse=True)
        points = [plot.point(i, ordered[i]) for i in _thinned(len(ordered))] + [plot.point(count, ordered[-1])]
        parts.append(f'<polyline class="line {line.style}" points="{" ".join(points)}"/>')
    parts.append(f'<text x="{WIDTH - _RIGHT}" y="{height - 8}" text-anchor="end">{count} nodes, fullest first</text>')
    return _svg(height, parts) + _legend([(line.label, line.style) for line in lines])


def bars(rows: Sequence[tuple[str, Sequence[tuple[str, float, str]]]], *, label_width: int = 180) -> str:
    """A row per name, in it a bar per (style, share, text)."""
    space = WIDTH - label_width - 70
    parts, y = [], 4
    for name, shares in rows:
        parts.append(f'<text x="{label_width - 8}" y="{y + 13}" text-anchor="end">{escape(_short(name))}</text>')
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


class _Plot:
    """Where values are on the paper."""

    def __init__(self, height: int, last: float, highest: float) -> None:
        self._height = height
        self._last = last
        self._highest = highest

    def point(self, x: float, y: float) -> str:
        return f"{self._x(x):.1f},{self._y(y):.1f}"

    def grid(self, *, percent: bool) -> str:
        parts = []
        for i in range(_TICKS + 1):
            value = self._highest * i / _TICKS
            y = self._y(value)
            text = f"{value:.0%}" if percent else f"{value:,.0f}" if self._highest >= _TICKS else f"{value:g}"
            parts.append(f'<line class="grid" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
            parts.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{text}</text>')
        return "".join(parts)

    def time_axis(self, last: float) -> str:
        size, unit = next(((s, u) for s, u in ((86400, "d"), (3600, "h"), (60, "m")) if last >= 2 * s), (1, "s"))
        return "".join(
            f'<text x="{self._x(last * i / _TICKS):.1f}" y="{self._height - 8}" '
            f'text-anchor="{"end" if i == _TICKS else "middle"}">{last * i / _TICKS / size:.4g}{unit}</text>'
            for i in range(_TICKS + 1)
        )

    def _x(self, value: float) -> float:
        return _LEFT + (WIDTH - _LEFT - _RIGHT) * value / self._last

    def _y(self, value: float) -> float:
        return _TOP + (self._height - _TOP - _BOTTOM) * (1 - value / self._highest)


def _svg(height: int, parts: Sequence[str]) -> str:
    return f'<svg viewBox="0 0 {WIDTH} {height}" role="img">{"".join(parts)}</svg>'


def _legend(entries: Sequence[tuple[str, str]]) -> str:
    items = "".join(f'<span><i class="{style}"></i>{escape(label)}</span>' for label, style in entries)
    return f'<p class="legend">{items}</p>'


def _thinned(count: int) -> list[int]:
    """So many of the indices that a line looks the same; the last is always among them."""
    step = max(1, count // _MOST_POINTS)
    return sorted({*range(0, count, step), count - 1})


def _short(name: str, most: int = 26) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"
