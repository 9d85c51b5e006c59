"""`kubesched compare`: what would change with another policy?"""

from __future__ import annotations

import click
from rich.text import Text

from kubesched.ask.answers import Skipped, answer
from kubesched.ask.html import comparison_page
from kubesched.ask.output import counted
from kubesched.cli.cluster_options import (
    TEXT,
    feature_gates_option,
    now_in_words,
    output_option,
    scheduler_config,
    seed_option,
)
from kubesched.cli.cluster_source import ClusterSource, source_options
from kubesched.cli.edit_options import EditOptions, edit_options
from kubesched.cli.printing import FAINT, console, heading, print_plain, print_skipped, table
from kubesched.cli.simulate import run
from kubesched.config import Features
from kubesched.simulate.report import Comparison, figures_in_words, short_names
from kubesched.simulate.report import compare as put_side_by_side

MOST_ROWS = 20


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
@edit_options
@output_option("html")
@click.option("--all-pods", is_flag=True, help=f"Show every pod that differs, even if there are more than {MOST_ROWS}.")
def compare(
    source: ClusterSource,
    configs: tuple[str, ...],
    features: Features,
    seed: int,
    edits: EditOptions,
    output: str,
    all_pods: bool,
) -> None:
    """Simulate the cluster once per configuration, and show the results side by side."""
    config_files = (None, *configs) if len(configs) == 1 else configs
    compared = [scheduler_config(source, file, features) for file in config_files]
    manifests = edits.edited(source, *compared)
    reports = [run(manifests, config, seed) for config in compared]
    found = put_side_by_side([config.name for config in compared], reports)
    if output == "html":
        click.echo(comparison_page(found, seed=seed, made=now_in_words()), nl=False)
        return
    if output != TEXT:
        print_plain(answer(found, Skipped(manifests.skipped)), output)
        return
    _print(found, most=found.pods if all_pods else MOST_ROWS)
    print_skipped(console(), manifests.skipped)


def _print(found: Comparison, *, most: int) -> None:
    out, names = console(), short_names(found.policies)
    rows = table("", *names, right=names)
    for title, values in figures_in_words(found):
        rows.add_row(title, *values, style=FAINT if len(set(values)) == 1 else "")
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
