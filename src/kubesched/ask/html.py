"""Answers as pages of HTML that need nothing else: one template per page in `templates/`, all on one base.

Jinja2 escapes whatever comes from a cluster, and fails on a name that a template misspells. It is imported when the
first page is made, since most commands make none.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from kubesched import __version__
from kubesched.ask.explain import ExplainedPod, words
from kubesched.ask.output import counted, listed
from kubesched.ask.pending import PendingPods
from kubesched.ask.readiness import ReadinessReport, Severity
from kubesched.ask.releases.comparison import ReleaseComparison
from kubesched.ask.shadow_report import AGREEING, ShadowReport
from kubesched.ask.what_if.answer import WhatIfAnswer
from kubesched.simulate.placement import CapacityAnswer, PlacementReport
from kubesched.simulate.report import (
    Comparison,
    Share,
    SimulationReport,
    Utilisation,
    figures_in_words,
    moment,
    short_names,
    title_of,
)

if TYPE_CHECKING:
    from jinja2 import Environment


WIDTH = 860
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 12, 12, 28
_TICKS = 4
_SECONDS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400)
"""Round steps of time."""
_MOST_POINTS = 600
MOST_BARS = 40
_STYLES = "abcdef"
"""The classes of the stylesheet that colour lines and bars."""

Bars: TypeAlias = tuple[str, list[tuple[str, float, str]]]
"""A name, and for each of its bars a style, a share of the whole width, and a text."""


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
    step = round_up(highest / _TICKS, whole=not percent)
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
    """Indices of at most about `_MOST_POINTS` values, evenly spread, and of the last one."""
    step = max(1, count // _MOST_POINTS)
    return sorted({*range(0, count, step), count - 1})


def round_up(value: float, *, whole: bool) -> float:
    """The next step of 1, 2 or 5 times a power of ten; a whole number of what can only be counted."""
    power = 10.0 ** math.floor(math.log10(value))
    step = next(step * power for step in (1, 2, 5, 10) if step * power >= value * (1 - 1e-9))
    return max(step, 1.0) if whole else step


def round_seconds(value: float) -> float:
    """The next round step of time; below a second, and above a day, by tens."""
    if value < 1:
        return round_up(value, whole=False)
    return next((float(step) for step in _SECONDS if step >= value), round_up(value / 86400, whole=True) * 86400)


def _clock(seconds: float) -> str:
    size, unit = next(((s, u) for s, u in ((86400, "d"), (3600, "h"), (60, "m")) if seconds >= s), (1, "s"))
    return f"{seconds / size:.4g}{unit}"


def simulation_page(report: SimulationReport, *, configuration: str = "default") -> str:
    """What a simulation found out; `configuration` is the name of the configuration."""
    colours = _colours(report.total.notable)
    many = len(report.by_node) > MOST_BARS
    return render(
        "simulation",
        report=report,
        configuration=configuration,
        colours=colours,
        charts=_over_time(report) if report.ended else {},
        zones=_shares(report, report.by_zone) if len(report.by_zone) > 1 else [],
        nodes=_shares(report, () if many else report.by_node),
        skyline=_skyline(report) if many else None,
        reasons=_counts([(reason, len(stories)) for reason, stories in report.reasons]),
    )


def comparison_page(comparison: Comparison, *, seed: int) -> str:
    """Policies side by side. More policies than colours have no bars."""
    names = short_names(comparison.policies)
    shares = {
        "Requested, mean": [figures.mean for figures in comparison.figures],
        "Deviation between nodes": [figures.spread for figures in comparison.figures],
    }
    bars = {title: _side_by_side(series) for title, series in shares.items()} if len(names) <= len(_STYLES) else {}
    figures = figures_in_words(comparison)
    return render("comparison", comparison=comparison, names=names, figures=figures, bars_by_title=bars, seed=seed)


def explanation_page(answers: Sequence[ExplainedPod]) -> str:
    """Why pods go where they go: every node with its verdict, and every score."""
    profiles = sorted({answer.explanation.profile for answer in answers})
    return render("explanation", answers=answers, profiles=profiles)


def pending_page(pending: PendingPods) -> str:
    """What all pending pods wait for, and what would help."""
    causes = _counts([(group.why, len(group.pods)) for group in pending.groups])
    waiting = sum(len(group.pods) for group in pending.groups)
    return render("pending", pending=pending, causes=causes, waiting=waiting)


def placement_page(report: PlacementReport) -> str:
    """Where pods go, and why others wait."""
    return render("placement", report=report)


def capacity_page(answer: CapacityAnswer) -> str:
    """How many more of a pod fit."""
    most = max(answer.by_zone.values(), default=1)
    zones: list[Bars] = [(zone, [("b", count / most, str(count))]) for zone, count in answer.by_zone.items()]
    return render("capacity", answer=answer, zones=zones)


def what_if_page(answer: WhatIfAnswer) -> str:
    """The cluster as it is and as it would be."""
    members = [*answer.zones, answer.total] if len(answer.zones) > 1 else [answer.total]
    fullness: dict[str, list[Bars]] = {}
    for resource, whole in answer.total.resources.items():
        if resource in ("cpu", "memory") or whole.before or whole.after:
            shares = [(member.name, member.resources[resource]) for member in members if resource in member.resources]
            fullness[resource] = [
                (name, [_bar("a", share.before or 0.0), _bar("b", share.after or 0.0)]) for name, share in shares
            ]
    return render("what_if", answer=answer, fullness=fullness)


def releases_page(comparison: ReleaseComparison) -> str:
    """What an upgrade would change."""
    return render("releases", comparison=comparison)


def readiness_page(report: ReadinessReport) -> str:
    """Whether nodes can be drained or upgraded."""
    blocking = sum(finding.severity is Severity.BLOCKS for finding in report.findings)
    return render("readiness", report=report, blocking=blocking)


def shadow_page(report: ShadowReport) -> str:
    """How far two schedulers agree, and why they differ."""
    counted_by = {name: _counts([*getattr(report, name).items()]) for name in ("causes", "plugins", "workloads")}
    most = max((sum(counts.values()) for counts in report.days.values()), default=1)
    days: list[Bars] = []
    for day, counts in report.days.items():
        agreeing = sum(counts.get(judgement, 0) for judgement in AGREEING)
        differing = sum(counts.values()) - agreeing
        days.append((day, [("b", agreeing / most, str(agreeing)), ("d", differing / most, str(differing))]))
    return render("shadow", report=report, days=days, **counted_by)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("kubesched.ask"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"duration": moment, "resource": title_of, "listed": listed}
    environment.globals |= {
        "STYLES": _STYLES,
        "WIDTH": WIDTH,
        "counted": counted,
        "version": __version__,
        "words": words,
    }
    return environment


def render(template: str, **answer: object) -> str:
    """The page of a template, with what it shows and the time when it was made."""
    made = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    return _environment().get_template(f"{template}.html.j2").render(answer, made=made)


def _colours(resources: Sequence[str]) -> list[tuple[str, str]]:
    """The resources that have a line or a bar, each with its style: as many as there are styles."""
    return list(zip(resources, _STYLES))


def _bar(style: str, share: float) -> tuple[str, float, str]:
    return style, share, f"{share:.0%}"


def _counts(groups: Sequence[tuple[str, int]]) -> list[Bars]:
    """A bar for each group of pods, the first of which is the largest."""
    return [(name, [("c", count / groups[0][1], counted(count, "pod"))]) for name, count in groups[:MOST_BARS]]


def _over_time(report: SimulationReport) -> dict[str, LineChart]:
    moments = report.timeline
    times = [moment.time for moment in moments]
    pods = [
        Line("placed so far", "a", [moment.placed for moment in moments]),
        Line("running", "b", [moment.running for moment in moments]),
        Line("pending", "c", [moment.pending for moment in moments]),
    ]
    if report.evicted:
        evictions = sorted(eviction.time for eviction in report.preemptions for _ in eviction.victims)
        pods.append(Line("evicted so far", "d", [bisect_right(evictions, time) for time in times]))
    requested = [
        Line(title_of(name), style, [moment.resources.get(name, 0.0) for moment in moments])
        for name, style in _colours(report.total.notable)
    ]
    return {
        "Placements over time": lines_over_time(times, pods),
        "Requested over time": lines_over_time(times, requested, percent=True),
    }


def _shares(report: SimulationReport, members: Sequence[Utilisation]) -> list[Bars]:
    """How full nodes or zones are: a bar for each resource."""
    colours = _colours(report.total.notable)
    rows = []
    for member in members:
        shares = [(style, member.resources[name]) for name, style in colours if name in member.resources]
        rows.append((member.name, [_bar(style, _share(report, share)) for style, share in shares]))
    return rows


def _skyline(report: SimulationReport) -> LineChart:
    return skyline(
        [
            Line(
                title_of(name),
                style,
                [_share(report, node.resources[name]) for node in report.by_node if name in node.resources],
            )
            for name, style in _colours(report.total.notable)
        ]
    )


def _share(report: SimulationReport, share: Share) -> float:
    return share.mean if report.ended else share.end


def _side_by_side(shares: Sequence[Mapping[str, float]]) -> list[Bars]:
    """A bar for each policy, per resource of which any policy has a share."""
    return [
        (title_of(name), [_bar(style, policy.get(name, 0.0)) for policy, style in zip(shares, _STYLES)])
        for name in shares[0]
        if any(policy.get(name) for policy in shares)
    ]
