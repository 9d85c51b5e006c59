"""What becomes of a pod group, as a part of a page: how many of its pods fit where, and what would help."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from kubesched.cli.layout import Grid, note, paragraph
from kubesched.cli.printing import BAD, GOOD, STRONG, counted, heading, listed
from kubesched.questions.explain.pod_groups import GroupExplanation, GroupHelp


def print_group(out: Console, it: GroupExplanation) -> None:
    """The outcome, a line for each placement, and the nodes with which the group would be scheduled."""
    fits = max((each.fits for each in it.placements), default=0)
    running = f", {it.running} are running" if it.running else ""
    words = f"  {fits} of {counted(it.waiting, 'waiting pod')} fit{running}; it needs {it.needed}"
    out.print(Text.assemble((f"podgroup {it.group}", STRONG), words), soft_wrap=True)
    paragraph(out, _outcome(it), GOOD if it.outcome == "scheduled" else BAD)
    if it.message:
        paragraph(out, it.message)
    if it.outcome == "scheduled":
        return
    out.print()
    titles = (it.topology_key or "Placement", "Nodes", "Fit", "Lacks", "Pod that does not", "Nearest miss")
    rows = Grid(titles, right=(1, 2))
    for each in it.placements:
        lacks = ", ".join(f"{lack.amount} {lack.resource}" for lack in each.lacking)
        rows.add(each.name or "all nodes", str(each.nodes), str(each.fits), lacks, each.first_without, each.why)
    if it.placements:
        rows.print(out)
    if it.not_shown:
        note(out, f"... and {counted(it.not_shown, 'more placement')}")
    if it.pools:
        out.print()
        out.print(heading("What would help the whole group"))
        for help_ in it.pools:
            paragraph(out, _pool_text(help_), first="- ", rest="  ")


def _outcome(it: GroupExplanation) -> str:
    if it.outcome == "scheduled":
        return "The group is scheduled."
    if it.outcome == "gated":
        return "The group is held back:"
    if it.outcome == "error":
        return "Something is wrong with the group:"
    if it.would_evict:
        return f"The group waits until the scheduler has made room for it, by evicting {listed(it.would_evict)}:"
    return "The group waits as a whole:"


def _pool_text(help_: GroupHelp) -> str:
    where = f" in {listed(help_.zones)}" if help_.zones else ""
    return f"{counted(help_.nodes, 'more node')} of pool {help_.pool}{where}."
