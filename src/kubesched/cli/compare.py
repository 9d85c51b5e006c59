"""`kubesched compare`: what would change with another policy, or with another release of Kubernetes?"""

from __future__ import annotations

import click

from kubesched.api.release import NEWEST, RELEASES, release_of
from kubesched.ask.answers import Skipped, answer
from kubesched.ask.html import comparison_page
from kubesched.ask.output import agreeing, counted, share
from kubesched.cli.cluster_options import (
    TEXT,
    output_option,
    read_gates,
    scheduler_config,
    seed_option,
)
from kubesched.cli.cluster_source import ClusterSource, source_options
from kubesched.cli.edit_options import EditOptions, edit_options
from kubesched.cli.grid import STRONG, Grid
from kubesched.cli.input import refuse
from kubesched.cli.printing import FAINT, console, paragraph, print_plain, print_rows, print_skipped
from kubesched.cli.releases import answer_releases
from kubesched.cli.simulate import print_ceilings, run
from kubesched.simulate.report import Comparison, figures_in_words, short_names
from kubesched.simulate.report import compare as put_side_by_side

MOST_ROWS = 20


@click.command()
@source_options
@click.option(
    "--config",
    "configs",
    multiple=True,
    help="KubeSchedulerConfiguration to compare. Can be repeated; a single one is compared with that of the "
    "scheduler in charge of the live cluster or the snapshot, where it can be found, else with the default.",
)
@click.option(
    "--release",
    "releases",
    multiple=True,
    type=click.Choice(list(RELEASES)),
    help="Decide as the scheduler of this release of Kubernetes does. Given twice, the releases are compared: which "
    "pods would be treated otherwise, and by which change of Kubernetes.",
)
@click.option(
    "--feature-gates",
    "gates",
    multiple=True,
    metavar="GATE=BOOL,...",
    help="Features to switch on or off, as for kube-scheduler. Can be repeated.",
)
@seed_option
@edit_options
@output_option("html")
@click.option("--all-pods", is_flag=True, help=f"Show every pod that differs, even if there are more than {MOST_ROWS}.")
def compare(
    source: ClusterSource,
    configs: tuple[str, ...],
    releases: tuple[str, ...],
    gates: tuple[str, ...],
    seed: int,
    edits: EditOptions,
    output: str,
    all_pods: bool,
) -> None:
    """Simulate the cluster once per configuration, and show the results side by side.

    With two releases and one configuration at most: say which pods the releases treat differently, and why.
    """
    if len(releases) > 1:
        if len(releases) > 2 or len(configs) > 1:
            refuse(["expected two releases and at most one --config, or one release and several of --config"])
        config = configs[0] if configs else None
        sides = [RELEASES[name] for name in releases]
        answer_releases(source, sides, config, gates, edits, output=output, all_pods=all_pods)
        return
    if not configs:
        refuse(["nothing to compare: give --config, or --release twice"])
    release = RELEASES[releases[0]] if releases else release_of(source.version) or NEWEST
    features = read_gates(gates, "--feature-gates", release)
    config_files = (None, *configs) if len(configs) == 1 else configs
    compared = [scheduler_config(source, file, features) for file in config_files]
    manifests = edits.edited(source, *compared)
    reports = [run(manifests, config, seed) for config in compared]
    comparison = put_side_by_side([config.name for config in compared], reports)
    if output == "html":
        click.echo(comparison_page(comparison, seed=seed), nl=False)
        return
    if output != TEXT:
        print_plain(answer(comparison, Skipped(manifests.skipped)), output)
        return
    _print(comparison, most=comparison.pods if all_pods else MOST_ROWS)
    print_ceilings(console(), manifests, compared, reports)
    print_skipped(console(), manifests.skipped)


def _print(comparison: Comparison, *, most: int) -> None:
    out, names = console(), short_names(comparison.policies)
    rows = Grid(("", *names), right=range(1, len(names) + 1))
    for title, values in figures_in_words(comparison):
        rows.add(title, *values, style=FAINT if len(set(values)) == 1 else "")
    rows.print(out)
    out.print()
    if not comparison.differences:
        paragraph(out, f"All {counted(comparison.pods, 'pod')} {agreeing(comparison.pods, 'are')} treated alike.")
        return
    paragraph(out, f"{share(len(comparison.differences), comparison.pods, 'pod', 'end')} up elsewhere", STRONG)
    rows = Grid(("Pod", *names))
    for difference in comparison.differences[:most]:
        rows.add(difference.pod, *(node or "pending" for node in difference.nodes))
    print_rows(out, rows, len(comparison.differences) - most)
