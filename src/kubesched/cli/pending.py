"""Groups of pending pods as a page to read."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from kubesched.cli.layout import paragraph
from kubesched.cli.printing import BAD, FAINT, GOOD, STRONG
from kubesched.questions.pending import PendingGroup, PendingPods
from kubesched.questions.wording import counted, listed

MOST_REMEDIES = 5


def print_pending(out: Console, answer: PendingPods) -> None:
    """How many find a node; then, group by group, what the others wait for and what would help."""
    waiting = sum(len(group.pods) for group in answer.groups)
    total = counted(len(answer.placed) + waiting, "pending pod")
    text = Text.assemble(
        f"{total} on {counted(answer.nodes, 'node')}: ",
        (f"{len(answer.placed)} would find a node now", GOOD),
        ", ",
        (f"{waiting} would not", BAD if waiting else FAINT),
    )
    out.print(text, soft_wrap=True)
    for group in answer.groups:
        out.print()
        _print_group(out, group)


def _print_group(out: Console, group: PendingGroup) -> None:
    paragraph(out, f"{counted(len(group.pods), 'pod')}: {group.why}", STRONG)
    paragraph(out, listed(group.pods), FAINT, first="  ", rest="  ")
    for text in group.help_for_all:
        paragraph(out, text, first="  - ", rest="    ")
    found = group.help_for_first[:MOST_REMEDIES]
    if found:
        paragraph(out, f"What would help {group.pods[0]}:", first="  ", rest="  ")
    for text in found:
        paragraph(out, text, first="  - ", rest="    ")
