"""The sandbox on a terminal: nodes with usage bars, the queue, the last decisions with their reasons, and a summary."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from kubesched.api.kinds import PODS
from kubesched.cli.printing import BAD, FAINT, GOOD, STRONG, bar, counted, heading, table
from kubesched.sandbox.box import Sandbox
from kubesched.sandbox.chronicle import EVICTED, Chronicle, Entry
from kubesched.scheduler.scheduler import Scheduler

_CPU, _MEMORY = 0, 1


class NodeUsage(NamedTuple):
    """The requested share of a node, 1.0 being all of it."""

    name: str
    cpu: float
    memory: float
    pods: int
    remarks: tuple[str, ...]


class Waiting(NamedTuple):
    """How many pods are where in the queue."""

    active: int
    backoff: int
    unschedulable: int
    gated: int


def usage(scheduler: Scheduler) -> list[NodeUsage]:
    """All nodes by name."""
    table = scheduler.state.nodes
    found = []
    for name in sorted(name for name, row in table.row_of.items() if table.live[row]):
        row = table.row_of[name]
        node = table.node(row)
        remarks = ["cordoned"] if node.spec.unschedulable else []
        remarks += [taint.key.rpartition("/")[2] for taint in node.spec.taints if taint.effect == "NoExecute"]
        shares = [
            float(table.requested[i, row] / table.allocatable[i, row]) if table.allocatable[i, row] else 0.0
            for i in (_CPU, _MEMORY)
        ]
        found.append(NodeUsage(name, shares[_CPU], shares[_MEMORY], int(table.pod_count[row]), tuple(remarks)))
    return found


def waiting(scheduler: Scheduler) -> Waiting:
    queue = scheduler.queue
    pool = queue.unschedulable()
    gated = sum(1 for queued in pool if queued.gating_plugin)
    backoff = len(queue.backoff()) + len(queue.error_backoff())
    return Waiting(len(queue.active()), backoff, len(pool) - gated, gated)


_MOST_NODES = 16
_BAR_WIDTH = 12
"""Leaves room for remarks on a terminal of 80 columns."""
_TABLE_HEAD = 2
_COLUMN_GAP = 3
_NARROWEST = 20
_ROOM_FOR_A_FRAME = 30
"""Lines from which on a frame around what is said takes no room from the rest."""


def view(sandbox: Sandbox, screen: Console, *, saying: str = "", warning: str = "", page: str = "") -> RenderableType:
    """What to show now, cut to what that screen has room for."""
    said = _said(saying, framed=screen.height >= _ROOM_FOR_A_FRAME)
    head, queue = [_head(sandbox, page), *([Text(warning, style=BAD)] if warning else ()), said], _queue(sandbox)
    taken = sum(len(screen.render_lines(part, pad=False)) for part in (*head, queue)) + 2 * _TABLE_HEAD
    nodes = usage(sandbox.scheduler)
    rows = max(screen.height - taken, 0)
    shown = min(len(nodes), _MOST_NODES, max(rows // 2, 1))
    left = rows - shown - (shown < len(nodes))
    return Group(*head, fullest(nodes, shown), queue, _decisions(sandbox, screen, max(left, 1)))


def _head(sandbox: Sandbox, page: str) -> RenderableType:
    title = (("kubesched sandbox ", STRONG), sandbox.server.url, ("  Ctrl-C ends it", FAINT))
    shown = ("\n", ("web page:  ", FAINT), page) if page else ()
    return Text.assemble(*title, "\n", ("elsewhere: ", FAINT), f"export KUBECONFIG={sandbox.kubeconfig}", *shown)


def _said(saying: str, *, framed: bool) -> RenderableType:
    if saying and framed:
        return Panel(Text(saying), expand=False, border_style=STRONG)
    return Text(f"\n{saying}\n" if saying else "", style=STRONG)


def fullest(nodes: list[NodeUsage], most: int) -> RenderableType:
    """So many nodes as a table, by name: those with remarks and the fullest; and how many others there are."""
    ranked = sorted(nodes, key=lambda node: (not node.remarks, -node.cpu, -node.pods, node.name))
    made = _table(sorted(ranked[:most], key=lambda node: node.name))
    if len(nodes) <= most:
        return made
    return Group(made, Text(f"and {counted(len(nodes) - most, 'node')} more, none of them fuller", style=FAINT))


def _table(nodes: list[NodeUsage]) -> Table:
    made = table("Node", "CPU requested", "Memory requested", "Pods", "Remarks", right=("Pods",))
    for node in nodes:
        remarks = Text(", ".join(node.remarks), style=BAD, no_wrap=True, overflow="ellipsis")
        bars = bar(node.cpu, _BAR_WIDTH), bar(node.memory, _BAR_WIDTH)
        made.add_row(Text(node.name), *bars, str(node.pods), remarks)
    return made


def _queue(sandbox: Sandbox) -> Text:
    if not sandbox.schedules:
        pending = waiting(sandbox.scheduler).active
        return Text(f"\nThe sandbox's own scheduler is off: {counted(pending, 'pod')} waiting for another.\n")
    counts = waiting(sandbox.scheduler)
    return Text.assemble(
        "\n",
        ("Queue  ", STRONG),
        f"active {counts.active}  backoff {counts.backoff}  unschedulable {counts.unschedulable}  gated {counts.gated}",
        ("\nSo far ", STRONG),
        so_far(sandbox.chronicle),
        "\n",
    )


def so_far(chronicle: Chronicle) -> Text:
    """What the scheduler did and what befell its pods, in the words of the story's lines and as many as those."""
    outcomes, evictions = chronicle.outcomes, chronicle.evictions
    in_vain = outcomes["unschedulable"]
    reasons = counted(chronicle.told["unschedulable"], "reason")
    causes = ", ".join(f"{count} {cause}" for cause, count in sorted(evictions.items()))
    errors = chronicle.errors
    return Text.assemble(
        (f"{outcomes['bound']} bound", GOOD),
        ", ",
        (counted(in_vain, "unschedulable attempt"), BAD if in_vain else GOOD),
        f" ({reasons})" if in_vain else "",
        f", {chronicle.victims} preempted, {outcomes[EVICTED]} evicted",
        f" ({causes})" if causes else "",
        (f", {counted(errors, 'error')}" if errors else "", BAD),
    )


