"""`kubesched explain`: why does a pod go where it goes, or nowhere?"""

from __future__ import annotations

import difflib
from collections.abc import Collection

import click

from kubesched.cli.explanation import ExplanationPrinter
from kubesched.cli.input import refuse
from kubesched.cli.offline import TEXT, plugin_errors_reported, simulated, simulation_options
from kubesched.cli.printing import console, listed, print_plain, print_skipped
from kubesched.cli.source import namespace, namespace_option
from kubesched.config import Features
from kubesched.simulate.cluster import SimulatedCluster
from kubesched.simulate.explanation import explain as explain_pod


@click.command()
@simulation_options
@click.argument("pod", default="")
@click.option("--pod", "name", default="", help="The same as POD.")
@namespace_option
@click.option("--all-nodes", is_flag=True, help="Show every node, even in a large cluster.")
def explain(
    files: tuple[str, ...],
    config_file: str | None,
    features: Features,
    seed: int,
    output: str,
    pod: str,
    name: str,
    all_nodes: bool,
) -> None:
    """Explain the decision for one pod: the verdict on every node, the scores, the choice, and preemption.

    POD is NAMESPACE/NAME, or NAME in the namespace of -n.
    """
    name = pod or name
    if not name:
        raise click.UsageError("Missing argument 'POD'.")
    cluster, manifests = simulated(files, config_file, features, seed)
    key = name if "/" in name else f"{namespace()}/{name}"
    if key not in cluster.pods:
        refuse([_unknown(key, cluster)])
    scheduler = cluster.pods[key].spec.scheduler_name
    if not cluster.engine.knows(scheduler):
        known = ", ".join(cluster.profiles)
        refuse([f"pod {key} waits for the scheduler {scheduler!r}; the configuration has profiles for {known}"])
    with plugin_errors_reported():
        explanation = explain_pod(cluster, key)
    if output != TEXT:
        print_plain({**explanation.to_plain(), "skipped": dict(manifests.skipped)}, output)
        return
    out = console()
    ExplanationPrinter(out, explanation, all_nodes=all_nodes).print()
    print_skipped(out, manifests.skipped)


def _unknown(key: str, cluster: SimulatedCluster) -> str:
    if not cluster.pods:
        return f"there is no pod {key}: the manifests have no pods at all"
    similar = _similar(key, cluster.pods)
    if similar:
        return f"there is no pod {key}; did you mean {listed(similar)}?"
    pending = [pod.key for pod in cluster.pending()]
    if pending:
        return f"there is no pod {key}; pending are {listed(pending, most=10)}"
    return f"there is no pod {key}; there are {listed(list(cluster.pods), most=10)}"


def _similar(key: str, known: Collection[str]) -> list[str]:
    """Pods of the same name elsewhere, then those that are spelled alike."""
    name = key.rpartition("/")[2]
    namesakes = [other for other in known if other.rpartition("/")[2] == name]
    return list(dict.fromkeys([*namesakes, *difflib.get_close_matches(key, known, n=4, cutoff=0.85)]))
