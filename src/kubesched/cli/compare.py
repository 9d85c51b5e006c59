"""`kubesched compare`: what would change with another policy?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click
from rich.text import Text

from kubesched.cli.changes import change_options, changed_manifests
from kubesched.cli.offline import (
    TEXT,
    feature_gates_option,
    output_option,
    policy_of,
    seed_option,
)
from kubesched.cli.printing import FAINT, console, counted, heading, print_plain, print_skipped, table
from kubesched.cli.simulate import moment, run
from kubesched.cli.source import source_options
from kubesched.config import Features
from kubesched.questions.answers import Skipped, answer
from kubesched.simulate.report import Comparison, title_of
from kubesched.simulate.report import compare as put_side_by_side

MOST_ROWS = 20


def _percent(share: float) -> str:
    return f"{share:.1%}"


def _plain(number: float) -> str:
    return f"{number:,.0f}"


FIGURES: dict[str, tuple[str, Callable[[float], str]]] = {
    "placed": ("Pods placed", _plain),
    "pending": ("Pods pending at the end", _plain),
    "finished": ("Pods finished", _plain),
    "preemptions": ("Preemptions", _plain),
    "evicted": ("Pods evicted", _plain),
    "attempts": ("Attempts", _plain),
    "seconds": ("Virtual time", moment),
    "mean_wait": ("Mean wait for a node", moment),
    "longest_wait": ("Longest wait for a node", moment),
    "nodes_used": ("Nodes used", _plain),
}


@click.command()
@source_options
@click.option(
    "--config",
    "configs",
    multiple=True,
    required=True,
    help="KubeSchedulerConfiguration to compare. Can be repeated; a single one is compared with that of the "
    "scheduler in charge of the live cluster or the snapshot, where it can be found, else with the default.",
)
@feature_gates_option
@seed_option
@change_options
@output_option()
@click.option("--all-pods", is_flag=True, help=f"Show every pod that differs, even if there are more than {MOST_ROWS}.")
def compare(
    files: tuple[str, ...],
    configs: tuple[str, ...],
    features: Features,
    seed: int,
    output: str,
    all_pods: bool,
) -> None:
    """Simulate the cluster once per configuration, and show the results side by side."""
    policies = [policy_of(file, features) for file in ((None, *configs) if len(configs) == 1 else configs)]
    manifests = changed_manifests(files, *policies)
    reports = [run(manifests, policy, seed) for policy in policies]
    found = put_side_by_side([policy.name for policy in policies], reports)
    if output != TEXT:
        print_plain(answer(found, Skipped(manifests.skipped)), output)
        return
    _print(found, most=found.pods if all_pods else MOST_ROWS)
    print_skipped(console(), manifests.skipped)


def _print(found: Comparison, *, most: int) -> None:
    out, names = console(), _short(found.policies)
    rows = table("", *names, right=names)
    for key, (title, shown) in FIGURES.items():
        values = [shown(getattr(figures, key)) for figures in found.figures]
        same = len(set(values)) == 1
        rows.add_row(title, *values, style=FAINT if same else "")
    for title, shares in (
        ("requested, mean", [figures.mean for figures in found.figures]),
        ("deviation between nodes", [figures.spread for figures in found.figures]),
    ):
        for name in shares[0]:
            values = [_percent(each.get(name, 0.0)) for each in shares]
            rows.add_row(f"{title_of(name)}, {title}", *values, style=FAINT if len(set(values)) == 1 else "")
    out.print(rows)
    out.print()
    if not found.differences:
        out.print(Text(f"All {counted(found.pods, 'pod')} are treated alike."))
        return
    out.print(heading(f"{len(found.differences)} of {counted(found.pods, 'pod')} end up elsewhere"))
    rows = table("Pod", *names)
    for difference in found.differences[:most]:
        rows.add_row(difference.pod, *(node or "pending" for node in difference.nodes))
    out.print(rows)
    if len(found.differences) > most:
        out.print(heading(f"... and {len(found.differences) - most} more (--all-pods shows them)"))


def _short(policies: tuple[str, ...]) -> list[str]:
    """The names of the files, or their paths if those are alike; the same file twice is numbered."""
    names = [Path(policy).name for policy in policies]
    if len(set(names)) == len(names):
        return names
    if len(set(policies)) == len(policies):
        return list(policies)
    return [f"{i}: {policy}" for i, policy in enumerate(policies, 1)]
