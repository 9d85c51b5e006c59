"""The story of a sandbox in lines; below it on a terminal the live picture: addresses, nodes, pods, what waits and why.

The story and the decisions scroll above it as in a pipe. The web page is the place to look around and to ask.
"""

from __future__ import annotations

import asyncio
import os
import textwrap
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import groupby, zip_longest
from typing import NamedTuple

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from kubesched.api.kinds import PODS
from kubesched.api.pod import Pod
from kubesched.api.well_known import ZONE
from kubesched.ask.output import agreeing, counted, listed
from kubesched.cli.grid import STRONG, Grid
from kubesched.cli.printing import BAD, FAINT, GOOD, bar, heading, note, paragraph, print_rows, with_bars
from kubesched.scheduler.scheduler import Scheduler
from kubesched_sandbox.box import Sandbox
from kubesched_sandbox.chronicle import EVICTED, Chronicle, Entry
from kubesched_sandbox.nodes.manifests import FAILED

_CPU, _MEMORY = 0, 1
_BAR_WIDTH = 12
"""Leaves room for remarks on a terminal of 80 columns."""
_MOST_NODES = 20


def hints_for(nodes: Sequence[str]) -> tuple[str, ...]:
    """Commands for those who start with an empty cluster of these nodes; a scenario has commands of its own."""
    create, explain = "kubectl create deploy web --image=nginx --replicas=50", "kubesched explain deployment/web"
    if not nodes:
        return create, explain
    # A node that loses touch is healed by `kubesched.io/failed-`.
    fail = f"kubectl annotate node {nodes[-1]} {FAILED}=true"
    return create, f"kubectl drain {nodes[0]} --ignore-daemonsets", fail, explain


ITS_TURN = "waits for its turn"
ANOTHER_SCHEDULER = "waits for another scheduler: the sandbox's own is off"

_LOOK_SECONDS = 0.25
_AT_MOST_A_TENTH = 9
"""A large cluster takes long to draw: then the pauses are longer, so that nine tenths of the time are for it."""
_STORY_SHARE = 5
"""One line in so many of the terminal is left to the story above the picture."""
_ROOM_FOR_HINTS = 34
"""Lines from which on commands to try are always shown, not only while no story is told."""
_COLOURS = ("cyan", "magenta", "yellow", "blue", "bright_green", "bright_red", "bright_cyan", "bright_magenta")
_GAP = 2
_STATE_WIDTH = 6
_SQUARES_WIDTH = 4
_LOST = {"not-ready", "unreachable"}


# -- while it runs ----------------------------------------------------------------------------------------------------


def line(entry: Entry) -> Text:
    """A decision as one line of a story."""
    mark = (f"  {entry.outcome:<13} ", GOOD if entry.outcome == "bound" else BAD)
    return Text.assemble(f"{entry.at:6.1f}s", mark, f"{entry.pod}: {entry.text}")


def heading_of(text: str) -> Text:
    """What a story says, as a heading of what follows."""
    return Text.assemble("\n", (text, STRONG))


def print_beginning(out: Console, box: Sandbox, *, nodes: int, page: str, hints: Sequence[str]) -> None:
    """Where the cluster is, and what to do with it."""
    out.print(f"An API server with {counted(nodes, 'node')} at {box.server.url}")
    out.print(f"KUBECONFIG={box.kubeconfig}", soft_wrap=True)
    if page:
        out.print(f"Web page: {page}", soft_wrap=True)
    out.print(f"Try next, in another terminal, after export KUBECONFIG={box.kubeconfig}", soft_wrap=True)
    for hint in hints:
        out.print(f"  {hint}", soft_wrap=True)


# -- what it came to --------------------------------------------------------------------------------------------------


def so_far(chronicle: Chronicle) -> Text:
    """Counts of decisions and evictions so far, in the words of the story's lines."""
    outcomes, evictions = chronicle.outcomes, chronicle.evictions
    in_vain, repeated = outcomes["unschedulable"], outcomes["unschedulable"] - chronicle.told["unschedulable"]
    causes = ", ".join(f"{count} {cause}" for cause, count in sorted(evictions.items()))
    errors = chronicle.errors
    return Text.assemble(
        (f"{outcomes['bound']} bound", GOOD),
        ", ",
        (counted(in_vain, "unschedulable attempt"), BAD if in_vain else GOOD),
        f" ({repeated} that only {agreeing(repeated, 'repeat')} the last)" if repeated else "",
        f", {chronicle.victims} preempted, {outcomes[EVICTED]} evicted",
        f" ({causes})" if causes else "",
        (f", {counted(errors, 'error')}" if errors else "", BAD),
    )


