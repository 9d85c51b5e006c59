"""`kubesched capacity`: how many more of this pod fit, and what stops the next one?"""

from __future__ import annotations

from collections.abc import Iterable

import click
from rich.text import Text

from kubesched.api.meta import KubeObject
from kubesched.api.pod import Pod
from kubesched.ask.answers import answer
from kubesched.ask.edits import read_applied
from kubesched.ask.html import capacity_page
from kubesched.ask.output import agreeing, counted
from kubesched.cli.cluster_options import (
    TEXT,
    awaited_by,
    config_option,
    feature_gates_option,
    output_option,
    plugin_errors_reported,
    scheduler_config,
    seed_option,
)
from kubesched.cli.cluster_source import ClusterSource, source_options
from kubesched.cli.edit_options import EditOptions, edit_options
from kubesched.cli.input import refuse
from kubesched.cli.printing import BAD, GOOD, console, note, paragraph, print_counts, print_plain, progress_bar
from kubesched.config import Features
from kubesched.planning.ceiling import most_copies
from kubesched.simulate.cluster import ClusterModel
from kubesched.simulate.placement import CapacityAnswer, claims_of_template, model_of
from kubesched.simulate.placement import capacity as measure
from kubesched.simulate.workloads import expand

MOST_NODES = 20


@click.command()
@source_options
@click.option("--pod", "pod_file", required=True, help="File with the pod, or with a workload that has its template.")
@config_option
@feature_gates_option
@seed_option
@edit_options
@output_option("html")
@click.option(
    "--most", type=click.IntRange(min=1), default=100_000, show_default=True, help="Stop after this many copies."
)
@click.option("--all-nodes", is_flag=True, help=f"Show every node, even if there are more than {MOST_NODES}.")
def capacity(
    source: ClusterSource,
    pod_file: str,
    config_file: str | None,
    features: Features,
    seed: int,
    edits: EditOptions,
    output: str,
    most: int,
    all_nodes: bool,
) -> None:
    """Count how many more copies of a pod fit on the cluster, and say what stops the next one.

    Copies are placed one after another next to the pods that run already. Pending pods do not count, and no pod is
    evicted.
    """
    config = scheduler_config(source, config_file, features)
    manifests = edits.edited(source, config)
    found_in_file = read_applied(pod_file, manifests.objects, awaited_by(config)).objects
    model = _model(found_in_file, "<stdin>" if pod_file == "-" else pod_file)
    others = (obj for obj in found_in_file if model_of(obj) is None)
    claims = (claim for obj in found_in_file for claim in claims_of_template(obj))
    objects = expand((*manifests.objects, *others, *claims)).objects
    cluster = ClusterModel(objects, config.settings, seed=seed, profiles=config.profiles)
    ceiling = most_copies(cluster, model)
    with plugin_errors_reported(), progress_bar("Placing copies") as progress:
        result = measure(cluster, model, most=most, progress=progress)
    if output == TEXT:
        _print(result, ceiling, all_nodes=all_nodes)
    elif output == "html":
        click.echo(capacity_page(result), nl=False)
    else:
        print_plain(answer(result), output)


def _model(objects: Iterable[KubeObject], source: str) -> Pod:
    """The one pod in the file; or a complaint, and the end."""
    models = [model for obj in objects if (model := model_of(obj)) is not None]
    if len(models) != 1:
        refuse([f"{source}: expected one pod, or one workload with a pod template, got {len(models)}"])
    return models[0]


def _print(result: CapacityAnswer, ceiling: int | None, *, all_nodes: bool) -> None:
    out = console()
    more = "" if result.stopped_by else " or more; --most looks further"
    text = f" more of {result.pod} {agreeing(result.fit, 'fit')} on {counted(result.nodes, 'node')}{more}"
    paragraph(out, Text.assemble((str(result.fit), GOOD if result.fit else BAD), text))
    if result.stopped_by:
        paragraph(out, Text.assemble("What stops the next one: ", (result.stopped_by, BAD)))
        if ceiling is not None:
            note(out, f"No policy could place more than {ceiling:,} of them beside what runs.")
    if len(result.by_zone) > 1:
        print_counts(out, ("Zone", "Copies"), result.by_zone)
    if result.by_node:
        print_counts(out, ("Node", "Copies"), result.by_node, None if all_nodes else MOST_NODES, "--all-nodes")
        if result.nodes > len(result.by_node):
            note(out, f"{counted(result.nodes - len(result.by_node), 'node')} took none.")
