"""The sandbox on a terminal: nodes with usage bars, the queue, and the last decisions with their reasons."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from kubesched.cli.printing import BAD, FAINT, GOOD, STRONG, bar, table
from kubesched.sandbox.box import Sandbox
from kubesched.sandbox.chronicle import Entry
from kubesched.sandbox.usage import NodeUsage, usage, waiting

_MOST_NODES = 16
_LINES_AROUND = 14
"""Lines that everything but nodes and decisions takes."""


def view(sandbox: Sandbox, *, height: int, saying: str = "", warning: str = "") -> RenderableType:
    """What to show now on a terminal of that many lines."""
    nodes = usage(sandbox.scheduler)
    shown = min(len(nodes), _MOST_NODES, max(height // 3, 3))
    parts: list[RenderableType] = [_head(sandbox)]
    if warning:
        parts.append(Text(warning, style=BAD))
    if saying:
        parts.append(Panel(Text(saying), expand=False, border_style=STRONG))
    parts += [_nodes(nodes, shown), _queue(sandbox), _decisions(sandbox, max(height - shown - _LINES_AROUND, 3))]
    return Group(*parts)


def _head(sandbox: Sandbox) -> Text:
    command = f"kubectl --kubeconfig {sandbox.kubeconfig} get pods -A -o wide"
    title = (("kubesched sandbox ", STRONG), sandbox.server.url, ("  Ctrl-C ends it", FAINT))
    return Text.assemble(*title, "\n", ("try: ", FAINT), command)


def _nodes(nodes: list[NodeUsage], shown: int) -> RenderableType:
    fullest = sorted(nodes, key=lambda node: (not node.remarks, -node.cpu, node.name))[:shown]
    made = node_table(sorted(fullest, key=lambda node: node.name))
    if len(nodes) <= shown:
        return made
    return Group(made, Text(f"and {len(nodes) - shown} nodes that are emptier", style=FAINT))


def node_table(nodes: list[NodeUsage]) -> Table:
    """How full these nodes are."""
    made = table("Node", "CPU requested", "Memory requested", "Pods", "Remarks", right=("Pods",))
    for node in nodes:
        remarks = Text(", ".join(node.remarks), style=BAD)
        made.add_row(Text(node.name), bar(node.cpu), bar(node.memory), str(node.pods), remarks)
    return made


def _queue(sandbox: Sandbox) -> Text:
    counts, outcomes = waiting(sandbox.scheduler), sandbox.chronicle.outcomes
    return Text.assemble(
        "\n",
        ("Queue  ", STRONG),
        f"active {counts.active}  backoff {counts.backoff}  unschedulable {counts.unschedulable}  gated {counts.gated}",
        ("   So far  ", STRONG),
        f"bound {outcomes['bound']}  rejected {outcomes['unschedulable']}  evicted {sandbox.chronicle.victims}",
        "\n",
    )


def _decisions(sandbox: Sandbox, shown: int) -> RenderableType:
    made = table("When", "Pod", "Decision")
    for entry in list(sandbox.chronicle.entries)[-shown:]:
        text = Text(entry.text, style="" if entry.outcome == "bound" else BAD, no_wrap=True, overflow="ellipsis")
        made.add_row(f"{entry.at:.1f}s", Text(entry.pod), text)
    return made


def line(entry: Entry) -> Text:
    """A decision as one line of a story."""
    mark = (f"  {entry.outcome:<13} ", GOOD if entry.outcome == "bound" else BAD)
    return Text.assemble(f"{entry.at:6.1f}s", mark, f"{entry.pod}: {entry.text}")
