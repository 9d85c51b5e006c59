"""What becomes of a pod group, as a part of a page: how many of its pods fit where, and what would help."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from kubesched.cli.layout import Grid, note, paragraph
from kubesched.cli.printing import BAD, GOOD, STRONG, heading
from kubesched.questions.explain.pod_groups import GroupExplanation
from kubesched.questions.explain.words import nodes_that_help, outcome_of_group
from kubesched.questions.wording import counted


def print_group(out: Console, it: GroupExplanation) -> None:
    """The outcome, a line for each placement, and the nodes with which the group would be scheduled."""
    fits = max((each.fits for each in it.placements), default=0)
    running = f", {it.running} are running" if it.running else ""
    words = f"  {fits} of {counted(it.waiting, 'waiting pod')} fit{running}; it needs {it.needed}"
    out.print(Text.assemble((f"podgroup {it.group}", STRONG), words), soft_wrap=True)
    paragraph(out, outcome_of_group(it), GOOD if it.outcome == "scheduled" else BAD)
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
            paragraph(out, nodes_that_help(help_), first="- ", rest="  ")
