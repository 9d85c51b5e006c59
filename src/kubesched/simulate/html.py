"""A simulation as one page of HTML that needs nothing else: figures, plots as inline SVG, tables."""

from __future__ import annotations

from collections.abc import Sequence

from kubesched.config import Duration
from kubesched.simulate.plots import Line, bars, cards, legend, lines_over_time, section, skyline, table, whole_page
from kubesched.simulate.report import Share, SimulationReport, Utilisation, title_of

MOST_BARS = 40
MOST_ROWS = 200
_STYLES = "abc"
"""The classes of the page's stylesheet that colour lines and bars."""


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
    return whole_page(title, f"Simulated by kubesched in virtual time, seed {report.seed}.", sections)


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
    load = [
        Line(title_of(name), style, [moment.resources.get(name, 0.0) for moment in moments])
        for name, style in _lines(report)
    ]
    return section("Placements over time", lines_over_time(times, pods)) + section(
        "Requested over time", lines_over_time(times, load, percent=True)
    )


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
        (f"reason {i}", [("c", len(stories) / most, str(len(stories)))])
        for i, (_, stories) in enumerate(report.reasons[:MOST_BARS], 1)
    ]
    listed = (
        (str(i), str(len(stories)), ", ".join(story.pod for story in stories[:5]), reason)
        for i, (reason, stories) in enumerate(report.reasons[:MOST_ROWS], 1)
    )
    return section("Pending reasons", bars(rows) + table(("", "Pods", "For example", "Why"), listed))


def _preemptions(report: SimulationReport) -> str:
    if not report.preemptions:
        return ""
    rows = (
        (_time(each.time), each.preemptor, str(each.priority), each.node, ", ".join(each.victims))
        for each in report.preemptions[:MOST_ROWS]
    )
    return section("Preemptions", table(("At", "Preemptor", "Priority", "Node", "Evicted"), rows))


def _placements(report: SimulationReport) -> str:
    rows = (
        (story.pod, story.node, _time(story.arrived), _time(story.placed or 0.0), str(story.attempts))
        for story in report.placed[:MOST_ROWS]
    )
    more = len(report.placed) - MOST_ROWS
    note = f'<p class="faint">... and {more} more.</p>' if more > 0 else ""
    return section("Placements", table(("Pod", "Node", "Arrived", "Placed", "Tries"), rows) + note)


def _time(seconds: float) -> str:
    return str(Duration(round(seconds, 3)))
