"""The options of commands that ask about a cluster: which cluster, which configuration, which output."""

from __future__ import annotations

import functools
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import click

from kubesched import config as configuration
from kubesched.api.errors import located
from kubesched.api.node import Node
from kubesched.api.release import NEWEST, RELEASES, Release, release_of
from kubesched.cli.cluster_source import ClusterSource, say_configuration, source_options
from kubesched.cli.input import read, refuse
from kubesched.cli.printing import TEXT as TEXT
from kubesched.cli.printing import output_option as output_option
from kubesched.config import Features
from kubesched.daemon.feature_gates import FeatureGates
from kubesched.daemon.flag_values import MULTIMAP
from kubesched.framework.errors import PluginError
from kubesched.framework.profile import Profile, ProfileError, custom_resources
from kubesched.scheduler import garbage
from kubesched.simulate.cluster import ClusterModel, profiles_of
from kubesched.simulate.manifests import Manifests, load


def given_gates() -> tuple[str, ...]:
    """What `--feature-gates` says, as it is written."""
    written: tuple[str, ...] = click.get_current_context().meta.get(_GATES, ())
    return written


def read_gates(values: tuple[str, ...], option: str, release: Release) -> Features:
    """What the gates turn on and off in a release. Raises GateError."""
    with located(option):
        gates = FeatureGates.parse(MULTIMAP.parse(",".join(values)), release)
    for warning in gates.warnings:
        click.echo(warning, err=True)
    return Features.of(gates, release)


F = TypeVar("F", bound=Callable[..., Any])

_GATES = "kubesched.gates"


def feature_gates_option(command: F) -> F:
    """The release of Kubernetes to decide as, and the gates that are not at their default there.

    The command gets both as `features`. Without --release, the cluster that `source` is about says which it is;
    where there is no such cluster, it is the newest.
    """

    @functools.wraps(command)
    def with_features(*arguments: Any, feature_gates: tuple[str, ...], release: str | None, **options: Any) -> Any:
        source: ClusterSource | None = options.get("source")
        click.get_current_context().meta[_GATES] = feature_gates
        chosen = RELEASES[release] if release else source and release_of(source.version)
        return command(*arguments, features=read_gates(feature_gates, "--feature-gates", chosen or NEWEST), **options)

    gates = click.option(
        "--feature-gates",
        "feature_gates",
        multiple=True,
        metavar="GATE=BOOL,...",
        help="Features to switch on or off, as for kube-scheduler. Can be repeated.",
    )
    release = click.option(
        "--release",
        type=click.Choice(list(RELEASES)),
        help="Decide as the scheduler of this release of Kubernetes does. If not set: that of the live cluster or "
        f"snapshot; {NEWEST.name} where there is none, or of another release.",
    )
    wrapped: Any = with_features
    return cast(F, release(gates(wrapped)))


config_option = click.option(
    "--config",
    "config_file",
    help="File with a KubeSchedulerConfiguration. If not set: that of the scheduler in charge of a live cluster or a "
    "snapshot, where it can be found; else the default configuration.",
)
seed_option = click.option(
    "--seed", type=int, default=0, show_default=True, help="Seed for the draw among equally good nodes."
)


def simulation_options(command: F) -> F:
    """The options that say which cluster is meant and how it is scheduled."""
    for option in (seed_option, feature_gates_option, config_option, source_options):
        command = option(command)
    return command


@dataclass(frozen=True)
class SchedulerConfig:
    """A configuration and its profiles, with all their plugins made."""

    file: str | None
    settings: configuration.SchedulerConfiguration
    profiles: dict[str, Profile]

    def __str__(self) -> str:
        return self.file or "configuration"

    @property
    def name(self) -> str:
        """What to call it beside others."""
        return self.file or "default"

    @property
    def custom_resources(self) -> frozenset[str]:
        """The resources that matter only because plugins wait for them: `racks.v1.example.com`."""
        return custom_resources(plugin for profile in self.profiles.values() for plugin in profile.plugins.values())


def settings_of(config_file: str | None, features: Features) -> configuration.SchedulerConfiguration:
    """The configuration that was asked for, or the default. Raises ConfigError."""
    if config_file is None:
        return configuration.default(features)
    return _loaded(*read(config_file), features)


def _loaded(origin: str, text: str, features: Features) -> configuration.SchedulerConfiguration:
    settings = configuration.load(text, source=origin, features=features)
    if settings.extenders:
        click.echo(f"{origin}: extenders: not asked offline, so decisions may differ from those of a cluster", err=True)
    return settings


def written_config(source: ClusterSource, config_file: str | None) -> tuple[str | None, str]:
    """Where the configuration comes from that was asked for, else that of the scheduler in charge; and its text, if it
    is not the default."""
    if config_file is not None:
        return read(config_file)
    configured = source.configuration()
    if configured is not None:
        say_configuration(configured)
    return (configured.origin, configured.text) if configured is not None and configured.text else (None, "")


def scheduler_config(source: ClusterSource, config_file: str | None, features: Features) -> SchedulerConfig:
    """The configuration that was asked for, else that of the scheduler in charge. Raises ConfigError, ProfileError."""
    origin, text = written_config(source, config_file)
    settings = configuration.default(features) if origin is None else _loaded(origin, text, features)
    with located(config_file or origin or "configuration", ProfileError):
        return SchedulerConfig(config_file or origin, settings, profiles_of(settings))


def awaited_by(*configs: SchedulerConfig) -> frozenset[str]:
    """The resources that matter only because plugins of these configurations wait for them."""
    return frozenset().union(*(config.custom_resources for config in configs))


def manifests_of(
    source: ClusterSource, *configs: SchedulerConfig, more_files: Iterable[str] = (), workloads: bool = False
) -> Manifests:
    """The objects of the cluster, and of more files, that may matter to one of the configurations.

    All that is wrong with them ends the command.
    """
    garbage.collect_seldom()
    custom = awaited_by(*configs)
    reading = source.read(workloads=workloads, custom=custom)
    manifests = load(
        [file for file in (*source.files, *more_files) if file not in source.snapshots],
        workloads=workloads,
        custom=custom,
        given=reading.records() if reading is not None else (),
        given_by=source.origin,
    )
    for warning in manifests.warnings:
        click.echo(f"Warning: {warning}", err=True)
    if not manifests.objects:
        others = ", ".join(f"{count} {kind}" for kind, count in manifests.skipped.items())
        refuse([f"{source.origin}: nothing that scheduling looks at{', only ' if others else ''}{others}"])
    if not any(isinstance(obj, Node) for obj in manifests.objects):
        where = "the manifests; note that `kubectl get all` leaves them out" if reading is None else "the cluster"
        click.echo(f"There are no nodes in {where}.", err=True)
    return manifests


@contextmanager
def plugin_errors_reported() -> Iterator[None]:
    """A plugin that raises ends the command, with the traceback for its author and one line for the user."""
    try:
        yield
    except PluginError as error:
        traceback.print_exception(error.cause)
        click.echo(str(error), err=True)
        sys.exit(1)


def cluster_of(
    source: ClusterSource,
    config_file: str | None,
    features: Features,
    seed: int,
    *,
    more_files: Iterable[str] = (),
) -> tuple[ClusterModel, Manifests]:
    """The cluster that the options describe, with its workloads; or all that is wrong with them, and the end."""
    config = scheduler_config(source, config_file, features)
    manifests = manifests_of(source, config, more_files=more_files, workloads=True)
    settings, profiles = config.settings, config.profiles
    return ClusterModel.with_missing_pods(manifests.objects, settings, seed=seed, profiles=profiles), manifests