def print_summary(out: Console, box: Sandbox) -> None:
    """Pods by phase, what the scheduler did, and how full the nodes are."""
    pods = box.api.select(PODS)
    phases = Counter(pod.get("status", {}).get("phase", "Unknown") for pod in pods)
    by_phase = ", ".join(f"{count} {phase.lower()}" for phase, count in sorted(phases.items())) or "none"
    counts = heading(f"{counted(len(pods), 'pod')}: ")
    out.print()
    paragraph(out, Text.assemble(counts, by_phase, ".  Scheduler: ", so_far(box.chronicle), "."))
    print_fullest(out, usage(box.scheduler), _MOST_NODES)


class NodeUsage(NamedTuple):
    """The requested share of a node, 1.0 being all of it."""

    name: str
    cpu: float
    memory: float
    pods: int
    remarks: tuple[str, ...]
    """cordoned, and the taints that evict, by the last part of their keys"""
    zone: str
    row: int


def usage(scheduler: Scheduler) -> list[NodeUsage]:
    """All nodes by name."""
    table = scheduler.state.nodes
    nodes = []
    for name in sorted(name for name, row in table.row_of.items() if table.live[row]):
        row = table.row_of[name]
        node = table.node(row)
        remarks = ["cordoned"] if node.spec.unschedulable else []
        remarks += [taint.key.rpartition("/")[2] for taint in node.spec.taints if taint.effect == "NoExecute"]
        offered, requested = table.allocatable[:, row], table.requested[:, row]
        cpu, memory = (float(requested[i] / offered[i]) if offered[i] else 0.0 for i in (_CPU, _MEMORY))
        zone = node.metadata.labels.get(ZONE, "")
        nodes.append(NodeUsage(name, cpu, memory, int(table.pod_count[row]), tuple(remarks), zone, row))
    return nodes


def print_fullest(out: Console, nodes: Sequence[NodeUsage], most: int) -> None:
    """So many nodes as a table, by name: those with remarks and the fullest; and what the others are like."""
    ranked = rank(nodes, most)
    shown = sorted(ranked[:most], key=lambda node: node.name)
    print_rows(out, with_bars(lambda length: _table(shown, length), out.width, _BAR_WIDTH))
    if ranked[most:]:
        note(out, _left_out(ranked[most:]))


def rank(nodes: Sequence[NodeUsage], most: int) -> list[NodeUsage]:
    """The nodes in the order in which they are worth one of so many rows: those with remarks, then the fullest."""
    ranked = sorted(nodes, key=lambda node: (not node.remarks, -node.cpu, -node.pods, node.name))
    if ranked[most:] and all(node.remarks for node in ranked[:most]):
        ranked.sort(key=lambda node: (-node.cpu, -node.pods, node.name))  # else it would be of these alone
    return ranked


def _left_out(nodes: Sequence[NodeUsage]) -> str:
    """How many nodes a table has no row for, and what would be seen there."""
    cpu, memory = max(node.cpu for node in nodes), max(node.memory for node in nodes)
    remarks = Counter(remark for node in nodes for remark in node.remarks)
    also = "".join(f", {count} {remark}" for remark, count in sorted(remarks.items()))
    return (
        f"and {counted(len(nodes), 'node')} more: at most {cpu:.0%} of CPU and {memory:.0%} of memory requested{also}"
    )


def _table(nodes: Sequence[NodeUsage], length: int) -> Grid:
    """Remarks have a column only where there are any: a narrow terminal has no room to spare."""
    requested = " requested" if length == _BAR_WIDTH else ""
    columns = ["Node", f"CPU{requested}", f"Memory{requested}", "Pods"]
    remarked = any(node.remarks for node in nodes)
    made = Grid([*columns, *(["Remarks"] if remarked else ())], right=(3,))
    for node in nodes:
        remarks = [Text(", ".join(node.remarks), style=BAD)] if remarked else []
        made.add(node.name, bar(node.cpu, length), bar(node.memory, length), str(node.pods), *remarks)
    return made


class Addresses(NamedTuple):
    """Where the sandbox is found, and what to try there; it stays the same while the picture is shown."""

    kubeconfig: str
    page: str = ""
    """The address of the web page."""
    warning: str = ""
    hints: tuple[str, ...] = ()
    """Commands to try next."""


