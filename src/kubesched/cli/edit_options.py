"""The options of commands that can change the cluster before they ask about it: `--drain`, `--add`, `--scale` ..."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

import click

from kubesched.api.errors import UserError
from kubesched.ask.edits import (
    DrainNodes,
    Edit,
    EditError,
    FailNodes,
    RemoveNodes,
    RescheduleAll,
    read_added,
    read_applied,
    read_nodes,
    read_scale,
)
from kubesched.ask.hypothetical import apply_hypothetical
from kubesched.cli.cluster_options import SchedulerConfig, awaited_by, manifests_of
from kubesched.cli.cluster_source import ClusterSource, namespace_option
from kubesched.simulate.manifests import Manifests

F = TypeVar("F", bound=Callable[..., Any])

NODES = "NODE|KEY=VALUE|@FILE"


@dataclass(frozen=True)
class EditOptions:
    """The edits as they are written on the command line."""

    files: tuple[str, ...]
    scale: tuple[str, ...]
    add: tuple[str, ...]
    lose: tuple[str, ...]
    gone: tuple[str, ...]
    drain: tuple[str, ...]
    anew: bool
    namespace: str

    def read(self, source: ClusterSource, manifests: Manifests, *configs: SchedulerConfig) -> list[Edit]:
        """The edits, in the order in which they are made. Raises EditError."""
        custom, namespace, lines = awaited_by(*configs), self.namespace or source.namespace, list[str]()

        def read_all(texts: tuple[str, ...], read: Callable[[str], Any]) -> list[Any]:
            edits = []
            for text in texts:
                try:
                    edits.append(read(text))
                except UserError as error:
                    lines.extend(error.lines)
            return edits

        edits: list[Edit] = [RescheduleAll()] if self.anew else []
        edits += read_all(self.files, lambda file: read_applied(file, manifests.objects, custom))
        edits += read_all(self.scale, lambda text: read_scale(text, namespace))
        edits += read_all(self.add, read_added)
        kinds = ((FailNodes, self.lose), (RemoveNodes, self.gone), (DrainNodes, self.drain))
        named = [
            (kind, tuple(node for nodes in read_all(texts, read_nodes) for node in nodes)) for kind, texts in kinds
        ]
        if lines:
            raise EditError(*lines)
        return edits + [kind(nodes) for kind, nodes in named if nodes]

    def edited(self, source: ClusterSource, *configs: SchedulerConfig) -> Manifests:
        """The cluster with its workloads, once the edits have been made; or all that is wrong with either."""
        manifests = manifests_of(source, *configs, workloads=True)
        edits = self.read(source, manifests, *configs)
        return replace(manifests, objects=apply_hypothetical(manifests.objects, edits))


def edit_options(command: F) -> F:
    """What is changed before the start. The command gets it as `edits`."""

    @functools.wraps(command)
    def with_edits(*arguments: Any, **options: Any) -> Any:
        options["files"] = options.pop("with")
        values = {name: options.pop(name) for name in EditOptions.__dataclass_fields__}
        return command(*arguments, edits=EditOptions(**values), **options)

    wrapped: Any = with_edits
    for option in (
        namespace_option,
        click.option(
            "--anew", is_flag=True, help="Take all pods but daemons off their nodes first, and place them anew."
        ),
        _option("with", "FILE", "File or directory with objects to add, or to replace those of the same name."),
        _option("scale", "[NAMESPACE/]TYPE/NAME=N", "Deployment, replicaset or statefulset to have N replicas."),
        _option("add", "N:like=NODE|N:file=FILE", "Nodes to add: like one that is there, or from a template."),
        _option("lose", NODES, "Nodes that fail: out of reach and tainted, but still there, as in an outage."),
        _option("gone", NODES, "Nodes that are deleted, with all that is on them."),
        _option("drain", NODES, "Nodes to drain. @FILE has a name or label in each line."),
    ):
        wrapped = option(wrapped)
    return cast(F, wrapped)


def _option(name: str, metavar: str, text: str) -> Callable[[F], F]:
    return click.option(f"--{name}", name, multiple=True, metavar=metavar, help=f"{text} Can be repeated.")
