"""What became of it all: the summary at the end of a sandbox."""

from __future__ import annotations

from collections import Counter

from rich.console import Group, RenderableType
from rich.text import Text

from kubesched.api.kinds import PODS
from kubesched.cli.printing import BAD, GOOD, counted, heading
from kubesched.cli.sandbox_view import fullest
from kubesched.sandbox.box import Sandbox
from kubesched.sandbox.usage import usage

_MOST_NODES = 20


def summary(box: Sandbox) -> RenderableType:
    """Pods by phase, attempts by outcome, and how full the nodes are."""
    pods = box.api.select(PODS)
    phases = Counter(pod.get("status", {}).get("phase", "Unknown") for pod in pods)
    outcomes, errors = box.chronicle.outcomes, box.chronicle.errors
    told = ", ".join(f"{count} {phase.lower()}" for phase, count in sorted(phases.items())) or "none"
    head = Text.assemble(
        "\n",
        heading(f"{counted(len(pods), 'pod')}: "),
        told,
        ".  Scheduler: ",
        (f"{outcomes['bound']} bound", GOOD),
        ", ",
        (f"{outcomes['unschedulable']} times no node", BAD if outcomes["unschedulable"] else GOOD),
        f", {box.chronicle.victims} evicted",
        (f", {counted(errors, 'error')}" if errors else "", BAD),
        ".",
    )
    return Group(head, Text(), fullest(usage(box.scheduler), _MOST_NODES))