class LiveView:
    """Draws one sandbox a few times a second; what is printed meanwhile goes above the picture."""

    def __init__(self, box: Sandbox, addresses: Addresses, saying: Callable[[], str]) -> None:
        self._box = box
        self._addresses = addresses
        self._saying = saying
        self._unprinted: list[RenderableType] = []

    def print(self, line: Text) -> None:
        """Print a line with the next drawing: thousands of decisions a second must not cost a drawing each."""
        self._unprinted.append(line)

    async def show(self) -> None:
        """Until this is cancelled; then the picture goes, and what was printed stays."""
        loop = asyncio.get_running_loop()
        # A screen is as large as it is, also where COLUMNS and LINES say how wide pages are to be.
        environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
        screen = Console(markup=False, highlight=False, emoji=False, _environ=environment)
        with Live(console=screen, auto_refresh=False, transient=True) as live:
            try:
                while True:
                    began = loop.time()
                    lines = draw(self._box, self._addresses, self._saying(), *screen.size)
                    live.update(Group(*lines))
                    self._flush(screen)
                    live.refresh()
                    await asyncio.sleep(max(_LOOK_SECONDS, (loop.time() - began) * _AT_MOST_A_TENTH))
            finally:
                self._flush(screen)

    def _flush(self, screen: Console) -> None:
        if self._unprinted:
            screen.print(*self._unprinted, sep="\n")
            self._unprinted.clear()


