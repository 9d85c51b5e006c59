"""The sandbox in lines: decisions as they are made, commands to try, and what it all came to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from kubesched.api.kinds import PODS
from kubesched.api.well_known import ZONE
from kubesched.ask.wording import counted
from kubesched.cli.printing import BAD, FAINT, GOOD, STRONG, bar, heading, table
from kubesched.sandbox.box import Sandbox
from kubesched.sandbox.chronicle import EVICTED, Chronicle, Entry
from kubesched.scheduler.scheduler import Scheduler

_CPU, _MEMORY = 0, 1
_BAR_WIDTH = 12
"""Leaves room for remarks on a terminal of 80 columns."""
_SHORT_BAR, _NARROW = 5, 80
_MOST_NODES = 20

TRY_NEXT = (
    "kubectl create deploy web --image=nginx --replicas=50",
    "kubectl drain node-0 --ignore-daemonsets",
    "kubesched explain deployment/web",
)
"""For those who start with an empty cluster; a scenario has commands of its own."""


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
    """What the scheduler did and what befell its pods, in the words of the story's lines and as many as those."""
    outcomes, evictions = chronicle.outcomes, chronicle.evictions
    in_vain = outcomes["unschedulable"]
    causes = ", ".join(f"{count} {cause}" for cause, count in sorted(evictions.items()))
    errors = chronicle.errors
    return Text.assemble(
        (f"{outcomes['bound']} bound", GOOD),
        ", ",
        (counted(in_vain, "unschedulable attempt"), BAD if in_vain else GOOD),
        f" ({chronicle.told['unschedulable']} for a new reason)" if in_vain else "",
        f", {chronicle.victims} preempted, {outcomes[EVICTED]} evicted",
        f" ({causes})" if causes else "",
        (f", {counted(errors, 'error')}" if errors else "", BAD),
    )


def summary(box: Sandbox, width: int) -> RenderableType:
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
    return Group(head, Text(), fullest(usage(box.scheduler), _MOST_NODES, width))


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


def fullest(nodes: list[NodeUsage], most: int, width: int) -> RenderableType:
    """So many nodes as a table, by name: those with remarks and the fullest; and how many others there are."""
    ranked = sorted(nodes, key=lambda node: (not node.remarks, -node.cpu, -node.pods, node.name))
    made = _table(sorted(ranked[:most], key=lambda node: node.name), width)
    if len(nodes) <= most:
        return made
    return Group(made, Text(f"and {counted(len(nodes) - most, 'node')} more, none of them fuller", style=FAINT))


def _table(nodes: list[NodeUsage], width: int) -> Table:
    """Remarks have a column only where there are any: a narrow terminal has no room to spare."""
    columns = ["Node", "CPU requested", "Memory requested", "Pods"]
    remarked = any(node.remarks for node in nodes)
    if width < _NARROW:
        columns[1:3] = ["CPU", "Memory"]
    made = table(*columns, *(["Remarks"] if remarked else ()), right=("Pods",))
    for node in nodes:
        length = _SHORT_BAR if width < _NARROW else _BAR_WIDTH
        remarks = [Text(", ".join(node.remarks), style=BAD, no_wrap=True, overflow="ellipsis")] if remarked else []
        made.add_row(Text(node.name), bar(node.cpu, length), bar(node.memory, length), str(node.pods), *remarks)
    return made
