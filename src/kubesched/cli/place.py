"""`kubesched place`: where would all pending pods go?"""

from __future__ import annotations

from dataclasses import replace

import click
from rich.console import Console
from rich.text import Text

from kubesched.ask.answers import Skipped, answer
from kubesched.ask.html import placement_page
from kubesched.ask.output import counted, listed
from kubesched.cli.cluster_options import (
    TEXT,
    cluster_of,
    output_option,
    plugin_errors_reported,
    simulation_options,
)
from kubesched.cli.cluster_source import ClusterSource
from kubesched.cli.grid import Grid
from kubesched.cli.printing import BAD, FAINT, GOOD, console, paragraph, print_plain, print_rows, print_skipped
from kubesched.config import Features
from kubesched.simulate.placement import PlacementReport, UnplacedPod
from kubesched.simulate.placement import place as place_all

MOST_ROWS = 40


@click.command()
@simulation_options
@output_option("html")
@click.option("-n", "--namespace", "only", default="", help="Show only pods of this namespace; all are placed.")
@click.option("--all-pods", is_flag=True, help=f"Show every pod, even if there are more than {MOST_ROWS}.")
def place(
    source: ClusterSource,
    config_file: str | None,
    features: Features,
    seed: int,
    output: str,
    only: str,
    all_pods: bool,
) -> None:
    """Place all pending pods, and those that workloads lack, one after another, and show where they go.

    One pass in the order of the queue. No pod is evicted; the output says which pods preemption would evict.
    """
    cluster, manifests = cluster_of(source, config_file, features, seed)
    with plugin_errors_reported():
        report = place_all(cluster)
    if only:
        report = replace(
            report,
            placed=tuple(pod for pod in report.placed if pod.pod.startswith(f"{only}/")),
            unplaced=tuple(pod for pod in report.unplaced if pod.pod.startswith(f"{only}/")),
        )
    if output == "html":
        click.echo(placement_page(report), nl=False)
        return
    if output != TEXT:
        print_plain(answer(report, Skipped(manifests.skipped)), output)
        return
    out = console()
    most = len(cluster.pods) if all_pods else MOST_ROWS
    _print_summary(out, report)
    if report.placed:
        _print_placed(out, report, most)
    if report.unplaced:
        _print_unplaced(out, report.unplaced, most)
    print_skipped(out, manifests.skipped)


def _print_summary(out: Console, report: PlacementReport) -> None:
    total = len(report.placed) + len(report.unplaced)
    text = Text.assemble(
        f"{counted(total, 'pending pod')} on {counted(report.nodes, 'node')}: ",
        (f"{len(report.placed)} placed", GOOD),
        ", ",
        (f"{len(report.unplaced)} not placed", BAD if report.unplaced else FAINT),
    )
    paragraph(out, text)


def _print_placed(out: Console, report: PlacementReport, most: int) -> None:
    rows = Grid(("Placed", "Priority", "Node", "Score", "Nodes that fit"), right=(1, 3))
    for placed in report.placed[:most]:
        node = Text(placed.node, style=GOOD)
        score = str(placed.score) if placed.feasible > 1 else "-"  # a single node that fits needs no score
        drawn = f", drawn among {placed.ties} equals" if placed.ties > 1 else ""
        rows.add(placed.pod, str(placed.priority), node, score, f"{placed.feasible} of {report.nodes}{drawn}")
    print_rows(out, rows, len(report.placed) - most)


def _print_unplaced(out: Console, unplaced: tuple[UnplacedPod, ...], most: int) -> None:
    rows = Grid(("Not placed", "Priority", "Why"), right=(1,), spaced=True)
    for pod in unplaced[:most]:
        rows.add(pod.pod, str(pod.priority), _why(pod))
    print_rows(out, rows, len(unplaced) - most)


def _why(pod: UnplacedPod) -> Text:
    text = Text(pod.message)
    if pod.eviction is not None:
        victims = listed([f"{victim.pod} (priority {victim.priority})" for victim in pod.eviction.victims])
        text.append(f"\nPreemption would help: {pod.eviction.node}, by evicting {victims}.", style=GOOD)
        if pod.eviction.budget_violations:
            broken = counted(pod.eviction.budget_violations, "victim")
            text.append(f" {broken} against a disruption budget.", style=BAD)
    return text