def _decisions(sandbox: Sandbox, screen: Console, lines: int) -> RenderableType:
    made = table("When", "Pod", "Decision")
    for entry in _latest(list(sandbox.chronicle.entries)[-lines:], screen, lines):
        made.add_row(
            f"{entry.at:.1f}s", Text(entry.pod), Text(entry.text, style="" if entry.outcome == "bound" else BAD)
        )
    return made


def _latest(entries: list[Entry], screen: Console, lines: int) -> list[Entry]:
    """The last of these entries that so many lines have room for, reasons wrapped; at least one."""
    beside = max((len(f"{entry.at:.1f}s") + len(entry.pod) for entry in entries), default=0) + 2 * _COLUMN_GAP
    first = len(entries)
    for entry in reversed(entries):
        lines -= len(Text(entry.text).wrap(screen, max(screen.width - beside, _NARROWEST)))
        if lines < 0 and first < len(entries):
            break
        first -= 1
    return entries[first:]


def line(entry: Entry) -> Text:
    """A decision as one line of a story."""
    mark = (f"  {entry.outcome:<13} ", GOOD if entry.outcome == "bound" else BAD)
    return Text.assemble(f"{entry.at:6.1f}s", mark, f"{entry.pod}: {entry.text}")


_MOST_NODES_IN_SUMMARY = 20


def summary(box: Sandbox) -> RenderableType:
    """Pods by phase, what the scheduler did, and how full the nodes are."""
    pods = box.api.select(PODS)
    phases = Counter(pod.get("status", {}).get("phase", "Unknown") for pod in pods)
    by_phase = ", ".join(f"{count} {phase.lower()}" for phase, count in sorted(phases.items())) or "none"
    head = Text.assemble(
        "\n",
        heading(f"{counted(len(pods), 'pod')}: "),
        by_phase,
        ".  Scheduler: ",
        so_far(box.chronicle),
        ".",
    )
    return Group(head, Text(), fullest(usage(box.scheduler), _MOST_NODES_IN_SUMMARY))
