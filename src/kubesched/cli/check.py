"""`kubesched check`: can these nodes be drained or upgraded now, and what blocks it?"""

from __future__ import annotations

import sys

import click
from rich.text import Text

from kubesched.api.node import Node
from kubesched.ask.answers import answer
from kubesched.ask.edits import DrainNodes, UpgradeNodes
from kubesched.ask.html import readiness_page
from kubesched.ask.output import counted, listed
from kubesched.ask.readiness import ReadinessReport, Severity, check_readiness
from kubesched.cli.cluster_options import (
    manifests_of,
    output_option,
    plugin_errors_reported,
    scheduler_config,
    simulation_options,
)
from kubesched.cli.cluster_source import ClusterSource
from kubesched.cli.printing import BAD, FAINT, GOOD, console, note, paragraph, print_plain, progress_bar
from kubesched.config import Features
from kubesched.simulate.report import moment
from kubesched.simulate.rolling_upgrade import UpgradePace

DRAIN, UPGRADE = "drain", "upgrade"
_INDENT = "  "


@click.command()
@click.argument("operation", type=click.Choice([DRAIN, UPGRADE]))
@click.argument("nodes", nargs=-1, metavar="[NODE|KEY=VALUE]...")
@simulation_options
@click.option("--surge", type=click.IntRange(min=0), default=1, show_default=True, help="Nodes an upgrade adds first.")
@click.option("--strict", is_flag=True, help="The exit code is 1 where something is at risk, too.")
@output_option("html")
def check(
    operation: str,
    nodes: tuple[str, ...],
    source: ClusterSource,
    config_file: str | None,
    features: Features,
    seed: int,
    surge: int,
    strict: bool,
    output: str,
) -> None:
    """Check whether nodes can be drained or upgraded now: budgets, room, replicas, local data.

    Without nodes, an upgrade is of all of them. The exit code is 0 if nothing blocks it, 1 if something does, 2 if the
    cluster cannot be read. Nothing is written to the cluster.
    """
    if operation == DRAIN and not nodes:
        raise click.UsageError("drain: name the nodes, or a label as KEY=VALUE")
    config = scheduler_config(source, config_file, features)
    objects = manifests_of(source, config, workloads=True).objects
    named = nodes or tuple(obj.name for obj in objects if isinstance(obj, Node))
    edit = DrainNodes(named) if operation == DRAIN else UpgradeNodes(named, pace=UpgradePace(surge))
    with plugin_errors_reported(), progress_bar("Simulating") as progress:
        report = check_readiness(objects, config.settings, edit, seed=seed, progress=progress)
    match output:
        case "json" | "yaml":
            print_plain(answer(report), output)
        case "html":
            click.echo(readiness_page(report), nl=False)
        case _:
            _print(report)
    sys.exit(1 if not report.ready or (strict and report.findings) else 0)


def _print(report: ReadinessReport) -> None:
    out = console()
    verdict = ("ready", GOOD) if report.ready else ("not ready", BAD)
    text = f" to {report.operation} {counted(len(report.nodes), 'node')} with {counted(report.pods, 'pod')} to move"
    took = f", in {moment(report.seconds)}" if report.seconds is not None else ""
    paragraph(out, Text.assemble(verdict, text, took))
    for finding in report.findings:
        mark = ("blocks", BAD) if finding.severity is Severity.BLOCKS else ("risk", FAINT)
        out.print(Text.assemble(mark, f"  {finding.subject}"), soft_wrap=True)
        paragraph(out, finding.text, first=_INDENT, rest=_INDENT)
        paragraph(out, finding.advice, FAINT, first=_INDENT, rest=_INDENT)
    if len(report.nodes) > 1:
        note(out, f"Order: {listed(report.nodes, most=12)}")