def draw(box: Sandbox, addresses: Addresses, saying: str, width: int, height: int) -> list[Text]:
    """The picture as lines, none of them wider; together they leave the story a few lines of the terminal."""
    waiting, places = _waiting(box)
    nodes = usage(box.scheduler)
    placed = sum(node.pods for node in nodes)
    counts = f"{counted(len(nodes), 'node')}, {counted(placed, 'pod')} placed, {sum(places.values())} waiting"
    head = Text.assemble(("── sandbox", STRONG), f"  {counts}  {box.chronicle.now():.0f}s ", no_wrap=True)
    head.append("─" * (width - head.cell_len), style=FAINT)
    lines = [Text(), head]
    if addresses.page:
        lines += _wrapped(f"open {addresses.page}", width, f"link {addresses.page}")
    lines += _wrapped(f"export KUBECONFIG={addresses.kubeconfig}", width)
    lines += _wrapped(addresses.warning, width, BAD)
    lines += _wrapped(saying or "The cluster is yours. Ctrl-C ends it.", width, STRONG)
    if height >= _ROOM_FOR_HINTS or not saying:
        lines += [Text.assemble(("try  ", FAINT), hint) for hint in addresses.hints if len(hint) + 5 <= width]
    foot = _wrapped(f"So far {so_far(box.chronicle).plain}", width, FAINT)
    room = height - height // _STORY_SHARE - len(lines) - len(foot)
    reasons = [line for reason, pods in waiting for line in _reason(reason, pods, width)]
    zones = _zones(box, nodes, width, room - min(len(reasons), room // 2) - 1)
    lines += zones
    if reasons:
        where = ", ".join(f"{count} {place}" for place, count in sorted(places.items()))
        lines.append(Text.assemble(("Waiting  ", STRONG), (where, FAINT)))
        lines += reasons[: max(room - len(zones) - 1, 0)]
    lines += foot
    for line in lines:
        line.truncate(width, overflow="ellipsis")  # names may be longer than any line
    return lines


def _wrapped(text: str, width: int, style: str = "") -> list[Text]:
    """Whole words; a path that is longer than a line goes on in the next."""
    return [Text(line, style=style) for line in textwrap.wrap(text, width, break_on_hyphens=False)]


# -- who waits --------------------------------------------------------------------------------------------------------


def _waiting(box: Sandbox) -> tuple[list[tuple[str, list[str]]], Counter[str]]:
    """Reasons with the pods that wait for them, the most frequent first; and how many pods wait where in the queue."""
    pods_by_reason: dict[str, list[str]] = {}
    counts: Counter[str] = Counter()
    otherwise = ITS_TURN if box.schedules else ANOTHER_SCHEDULER
    for name, places in box.scheduler.queue.places().items():
        for queued in (queued for place in places for queued in place):
            counts["gated" if queued.is_gated else name] += 1
            gate = f"held back by {queued.gating_plugin}" if queued.is_gated else ""
            reason = gate or box.chronicle.why_waiting(queued.key) or otherwise
            pods_by_reason.setdefault(reason, []).append(queued.key)
    return sorted(pods_by_reason.items(), key=lambda item: (-len(item[1]), item[0])), counts


def _reason(reason: str, pods: list[str], width: int) -> list[Text]:
    names = listed(sorted(pods), most=1)
    return [
        Text(f"{counted(len(pods), 'pod')}  {names}"),
        *(Text(f"  {line.plain}", style=BAD) for line in _wrapped(reason, width - 2)),
    ]


# -- nodes ------------------------------------------------------------------------------------------------------------


def _zones(box: Sandbox, nodes: Sequence[NodeUsage], width: int, height: int) -> list[Text]:
    """Zones side by side, below each name its nodes; where there is no room for all, how many more there are."""
    if not nodes or height < 3:
        return []
    zones = [(zone, list(members)) for zone, members in groupby(sorted(nodes, key=_place), key=lambda node: node.zone)]
    names = max(len(node.name) for node in nodes)
    fitting = max((width + _GAP) // (names + _STATE_WIDTH + _SQUARES_WIDTH + 2 + _GAP), 1)
    columns = min(len(zones), fitting)
    across = (width - _GAP * (columns - 1)) // columns
    left_out = sum(len(members) for _, members in zones[columns:])
    most = height - 1 - (left_out > 0)
    stacks = []
    for zone, members in zones[:columns]:
        rule = Text.assemble(("── ", FAINT), (zone or "nodes", STRONG), (f" {len(members)} ", FAINT))
        rule.append("─" * max(across - rule.cell_len, 0), style=FAINT)
        tall = len(_node(box, members[0], names, across))
        shown = members
        if len(members) * tall > most:
            rows = max((most - 1) // tall, 0)
            shown = sorted(rank(members, rows)[:rows], key=_place)
        cells = [line for node in shown for line in _node(box, node, names, across)]
        more = [Text(f"and {len(members) - len(shown)} more", style=FAINT)] if len(shown) < len(members) else []
        stacks.append([rule, *cells, *more])
    lines = [_beside(row, across) for row in zip_longest(*stacks, fillvalue=Text())]
    if left_out:
        lines.append(Text(f"and {counted(left_out, 'node')} in {len(zones) - columns} more zones", style=FAINT))
    return lines


def _place(node: NodeUsage) -> tuple[str, str]:
    return node.zone, node.name


def _node(box: Sandbox, node: NodeUsage, names: int, width: int) -> list[Text]:
    """The name, how full it is or what is the matter with it, a square per pod; a long name in its own lines."""
    state = _short(node.remarks) if node.remarks else f"{max(node.cpu, node.memory):.0%}"
    style = BAD if node.remarks or max(node.cpu, node.memory) > 0.9 else GOOD
    name, line = node.name.ljust(names), Text.assemble((state.rjust(_STATE_WIDTH), style), " ")
    above: list[Text] = []
    if names + 1 + line.cell_len + _SQUARES_WIDTH > width:
        above = [Text(name[i : i + width], style=STRONG) for i in range(0, names, width)]
    else:
        line = Text.assemble((name, STRONG), " ", line)
    room = width - line.cell_len
    pods = sorted((placed.pod for placed in box.scheduler.state.pods.pods_on(node.row)), key=lambda pod: pod.key)
    if len(pods) <= room:
        return [*above, line.append_text(Text.assemble(*map(_square, pods)))]
    number = counted(len(pods), "pod")
    return [*above, line.append(number if len(number) <= room else str(len(pods)))]


def _short(remarks: Sequence[str]) -> str:
    """The most important remark about a node, in one word for a narrow terminal."""
    if not _LOST.isdisjoint(remarks):
        return "down"
    return "cordon" if "cordoned" in remarks else "taint"


def _square(pod: Pod) -> tuple[str, str]:
    """Full while the pod runs, hollow while it starts, hatched while it leaves; pods of one owner in one colour."""
    shape = "▨" if pod.is_terminating else "■" if pod.status.phase == "Running" else "□"
    owner = pod.metadata.controller
    return shape, _COLOURS[sum((pod.name if owner is None else owner.name).encode()) % len(_COLOURS)]


def _beside(cells: Sequence[Text], across: int) -> Text:
    line = Text()
    for cell in cells:
        cell.truncate(across, overflow="ellipsis", pad=True)
        line.append_text(cell).append(" " * _GAP)
    line.rstrip()
    return line
