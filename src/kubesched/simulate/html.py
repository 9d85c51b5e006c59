"""A simulation as one page of HTML that needs nothing else: figures, plots as inline SVG, tables."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from kubesched.config import Duration
from kubesched.simulate.plots import (
    Bad,
    Line,
    bars,
    cards,
    legend,
    lines_over_time,
    section,
    skyline,
    table,
    whole_page,
)
from kubesched.simulate.report import PodStory, Share, SimulationReport, Utilisation, title_of

MOST_BARS = 40
_STYLES = "abcdef"
"""The classes of the page's stylesheet that colour lines and bars."""
_LABEL = 560
"""Reasons are long."""


def page(report: SimulationReport, *, configuration: str = "default", made: str = "") -> str:
    """The whole page. `configuration` is what the configuration is called, `made` says when it was made."""
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
    remark = f"Simulated in virtual time with the configuration {configuration}, seed {report.seed}"
    return whole_page(title, f"{remark}{f', on {made}' if made else ''}.", sections)


def _cards(report: SimulationReport) -> str:
    figures = {
        "placed": str(len(report.placed)),
        "pending": str(len(report.pending)),
        "evicted": str(report.evicted),
        "virtual time": _time(report.ended),
    }
    for name in report.total.notable:
        figures[f"{title_of(name)} requested, mean"] = f"{report.total.resources[name].mean:.0%}"
    return cards(figures)


def _lines(report: SimulationReport) -> list[tuple[str, str]]:
    """The resources that have a line or a bar, each with its style: as many as there are colours."""
    return list(zip(report.total.notable, _STYLES))


def _over_time(report: SimulationReport) -> str:
    moments = report.timeline
    if not report.ended:
        return section("Placements over time", '<p class="faint">Everything happened at once, at the start.</p>')
    times = [moment.time for moment in moments]
    pods = [
        Line("placed so far", "a", [moment.placed for moment in moments]),
        Line("running", "b", [moment.running for moment in moments]),
        Line("pending", "c", [moment.pending for moment in moments]),
    ]
    if report.evicted:
        pods.append(Line("evicted so far", "d", _evicted_at(report, times)))
    load = [
        Line(title_of(name), style, [moment.resources.get(name, 0.0) for moment in moments])
        for name, style in _lines(report)
    ]
    return section("Placements over time", lines_over_time(times, pods)) + section(
        "Requested over time", lines_over_time(times, load, percent=True)
    )


def _evicted_at(report: SimulationReport, times: Sequence[float]) -> list[float]:
    """How many had been evicted by then."""
    evictions = sorted(each.time for each in report.preemptions for _ in each.victims)
    return [float(bisect_right(evictions, time)) for time in times]


def _zones(report: SimulationReport) -> str:
    return section("Utilisation per zone", _shares(report, report.by_zone)) if len(report.by_zone) > 1 else ""


def _nodes(report: SimulationReport) -> str:
    nodes = report.by_node
    if not nodes:
        return ""
    if len(nodes) <= MOST_BARS:
        return section("Utilisation per node", _shares(report, nodes))
    lines = [
        Line(title_of(name), style, [_share(report, node.resources[name]) for node in nodes if name in node.resources])
        for name, style in _lines(report)
    ]
    return section("Utilisation per node", skyline(lines))


def _shares(report: SimulationReport, members: Sequence[Utilisation]) -> str:
    shown, rows = _lines(report), []
    for each in members:
        shares = [(style, _share(report, each.resources[name])) for name, style in shown if name in each.resources]
        rows.append((each.name, [(style, share, f"{share:.0%}") for style, share in shares]))
    of_time = "mean over the run" if report.ended else "at the end"
    return bars(rows) + legend(((title_of(name), style) for name, style in shown), of_time)


def _share(report: SimulationReport, share: Share) -> float:
    return share.mean if report.ended else share.end


def _pending(report: SimulationReport) -> str:
    if not report.pending:
        return ""
    most = len(report.reasons[0][1])
    rows = [
        (reason, [("c", len(stories) / most, f"{len(stories):,} pods" if len(stories) > 1 else "1 pod")])
        for reason, stories in report.reasons[:MOST_BARS]
    ]
    listed = (
        (story.pod, str(story.priority), _time(story.arrived), str(story.attempts), reason)
        for reason, stories in report.reasons
        for story in stories
    )
    heads = ("Pod", "Priority", "Arrived", "Tries", "Why")
    return section("Pods that wait, by reason", bars(rows, label_width=_LABEL) + table(heads, listed))


def _preemptions(report: SimulationReport) -> str:
    if not report.preemptions:
        return ""
    rows = (
        (_time(each.time), each.preemptor, str(each.priority), each.node, ", ".join(each.victims))
        for each in report.preemptions
    )
    return section("Preemptions", table(("At", "Preemptor", "Priority", "Node", "Evicted"), rows))


def _placements(report: SimulationReport) -> str:
    rows = (
        (story.pod, story.node, _time(story.arrived), _time(story.placed or 0.0), str(story.attempts), _fate(story))
        for story in report.placed
    )
    return section("Placements", table(("Pod", "Node", "Arrived", "Placed", "Tries", "What became of it"), rows))


def _fate(story: PodStory) -> str:
    if story.evicted is not None:
        return Bad(f"evicted after {_time(story.evicted - (story.placed or 0.0))}")
    if story.finished is not None:
        return f"finished after {_time(story.finished - (story.placed or 0.0))}"
    return f"runs, in place of {story.replaces}" if story.replaces else "runs"


def _time(seconds: float) -> str:
    return str(Duration(round(seconds, 3)))
