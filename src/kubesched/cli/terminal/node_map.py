"""Nodes as shapes: zones side by side, each node with bars and its pods; of very many nodes, a block each."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, zip_longest

from rich.text import Text

from kubesched.cli.printing import BAD, FAINT, GOOD, STRONG, bar
from kubesched.cli.terminal.picture import CORDONED, DOWN, NO_ZONE, NodeShape, PodShape

SELECTED = "reverse"
_LEVELS = "▁▂▃▄▅▆▇█"
_MARKS = {DOWN: "x", CORDONED: "="}
_GAP = 2
_MARK_WIDTH = 6
_COUNT_WIDTH = 3
_ROOM_FOR_MORE = len(" … 10000 more")
_BARS_FROM = 30
"""Columns of a node from which on there is room for two bars below its name."""
_COLOURS = ("cyan", "magenta", "yellow", "blue", "bright_green", "bright_red", "bright_cyan", "bright_magenta")

Zone = tuple[str, list[NodeShape]]


def node_map(nodes: Sequence[NodeShape], width: int, height: int, selected: str = "") -> list[Text]:
    """At most so many lines, none wider: with as much detail as there is room for."""
    if not nodes or height <= 0:
        return [Text("No nodes.", style=FAINT)][:height]
    zones = [(zone, list(group)) for zone, group in groupby(nodes, key=lambda node: node.zone)]
    names = max(len(node.name) for node in nodes)
    least = names + 1 + _MARK_WIDTH + 1 + _COUNT_WIDTH
    fitting = max((width + _GAP) // (least + _GAP), 1)
    columns = len(zones) if len(zones) <= fitting else fitting
    across = (width - _GAP * (columns - 1)) // columns
    colours = _colours(nodes)
    if len(nodes) <= height * columns:
        cells = (_large, _small) if across >= _BARS_FROM else (_small,)
        for cell in cells:
            made = {node.name: cell(node, names, across, colours, node.name == selected) for node in nodes}
            lines = (_side_by_side if columns == len(zones) else _below_each_other)(zones, made, columns, across)
            if len(lines) <= height:
                return lines
    return _blocks(zones, width, height, selected)


def _colours(nodes: Sequence[NodeShape]) -> dict[str, str]:
    workloads = sorted({pod.workload for node in nodes for pod in node.pods})
    return {workload: _COLOURS[i % len(_COLOURS)] for i, workload in enumerate(workloads)}


# -- zones ------------------------------------------------------------------------------------------------------------


def _heading(zone: Zone, width: int) -> Text:
    name = "nodes" if zone[0] == NO_ZONE else zone[0]
    count = f" {len(zone[1])} "
    room = max(width - len(count) - 5, 4)
    text = Text.assemble(("── ", FAINT), (_short(name, room), STRONG), (count, FAINT))
    return text.append("─" * max(width - len(text), 0), style=FAINT)


def _side_by_side(zones: list[Zone], cells: dict[str, list[Text]], columns: int, across: int) -> list[Text]:
    stacks = [[_heading(zone, across), *(line for node in zone[1] for line in cells[node.name])] for zone in zones]
    return [_beside(list(row), across) for row in zip_longest(*stacks, fillvalue=Text())]


def _below_each_other(zones: list[Zone], cells: dict[str, list[Text]], columns: int, across: int) -> list[Text]:
    lines = []
    for zone in zones:
        lines.append(_heading(zone, across * columns + _GAP * (columns - 1)))
        for start in range(0, len(zone[1]), columns):
            row = [cells[node.name] for node in zone[1][start : start + columns]]
            lines += [_beside(list(line), across) for line in zip_longest(*row, fillvalue=Text())]
    return lines


def _beside(parts: list[Text], across: int) -> Text:
    line = Text()
    for i, part in enumerate(parts):
        line.append_text(part)
        if i < len(parts) - 1:
            line.append(" " * (across - part.cell_len + _GAP))
    return line


# -- nodes ------------------------------------------------------------------------------------------------------------


def _small(node: NodeShape, names: int, width: int, colours: dict[str, str], selected: bool) -> list[Text]:
    """One line: the name, how full it is or what is the matter, a square per pod."""
    names = min(names, max(width - _MARK_WIDTH - _COUNT_WIDTH - 2, 4))
    state = node.mark or f"{node.fullness:.0%}"
    style = BAD if node.mark or node.fullness > 0.9 else GOOD
    line = Text.assemble(_name(node, names, selected), " ", (state.rjust(_MARK_WIDTH), style), " ")
    return [line.append_text(_squares(node.pods, width - line.cell_len, colours))]


def _large(node: NodeShape, names: int, width: int, colours: dict[str, str], selected: bool) -> list[Text]:
    """Three lines: the name and its pods as squares, a bar of cpu and one of memory, and what the pods belong to."""
    mark = (f" {node.mark}" if node.mark else "", BAD)
    first = Text.assemble(_name(node, min(names, width - 12), selected), mark, " ")
    first.append_text(_squares(node.pods, width - first.cell_len, colours))
    room = (width - len("cpu  100%  mem  100%")) // 2
    bars = Text.assemble(("cpu ", FAINT), bar(node.cpu, room), ("  mem ", FAINT), bar(node.memory, room))
    workloads = Text("")
    for workload, pods in groupby(node.pods, key=lambda pod: pod.workload):
        part = f"{len(list(pods))} {workload}"
        if workloads.cell_len + len(part) + 3 > width:
            workloads.append("…", style=FAINT)
            break
        workloads.append(f"{part}  ", style=colours[workload])
    return [first, bars, workloads if node.pods else Text("empty", style=FAINT)]


def _name(node: NodeShape, width: int, selected: bool) -> tuple[str, str]:
    return _short(node.name, width).ljust(width), SELECTED if selected else STRONG


def _squares(pods: Sequence[PodShape], width: int, colours: dict[str, str]) -> Text:
    """A square per pod; of more than there is room for, how many there are."""
    if len(pods) <= width:
        return Text.assemble(*((pod.shape, colours[pod.workload]) for pod in pods))
    return Text.assemble((pods[0].shape, colours[pods[0].workload]), str(len(pods)))


def _short(text: str, width: int) -> str:
    """Names differ at their ends, so it is the middle that goes."""
    if len(text) <= width:
        return text
    end = (width - 1) * 2 // 3
    return f"{text[: width - 1 - end]}…{text[-end:]}"


# -- very many nodes --------------------------------------------------------------------------------------------------


def _blocks(zones: list[Zone], width: int, height: int, selected: str) -> list[Text]:
    """A block per node, the higher the fuller; zones share the lines in proportion to what they need."""
    if height < 2 * len(zones):
        zones = [("all zones", [node for _, nodes in zones for node in nodes])]
    if height < 2:
        return [_row_of_blocks(zones[0][1], width, selected)]
    needs = [1 + -(-len(nodes) // width) for _, nodes in zones]
    lines: list[Text] = []
    for i, zone in enumerate(zones):
        left = height - len(lines)
        share = min(needs[i], max(left * needs[i] // sum(needs[i:]), 2))
        lines.append(_heading(zone, width))
        rows = [zone[1][at : at + width] for at in range(0, len(zone[1]), width)]
        full, rest = rows[: share - 2], [node for row in rows[share - 2 :] for node in row]
        lines += [_row_of_blocks(row, width, selected) for row in full]
        lines.append(_row_of_blocks(rest, width, selected))
    return lines


def _row_of_blocks(nodes: Sequence[NodeShape], width: int, selected: str) -> Text:
    """One line, which says how many nodes it has no room for."""
    more = "" if len(nodes) <= width else f" … {len(nodes) - width + _ROOM_FOR_MORE} more"
    shown = nodes if not more else nodes[: width - _ROOM_FOR_MORE]
    return Text.assemble(*(_block(node, node.name == selected) for node in shown), (more, FAINT))


def _block(node: NodeShape, selected: bool) -> tuple[str, str]:
    if node.mark in _MARKS:
        return _MARKS[node.mark], SELECTED if selected else BAD
    level = _LEVELS[min(int(node.fullness * len(_LEVELS)), len(_LEVELS) - 1)]
    return level, SELECTED if selected else BAD if node.fullness > 0.9 else GOOD if node.pods else FAINT
