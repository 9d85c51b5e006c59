"""Answers to Enter: the explanation of a pod as `kubesched explain` gives it, and what is on a node."""

from __future__ import annotations

import io
from collections.abc import Callable

from rich.console import Console
from rich.text import Text

from kubesched.api.meta import KubeObject
from kubesched.cli.explanation import ExplanationPrinter
from kubesched.cli.layout import Grid
from kubesched.cli.terminal.browsing import Page
from kubesched.cli.terminal.picture import LEAVES, RUNS, STARTS, NodeShape
from kubesched.config import SchedulerConfiguration
from kubesched.framework.extender import ignoring_managed_resources
from kubesched.framework.registry import Registry
from kubesched.questions.explain import explain
from kubesched.scheduler.scheduler import Scheduler
from kubesched.simulate.cluster import ClusterModel

_STATES = {RUNS: "running", STARTS: "starting", LEAVES: "leaving"}


def objects_of(scheduler: Scheduler) -> list[KubeObject]:
    """The cluster as its scheduler sees it now; quick, so that the rest can be done in another thread."""
    state = scheduler.state
    nodes = [node for node in state.nodes.nodes if node is not None]
    pods = []
    for pod in scheduler.pods.values():
        placed = state.placed(pod)
        pods.append(pod if placed is None else placed.pod)
    return [*nodes, *state.objects, *pods]


def explanation(
    objects: list[KubeObject], key: str, configuration: SchedulerConfiguration, plugins: Registry | None
) -> Page:
    """Why the pod goes where it goes, or nowhere, and what would help. It may take a while in a large cluster."""
    cluster = ClusterModel(objects, ignoring_managed_resources(configuration), plugins=plugins)
    pod = cluster.pods.get(key)
    if pod is None:
        return note(f"{key} is gone: it was deleted or is done.")
    if not cluster.engine.knows(pod.spec.scheduler_name):
        return note(f"{key} waits for the scheduler {pod.spec.scheduler_name!r}, which is not this one.")
    answer = explain(cluster, pod)

    def lines(width: int) -> list[Text]:
        return _printed(lambda out: ExplanationPrinter(out, answer, nodes=False).print(), width)

    return Page(f"Explain {key}", lines)


def node_page(node: NodeShape) -> Page:
    """A node with its pods."""

    def lines(width: int) -> list[Text]:
        def show(out: Console) -> None:
            mark = f", {node.mark}" if node.mark else ""
            out.print(Text(f"{node.zone}{mark}: cpu {node.cpu:.0%}, memory {node.memory:.0%} requested\n"))
            rows = Grid(("Pod", "Of", "State"))
            for pod in node.pods:
                rows.add(pod.key, pod.workload, _STATES[pod.shape])
            rows.print(out)

        return _printed(show, width)

    return Page(f"Node {node.name}", lines)


def note(text: str) -> Page:
    return Page(text, lambda width: [])


def _printed(show: Callable[[Console], None], width: int) -> list[Text]:
    out = Console(file=io.StringIO(), width=width, force_terminal=True, markup=False, highlight=False, emoji=False)
    with out.capture() as captured:
        show(out)
    return [Text.from_ansi(line) for line in captured.get().splitlines()]
