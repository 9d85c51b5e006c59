"""Which cluster a command is about: files, a snapshot, or the live cluster that kubectl would talk to."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from kubesched.ask.sources.reading import ClusterReading, FoundConfiguration
from kubesched.ask.sources.snapshot import Snapshot, open_snapshot
from kubesched.cli.input import refuse
from kubesched.cli.printing import progress_bar
from kubesched.config import Duration
from kubesched.kube.errors import ConnectionSettingsError
from kubesched.simulate.kinds import DEFAULT_NAMESPACE

if TYPE_CHECKING:
    from kubesched.ask.sources.live import LiveCluster

F = TypeVar("F", bound=Callable[..., Any])

PATIENCE = "2m"


class DurationType(click.ParamType[float | None]):
    """A duration as kubectl takes it: `30s`, or a number of seconds; 0 is no limit."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float | None:
        text = str(value)
        try:
            seconds = float(text) if text.isdigit() else float(Duration.parse(text))
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if seconds < 0:
            self.fail(f"must not be negative, got {text}", param, ctx)
        return seconds or None


file_option = click.option(
    "-f",
    "--filename",
    "files",
    multiple=True,
    help="File or directory with manifests, a snapshot, or - for standard input. Can be repeated. "
    "Without it the live cluster is read.",
)


def live_options(command: F) -> F:
    """Which live cluster is meant. The command gets it as `source`, and the source is closed after the command."""

    @functools.wraps(command)
    def with_source(
        *arguments: Any,
        context: str,
        kubeconfig: str,
        request_timeout: float | None,
        files: tuple[str, ...] = (),
        **options: Any,
    ) -> Any:
        source = ClusterSource(files, context, kubeconfig, request_timeout)
        try:
            return command(*arguments, source=source, **options)
        finally:
            source.close()

    wrapped: Any = with_source
    for option in (
        click.option(
            "--request-timeout",
            type=DurationType(),
            default=PATIENCE,
            show_default=True,
            metavar="DURATION",
            help="How long reading the live cluster may take; 0 is no limit.",
        ),
        click.option("--context", default="", help="Context of the kubeconfig; its current one if not set."),
        click.option(
            "--kubeconfig",
            default="",
            metavar="FILE",
            help="Kubeconfig of the live cluster; as for kubectl if not set.",
        ),
    ):
        wrapped = option(wrapped)
    return cast(F, wrapped)


def source_options(command: F) -> F:
    """Files, or the live cluster. The command gets them as `source`."""
    return live_options(file_option(command))


namespace_option = click.option(
    "-n",
    "--namespace",
    default="",
    help="Namespace of what is named without one; that of the context, or default, if not set.",
)


class ClusterSource:
    """Where the cluster comes from: files, a snapshot, or a live cluster. It is opened when it is first used."""

    def __init__(self, files: tuple[str, ...], context: str, kubeconfig: str, timeout: float | None) -> None:
        self.files = files
        self._context = context
        self._kubeconfig = kubeconfig
        self._timeout = timeout

    @functools.cached_property
    def snapshots(self) -> dict[str, Snapshot]:
        """The files that are snapshots: one at most."""
        if self.files and (self._context or self._kubeconfig):
            refuse(["--context and --kubeconfig are for a live cluster, -f is for files: give one or the other"])
        snapshots = {file: opened for file in self.files if (opened := open_snapshot(file)) is not None}
        if len(snapshots) > 1:
            refuse([f"{', '.join(snapshots)}: expected one snapshot at most"])
        return snapshots

    @functools.cached_property
    def live(self) -> LiveCluster | None:
        """None where files are meant."""
        if self.files:
            return None
        from kubesched.ask.sources.live import LiveCluster
        from kubesched.kube.connection import as_kubectl

        try:
            settings = as_kubectl(self._kubeconfig, self._context, os.environ)
        except ConnectionSettingsError as error:
            refuse([*error.lines, "no -f was given, so the live cluster is meant"])
        name = f"context {self._context}" if self._context else ""
        return LiveCluster(settings, os.environ, name=name, timeout=self._timeout)

    @property
    def namespace(self) -> str:
        """The namespace of what is named without one."""
        return DEFAULT_NAMESPACE if self.live is None else self.live.settings.namespace

    @property
    def origin(self) -> str:
        """What messages call it."""
        if self.live is not None:
            return self.live.origin
        return ", ".join("<stdin>" if file == "-" else file for file in self.files)

    @property
    def version(self) -> str:
        """The version of the API server: `v1.36.4`; empty where it is unknown."""
        opened = self._opened
        return opened.version if opened is not None else ""

    def configuration(self) -> FoundConfiguration | None:
        """The configuration of the scheduler in charge; None for manifests, which say nothing of it."""
        opened = self._opened
        return opened.configuration() if opened is not None else None

    @property
    def _opened(self) -> LiveCluster | Snapshot | None:
        return next(iter(self.snapshots.values()), None) or self.live

    def read(self, *, workloads: bool = False, custom: Iterable[str] = ()) -> ClusterReading | None:
        """What a live cluster or a snapshot has, with warnings about what it lacks; None if there are only files."""
        opened = self._opened
        if opened is None:
            return None
        if not isinstance(opened, Snapshot):
            with progress_bar("Reading the cluster", every=1) as progress:
                reading = opened.read(
                    workloads=workloads, custom=custom, progress=progress and (lambda count: progress(count, None))
                )
        else:
            reading = opened.read(workloads=workloads, custom=custom)
        for unreadable in reading.unreadable:
            click.echo(f"Warning: {unreadable}", err=True)
        return reading

    def close(self) -> None:
        live = self.__dict__.get("live")
        if live is not None:
            live.close()


def say_configuration(configuration: FoundConfiguration) -> None:
    """Which configuration decisions follow, where none was given."""
    if configuration.text:
        click.echo(f"Scheduler configuration: {configuration.origin}", err=True)
    else:
        why = f" ({configuration.origin})" if configuration.origin else ""
        click.echo(f"Scheduler configuration: the defaults{why}; --config gives another", err=True)
