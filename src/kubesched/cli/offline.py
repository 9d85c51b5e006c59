"""What the offline commands have in common: their options, and what they make of them."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import click

from kubesched import config as configuration
from kubesched.api.errors import located
from kubesched.api.node import Node
from kubesched.cli.feature_gates import feature_gates_option
from kubesched.cli.input import read, refuse
from kubesched.config import Features
from kubesched.framework.errors import PluginError
from kubesched.framework.profile import ProfileError
from kubesched.simulate.cluster import SimulatedCluster, awaited_custom_resources
from kubesched.simulate.draining import drained, nodes_meant
from kubesched.simulate.manifests import Manifests, load

F = TypeVar("F", bound=Callable[..., Any])


file_option = click.option(
    "-f",
    "--filename",
    "files",
    multiple=True,
    required=True,
    help="Manifests: a file, a directory, or - for standard input. May be given several times.",
)
config_option = click.option(
    "--config", "config_file", help="A KubeSchedulerConfiguration; the default one if not given."
)
seed_option = click.option(
    "--seed", type=int, default=0, show_default=True, help="For the draw among equally good nodes."
)


drain_option = click.option(
    "--drain",
    "drains",
    multiple=True,
    metavar="NODE|KEY=VALUE",
    help="Drain a node, or all with a label, before the start. May be given several times.",
)


def output_option(*formats: str) -> Callable[[F], F]:
    """`-o`, with a table unless told otherwise."""
    return click.option(
        "-o",
        "--output",
        type=click.Choice(["table", *formats]),
        default="table",
        show_default=True,
        help="The format.",
    )


def simulation_options(command: F) -> F:
    """The options that say which cluster is meant and how it is scheduled."""
    for option in (output_option("json"), seed_option, feature_gates_option, config_option, file_option):
        command = option(command)
    return command


@dataclass(frozen=True)
class Policy:
    """A configuration whose profiles can be made, and what it has to read for them."""

    file: str | None
    settings: configuration.SchedulerConfiguration
    custom_resources: frozenset[str]

    def __str__(self) -> str:
        return self.file or "configuration"


def settings_of(config_file: str | None, features: Features) -> configuration.SchedulerConfiguration:
    """The configuration that was asked for, or the default. Raises ConfigError."""
    if config_file is None:
        return configuration.default(features)
    source, text = read(config_file)
    settings = configuration.load(text, source=source, features=features)
    if settings.extenders:
        click.echo(f"{source}: extenders: not asked offline, so decisions may differ from those of a cluster", err=True)
    return settings


def policy_of(config_file: str | None, features: Features) -> Policy:
    """The policy that was asked for. Raises ConfigError, ProfileError."""
    settings = settings_of(config_file, features)
    with located(config_file or "configuration", ProfileError):
        return Policy(config_file, settings, awaited_custom_resources(settings))


def manifests_of(
    files: Iterable[str], *policies: Policy, workloads: bool = False, drains: Iterable[str] = ()
) -> Manifests:
    """What is in the files and may matter to one of the policies, some nodes drained; or all that is wrong with it."""
    custom = frozenset().union(*(policy.custom_resources for policy in policies))
    files = list(files)
    found = load(files, workloads=workloads, custom=custom)
    for warning in found.warnings:
        click.echo(f"Warning: {warning}", err=True)
    if not found.objects:
        others = ", ".join(f"{count} {kind}" for kind, count in found.skipped.items())
        sources = ", ".join("<stdin>" if file == "-" else file for file in files)
        refuse([f"{sources}: nothing that scheduling looks at{', only ' if others else ''}{others}"])
    if not any(isinstance(obj, Node) for obj in found.objects):
        click.echo("There are no nodes in the manifests; note that `kubectl get all` leaves them out.", err=True)
    meant = {text: nodes_meant(found.objects, text) for text in drains}
    unknown = [f"--drain {text}: there is no such node" for text, nodes in meant.items() if not nodes]
    if unknown:
        refuse(unknown)
    return replace(found, objects=drained(found.objects, set().union(*meant.values()))) if meant else found


@contextmanager
def broken_plugins_told() -> Iterator[None]:
    """A plugin that breaks ends the command, with where it broke for its author and what broke for everybody."""
    try:
        yield
    except PluginError as error:
        traceback.print_exception(error.cause)
        click.echo(str(error), err=True)
        sys.exit(1)


def simulated(
    files: tuple[str, ...], config_file: str | None, features: Features, seed: int
) -> tuple[SimulatedCluster, Manifests]:
    """The cluster that the options describe; or all that is wrong with them, and the end."""
    policy = policy_of(config_file, features)
    manifests = manifests_of(files, policy)
    return SimulatedCluster(manifests.objects, policy.settings, seed=seed), manifests
