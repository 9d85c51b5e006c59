"""`kubesched what-if`: what would be different if nodes were drained or added, workloads scaled, a pool upgraded?"""

from __future__ import annotations

import click

from kubesched.ask.answers import Skipped, answer
from kubesched.ask.edit_text import read_nodes
from kubesched.ask.edits import RescheduleAll, UpgradeNodes, UseConfiguration
from kubesched.ask.html import what_if_page
from kubesched.ask.what_if.what_if import what_if as ask
from kubesched.cli.cluster_options import (
    config_option,
    feature_gates_option,
    manifests_of,
    output_option,
    plugin_errors_reported,
    read_gates,
    scheduler_config,
    seed_option,
)
from kubesched.cli.cluster_source import ClusterSource, DurationType, source_options
from kubesched.cli.difference import DifferencePrinter
from kubesched.cli.edit_options import NODES, EditOptions, edit_options
from kubesched.cli.input import refuse
from kubesched.cli.printing import console, print_plain, print_skipped, progress_bar
from kubesched.config import Features
from kubesched.simulate.rolling_upgrade import UpgradePace

MOST_ROWS = 40
_PACE = UpgradePace()


@click.command("what-if")
@source_options
@config_option
@feature_gates_option
@seed_option
@edit_options
@click.option("--with-config", metavar="FILE", help="KubeSchedulerConfiguration that is in force with the changes.")
@click.option(
    "--with-feature-gates",
    multiple=True,
    metavar="GATE=BOOL,...",
    help="Features that are on or off with the changes. Can be repeated.",
)
@click.option("--upgrade", multiple=True, metavar=NODES, help="Nodes to upgrade, a few at a time. Can be repeated.")
@click.option(
    "--surge",
    type=click.IntRange(min=0),
    default=_PACE.surge,
    show_default=True,
    help="Nodes that an upgrade adds before it drains as many; 0 is one at a time, without a spare.",
)
@click.option(
    "--node-startup",
    type=DurationType(),
    default=f"{_PACE.node_startup:g}s",
    show_default=True,
    help="How long a new node takes in an upgrade.",
)
@click.option(
    "--pod-startup",
    type=DurationType(),
    default=f"{_PACE.pod_startup:g}s",
    show_default=True,
    help="How long a pod takes until it counts for its disruption budgets.",
)
@click.option(
    "--drain-timeout",
    type=DurationType(),
    default=f"{_PACE.drain_timeout:g}s",
    show_default=True,
    help="How long an upgrade waits for budgets before it evicts pods anyway.",
)
@output_option("html")
@click.option("--all-pods", is_flag=True, help=f"Show every pod, even if there are more than {MOST_ROWS}.")
def what_if(
    source: ClusterSource,
    config_file: str | None,
    features: Features,
    seed: int,
    edits: EditOptions,
    with_config: str | None,
    with_feature_gates: tuple[str, ...],
    upgrade: tuple[str, ...],
    surge: int,
    node_startup: float | None,
    pod_startup: float | None,
    drain_timeout: float | None,
    output: str,
    all_pods: bool,
) -> None:
    """Change the cluster, and show the difference: who moves, who waits and why, who is evicted.

    The cluster is simulated twice, as it is and with all changes, so what would happen anyway is not told. Nothing is
    written to a cluster.
    """
    configs = [scheduler_config(source, config_file, features)]
    if with_config is not None or with_feature_gates:
        gates = read_gates(with_feature_gates, "--with-feature-gates") if with_feature_gates else features
        configs.append(scheduler_config(source, with_config or config_file, gates))
    manifests = manifests_of(source, *configs, workloads=True)
    asked = edits.read(source, manifests, *configs)
    asked += [UseConfiguration(config.settings) for config in configs[1:]]
    if upgrade:
        pace = UpgradePace(surge, node_startup or 0.0, pod_startup or 0.0, drain_timeout or 0.0)
        asked.append(UpgradeNodes(tuple(node for text in upgrade for node in read_nodes(text)), pace=pace))
    if all(isinstance(edit, RescheduleAll) for edit in asked):
        refuse(["nothing is changed: give --drain, --lose, --add, --scale, --with, --with-config or --upgrade"])
    with plugin_errors_reported(), progress_bar("Simulating") as progress:
        found = ask(manifests.objects, configs[0].settings, asked, seed=seed, progress=progress).difference
    match output:
        case "json" | "yaml":
            print_plain(answer(found, Skipped(manifests.skipped)), output)
        case "html":
            click.echo(what_if_page(found), nl=False)
        case _:
            out = console()
            DifferencePrinter(out, found, most=None if all_pods else MOST_ROWS).print()
            print_skipped(out, manifests.skipped)
