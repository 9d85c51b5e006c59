"""`kubesched simulate`: what becomes of all these pods, when time passes?"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

import click

from kubesched import garbage
from kubesched.cli.feature_gates import feature_gates_option
from kubesched.cli.input import refuse, told
from kubesched.cli.offline import (
    Policy,
    config_option,
    drain_option,
    file_option,
    manifests_of,
    output_option,
    policy_of,
    seed_option,
)
from kubesched.cli.printing import console, print_json, print_yaml, skipped_note
from kubesched.cli.progress import progress_bar
from kubesched.cli.simulation_result import MOST_NODES, MOST_ROWS, ResultPrinter
from kubesched.config import Features
from kubesched.scheduler.recording.recording import open_recording
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
@click.option("--record", help="Where to write what `kubesched replay` reads. A file that is there is kept as FILE.1.")
def simulate(
    files: tuple[str, ...],
    config_file: str | None,
    features: Features,
    seed: int,
    drains: tuple[str, ...],
    output: str,
    all_pods: bool,
    all_nodes: bool,
    record: str | None,
) -> None:
    """Run pods and workloads on the nodes of the manifests in virtual time, to the end.

    The real scheduler does it: with backoff, preemption and retries. Deployments, ReplicaSets, StatefulSets, DaemonSets
    and Jobs are expanded to pods. The annotations kubesched.io/arrival and kubesched.io/duration, on a pod or in a
    template, say when pods come and how long they run.
    """
    policy = policy_of(config_file, features)
    manifests = manifests_of(files, policy, workloads=True, drains=drains)
    with _recording(record) as stream:
        report = run(manifests, policy, seed, stream)
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


@contextmanager
def _recording(file: str | None) -> Iterator[IO[str] | None]:
    if file is None:
        yield None
        return
    if file == "-":
        yield sys.stdout
        return
    try:
        stream = open_recording(
            file, lambda kept: click.echo(f"{file}: kept the earlier recording as {kept}", err=True)
        )
    except OSError as error:
        refuse([told(error, file)])
    with stream:
        yield stream


def run(manifests: Manifests, policy: Policy, seed: int, record: IO[str] | None = None) -> SimulationReport:
    """One simulation from beginning to end, with a progress bar; or what is wrong with the policy, and the end."""
    garbage.collect_seldom()
    simulation = Simulation(manifests.objects, policy.settings, seed=seed, record=record)
    try:
        with progress_bar("Simulating") as progress:
            return simulation.run(progress)
    except StillWaitingError as error:
        refuse([f"{policy}: {error}"])
