"""Changes to the cluster that a question is about: the options of all commands that simulate, and what they mean."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, TypeVar

import click

from kubesched.api.errors import UserError
from kubesched.cli.offline import Policy, awaited_by, manifests_of
from kubesched.cli.source import namespace, namespace_option
from kubesched.questions.what_if.change import Change, ChangeError, applied
from kubesched.questions.what_if.node_changes import Anew, Drain, Lose
from kubesched.questions.what_if.reading import read_added, read_applied, read_nodes, read_scale
from kubesched.simulate.manifests import Manifests

F = TypeVar("F", bound=Callable[..., Any])

_META = "kubesched.changes"
NODES = "NODE|KEY=VALUE|@FILE"


def _noted(ctx: click.Context, parameter: click.Parameter, value: Any) -> None:
    """Keep what was given for `changes_to`, whatever the command makes of it."""
    ctx.meta.setdefault(_META, {})[parameter.name] = value


def _option(name: str, metavar: str, text: str) -> Callable[[F], F]:
    return click.option(
        f"--{name}",
        name,
        multiple=True,
        metavar=metavar,
        callback=_noted,
        expose_value=False,
        help=f"{text} Can be repeated.",
    )


def change_options(command: F) -> F:
    """What is changed before the start."""
    for option in (
        namespace_option,
        click.option(
            "--anew",
            is_flag=True,
            callback=_noted,
            expose_value=False,
            help="Take all pods but daemons off their nodes first, and place them anew.",
        ),
        _option("with", "FILE", "File or directory with objects to add, or to replace those of the same name."),
        _option("scale", "[NAMESPACE/]TYPE/NAME=N", "Deployment, replicaset or statefulset to have N replicas."),
        _option("add", "N:like=NODE|N:file=FILE", "Nodes to add: like one that is there, or from a template."),
        _option("lose", NODES, "Nodes that are gone at once, with all that is on them."),
        _option("drain", NODES, "Nodes to drain. @FILE has a name or label in each line."),
    ):
        command = option(command)
    return command


def is_anew() -> bool:
    return bool(click.get_current_context().meta.get(_META, {}).get("anew"))


def changes_to(manifests: Manifests, *policies: Policy) -> list[Change]:
    """The changes that the options ask for, in the order in which they are made. Raises UserError."""
    given: dict[str, Iterable[str]] = click.get_current_context().meta.get(_META, {})
    custom, lines, found = awaited_by(*policies), list[str](), dict[str, list[Any]]()
    readers: dict[str, Callable[[str], Any]] = {
        "with": lambda file: read_applied(file, manifests.objects, custom),
        "scale": lambda text: read_scale(text, namespace()),
        "add": read_added,
        "lose": read_nodes,
        "drain": read_nodes,
    }
    for name, read in readers.items():
        for text in given.get(name) or ():
            try:
                found.setdefault(name, []).append(read(text))
            except UserError as error:
                lines += error.lines
    if lines:
        raise ChangeError(*lines)
    lost, drained = (tuple(node for nodes in found.get(name, ()) for node in nodes) for name in ("lose", "drain"))
    changes: list[Change] = [change for name in ("with", "scale", "add") for change in found.get(name, ())]
    return changes + ([Lose(lost)] if lost else []) + ([Drain(drained)] if drained else [])


def changed_manifests(files: Iterable[str], *policies: Policy) -> Manifests:
    """The cluster with its workloads, once the changes have been made; or all that is wrong with either."""
    manifests = manifests_of(files, *policies, workloads=True)
    changes: list[Change] = [Anew()] if is_anew() else []
    return replace(manifests, objects=applied(manifests.objects, [*changes, *changes_to(manifests, *policies)]))
