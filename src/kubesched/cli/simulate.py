"""`kubesched simulate`: what becomes of all these pods, when time passes?"""

from __future__ import annotations

from typing import IO

import click

from kubesched import garbage
from kubesched.cli.feature_gates import feature_gates_option
from kubesched.cli.input import refuse
from kubesched.cli.printing import console, print_json, print_yaml, skipped_note
from kubesched.cli.progress import progress_bar
from kubesched.cli.simulation import (
    bad_profiles_refused,
    config_option,
    drain_option,
    file_option,
    manifests_of,
    output_option,
    seed_option,
    settings_of,
)
from kubesched.cli.simulation_result import MOST_NODES, MOST_ROWS, ResultPrinter
from kubesched.config import Features
from kubesched.scheduler.run_now import StillWaitingError
from kubesched.simulate.html import page
from kubesched.simulate.manifests import Manifests
from kubesched.simulate.report import SimulationReport
from kubesched.simulate.simulation import Simulation


@click.command()
@file_option
@config_option
@feature_gates_option
@seed_option
@drain_option
@output_option("json", "yaml", "html")
@click.option("--all-pods", is_flag=True, help=f"Show every pod, also if there are more than {MOST_ROWS}.")
@click.option("--all-nodes", is_flag=True, help=f"Show every node, also if there are more than {MOST_NODES}.")
@click.option(
    "--record", type=click.File("w", encoding="utf-8", lazy=False), help="Where to write what `kubesched replay` reads."
)
def simulate(
    files: tuple[str, ...],
    config_file: str | None,
    features: Features,
    seed: int,
    drains: tuple[str, ...],
    output: str,
    all_pods: bool,
    all_nodes: bool,
    record: IO[str] | None,
) -> None:
    """Run pods and workloads on the nodes of the manifests in virtual time, to the end.

    The real scheduler does it: with backoff, preemption and retries. Deployments, ReplicaSets, StatefulSets, DaemonSets
    and Jobs are expanded to pods. The annotations kubesched.io/arrival and kubesched.io/duration, on a pod or in a
    template, say when pods come and how long they run.
    """
    manifests = manifests_of(files, workloads=True, drains=drains)
    report = run(manifests, config_file, features, seed, record)
    match output:
        case "json":
            print_json({**report.to_plain(), "skipped": dict(manifests.skipped)})
        case "yaml":
            print_yaml({**report.to_plain(), "skipped": dict(manifests.skipped)})
        case "html":
            click.echo(page(report), nl=False)
        case _:
            out = console()
            ResultPrinter(out, report, all_pods=all_pods, all_nodes=all_nodes).print()
            if manifests.skipped:
                out.print()
                out.print(skipped_note(manifests.skipped))


def run(
    manifests: Manifests, config_file: str | None, features: Features, seed: int, record: IO[str] | None = None
) -> SimulationReport:
    """One simulation from beginning to end, with a progress bar; or what is wrong with the policy, and the end."""
    settings = settings_of(config_file, features)
    garbage.collect_seldom()
    with bad_profiles_refused(config_file):
        simulation = Simulation(manifests.objects, settings, seed=seed, record=record)
    try:
        with progress_bar("Simulating") as progress:
            return simulation.run(progress)
    except StillWaitingError as error:
        refuse([f"{config_file or 'configuration'}: {error}"])
