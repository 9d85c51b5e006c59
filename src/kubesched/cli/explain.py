"""`kubesched explain`: why does a pod go where it goes, or nowhere, and what would help?"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

import click
from rich.text import Text

from kubesched.api.meta import KubeObject
from kubesched.api.pod import Pod
from kubesched.ask.explain import ExplainedPod
from kubesched.ask.explain import explain as explain_pod
from kubesched.ask.pending import PendingPods, pending_pods
from kubesched.ask.targets import find_pod, parse_target
from kubesched.cli.cluster_options import (
    TEXT,
    cluster_of,
    output_option,
    plugin_errors_reported,
    simulation_options,
)
from kubesched.cli.cluster_source import ClusterSource, namespace_option
from kubesched.cli.explanation import ExplanationPrinter, print_pending
from kubesched.cli.input import refuse
from kubesched.cli.printing import console, print_plain, print_skipped
from kubesched.config import Features
from kubesched.simulate.cluster import ClusterModel
from kubesched.simulate.kinds import DEFAULT_NAMESPACE


@click.command()
@click.argument("targets", nargs=-1, metavar="[POD | TYPE/NAME]...")
@simulation_options
@output_option("html")
@namespace_option
@click.option("--pod", "pods", multiple=True, help="The same as an argument: NAMESPACE/NAME of a pod.")
@click.option(
    "--pod-file", "pod_files", multiple=True, metavar="FILE", help="Explain the pods and workloads of this file."
)
@click.option("--nodes", "--all-nodes", "all_nodes", is_flag=True, help="Show every node, not groups of them.")
@click.option("--no-remedies", is_flag=True, help="Do not look for what would help.")
def explain(
    targets: tuple[str, ...],
    source: ClusterSource,
    config_file: str | None,
    features: Features,
    seed: int,
    output: str,
    namespace: str,
    pods: tuple[str, ...],
    pod_files: tuple[str, ...],
    all_nodes: bool,
    no_remedies: bool,
) -> None:
    """Explain decisions: the verdict on all nodes, the scores, the choice, preemption, and what would help.

    POD is NAME or NAMESPACE/NAME; deployment/web, job/x, statefulset/db and the like stand for their next pod. Without
    any, all pending pods, or those of a namespace, are told in groups: what they lack, and what would place them.
    """
    cluster, manifests = cluster_of(source, config_file, features, seed, more_files=pod_files)
    out = console()
    with plugin_errors_reported():
        if targets or pods or pod_files:
            explained = [find_pod(cluster, text, namespace or source.namespace) for text in (*targets, *pods)]
            for obj, file in zip(manifests.objects, manifests.sources):
                if _is_from(file, pod_files) and (isinstance(obj, Pod) or (type(obj), obj.key) in cluster.workloads):
                    explained.append(
                        find_pod(cluster, f"{obj.namespace or DEFAULT_NAMESPACE}/{type(obj).__name__}/{obj.name}")
                    )
            _tell_refusals(cluster, {parse_target(text, namespace or source.namespace) for text in targets})
            _refuse_other_schedulers(explained, cluster)
            answers = [explain_pod(cluster, pod, with_remedies=not no_remedies) for pod in explained]
        else:
            own = [key for key, workload in cluster.workloads.items() if workload.metadata.controller is None]
            _tell_refusals(cluster, {key for key in own if namespace in ("", cluster.workloads[key].namespace)})
            pending = pending_pods(cluster, with_remedies=not no_remedies, namespace=namespace)
            if output == TEXT:
                print_pending(out, pending)
                print_skipped(out, manifests.skipped)
            else:
                _print_document(pending, manifests.skipped, output)
            return
    if output != TEXT:
        _print_document(answers, manifests.skipped, output)
        return
    for i, workload in enumerate(answers):
        if i:
            out.print(Text(f"\n{'═' * out.width}\n"))
        ExplanationPrinter(out, workload, nodes=all_nodes).print()
    print_skipped(out, manifests.skipped)


def _print_document(answers: PendingPods | list[ExplainedPod], skipped: Mapping[str, int], output: str) -> None:
    """For programs and browsers. Text, which is asked for most, needs none of what is imported here."""
    from kubesched.ask.answers import ExplanationList, Skipped, answer
    from kubesched.ask.html import explanation_page, pending_page

    if isinstance(answers, PendingPods):
        if output == "html":
            click.echo(pending_page(answers), nl=False)
        else:
            print_plain(answer(answers, Skipped(skipped)), output)
    elif output == "html":
        click.echo(explanation_page(answers), nl=False)
    else:
        documents = [answer(*explained, Skipped(skipped)) for explained in answers]
        print_plain(documents[0] if len(documents) == 1 else answer(ExplanationList(tuple(documents))), output)


def _tell_refusals(cluster: ClusterModel, about: Collection[tuple[type[KubeObject], str]]) -> None:
    """A workload may lack pods because the API server takes no more of them: no scheduler sees those."""
    for (kind, key), workload in cluster.workloads.items():
        if workload.refusal and (kind, key) in about:
            click.echo(f"{kind.__name__} {key}: more of its pods are not created: {workload.refusal}", err=True)


def _is_from(source: str, files: tuple[str, ...]) -> bool:
    """Whether a file is one of those given, or in a directory that was."""
    sources = ["<stdin>" if file == "-" else file for file in files]
    return any(source == file or Path(source).is_relative_to(file) for file in sources)


def _refuse_other_schedulers(pods: list[Pod], cluster: ClusterModel) -> None:
    """Refuse pods of schedulers that the configuration has no profile for."""
    others = f"the configuration has profiles for {', '.join(cluster.profiles)}"
    refused = [
        f"pod {pod.key} waits for the scheduler {pod.spec.scheduler_name!r}; {others}"
        for pod in pods
        if not cluster.engine.knows(pod.spec.scheduler_name)
    ]
    if refused:
        refuse(refused)
