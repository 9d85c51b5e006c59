"""All pending pods as one page of HTML that needs nothing else: what they wait for, and what would help."""

from __future__ import annotations

from kubesched.questions.pending import PendingGroup, PendingPods
from kubesched.questions.wording import counted
from kubesched.simulate.plots import bars, bullets, cards, paragraphs, section, table, whole_page

MOST_BARS = 40
_LABEL = 560
"""Reasons are long."""


def page(found: PendingPods, *, made: str) -> str:
    """The whole page; `made` says when it was made."""
    waiting = sum(len(group.pods) for group in found.groups)
    sections = [
        cards({"would find a node now": str(len(found.placed)), "would not": str(waiting), "nodes": str(found.nodes)}),
        _causes(found),
        *map(_group, found.groups),
        _placed(found),
    ]
    title = f"{counted(len(found.placed) + waiting, 'pending pod')} on {counted(found.nodes, 'node')}"
    return whole_page(title, f"What becomes of pods that have no node yet, on {made}.", sections)


def _causes(found: PendingPods) -> str:
    if not found.groups:
        return ""
    most = len(found.groups[0].pods)
    rows = [
        (group.why, [("c", len(group.pods) / most, counted(len(group.pods), "pod"))])
        for group in found.groups[:MOST_BARS]
    ]
    return section("Why they wait", bars(rows, label_width=_LABEL))


def _group(group: PendingGroup) -> str:
    first = f"What would help {group.pods[0]}:" if group.help_for_first else ""
    inside = [
        paragraphs(group.message),
        bullets(group.help_for_all) if group.help_for_all else "",
        paragraphs(first) + bullets(group.help_for_first) if first else "",
        table(("Pod",), ((pod,) for pod in group.pods)),
    ]
    return section(f"{counted(len(group.pods), 'pod')}: {group.why}", "".join(inside))


def _placed(found: PendingPods) -> str:
    rows = ((each.pod, each.node) for each in found.placed)
    return section("Would find a node now", table(("Pod", "Node"), rows)) if found.placed else ""
