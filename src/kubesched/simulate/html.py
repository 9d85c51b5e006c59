"""A simulation as one page of HTML that needs nothing else: figures, plots, tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from kubesched.config import Duration
from kubesched.simulate.charts import Line, bars, lines_over_time, skyline
from kubesched.simulate.report import Share, SimulationReport, Utilisation

MOST_BARS = 40
MOST_ROWS = 200

_STYLE = """
:root{--bg:#fff;--ink:#1c2430;--faint:#667085;--grid:#e4e7ec;--a:#2f6fde;--b:#12a17b;--c:#d9822b;--bad:#c93b3b}
@media(prefers-color-scheme:dark){:root{--bg:#14181f;--ink:#e6e9ee;--faint:#98a2b3;--grid:#2b323d;--a:#6ea0ff;--b:#3fcfa4;
--c:#f0a95b;--bad:#ff7b7b}}
body{font:15px/1.5 system-ui,sans-serif;background:var(--bg);color:var(--ink);max-width:900px;margin:2rem auto;
padding:0 1rem}h1{font-size:1.5rem;margin:0}h2{font-size:1.1rem;margin:2rem 0 .5rem}p.faint,.legend{color:var(--faint)}
.cards{display:flex;flex-wrap:wrap;gap:.6rem;margin:1rem 0}.cards div{border:1px solid var(--grid);border-radius:8px;
padding:.5rem .9rem}.cards b{display:block;font-size:1.3rem}.cards span{color:var(--faint);font-size:.85rem}
svg{width:100%;height:auto;font:11px system-ui,sans-serif}svg text{fill:var(--faint)}.grid{stroke:var(--grid)}
.line{fill:none;stroke-width:1.8}.line.a{stroke:var(--a)}.line.b{stroke:var(--b)}.line.c{stroke:var(--c)}
.track{fill:var(--grid)}.fill.a{fill:var(--a)}.fill.b{fill:var(--b)}.fill.c{fill:var(--c)}.legend{font-size:.85rem;
margin:.2rem 0}.legend span{margin-right:1rem}.legend i{display:inline-block;width:.8em;height:.8em;border-radius:2px;
margin-right:.3em}.legend i.a{background:var(--a)}.legend i.b{background:var(--b)}.legend i.c{background:var(--c)}
table{border-collapse:collapse;width:100%;font-size:.88rem}th,td{text-align:left;padding:.25rem .6rem .25rem 0;
border-bottom:1px solid var(--grid);vertical-align:top;overflow-wrap:break-word}
td:last-child{overflow-wrap:anywhere}th{white-space:nowrap;color:var(--faint);font-weight:600}
"""


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
        f"<title>kubesched: {title}</title><style>{_STYLE}</style></head>\n"
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
