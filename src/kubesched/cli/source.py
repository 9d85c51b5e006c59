"""Which cluster a command is about: files, a snapshot, or the live cluster that kubectl would talk to."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import click

from kubesched.cli.input import refuse
from kubesched.cli.printing import progress_bar
from kubesched.config import Duration
from kubesched.kube.connection import as_kubectl
from kubesched.kube.errors import ConnectionSettingsError
from kubesched.questions.sources.live import LiveCluster
from kubesched.questions.sources.reading import ClusterReading, FoundConfiguration
from kubesched.questions.sources.snapshot import Snapshot, open_snapshot
from kubesched.simulate.kinds import DEFAULT_NAMESPACE

F = TypeVar("F", bound=Callable[..., Any])

PATIENCE = "2m"
_META = "kubesched.source"


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


def _noted(ctx: click.Context, parameter: click.Parameter, value: Any) -> Any:
    """Keep what was given for `source`, whatever the command makes of it."""
    ctx.meta.setdefault(_META, {})[parameter.name] = value
    return value


file_option = click.option(
    "-f",
    "--filename",
    "files",
    multiple=True,
    callback=_noted,
    help="File or directory with manifests, a snapshot, or - for standard input. Can be repeated. "
    "Without it the live cluster is read.",
)


def live_options(command: F) -> F:
    """Which live cluster is meant."""
    for option in (
        click.option(
            "--request-timeout",
            type=DurationType(),
            default=PATIENCE,
            show_default=True,
            metavar="DURATION",
            callback=_noted,
            expose_value=False,
            help="How long reading the live cluster may take; 0 is no limit.",
        ),
        click.option(
            "--context",
            default="",
            callback=_noted,
            expose_value=False,
            help="Context of the kubeconfig; its current one if not set.",
        ),
        click.option(
            "--kubeconfig",
            default="",
            metavar="FILE",
            callback=_noted,
            expose_value=False,
            help="Kubeconfig of the live cluster; as for kubectl if not set.",
        ),
    ):
        command = option(command)
    return command


def source_options(command: F) -> F:
    """Files, or the live cluster."""
    return live_options(file_option(command))


namespace_option = click.option(
    "-n",
    "--namespace",
    default="",
    callback=_noted,
    expose_value=False,
    help="Namespace of what is named without one; that of the context, or default, if not set.",
)


class Source:
    """Where the cluster comes from, opened when it is first asked."""

    def __init__(self, files: tuple[str, ...], context: str, kubeconfig: str, timeout: float | None) -> None:
        self.snapshots: frozenset[str] = frozenset()
        """Those of the files that are snapshots."""
        self._files = files
        self._snapshot: Snapshot | None = None
        self.live: LiveCluster | None = None
        """None where files are meant."""
        self.namespace = DEFAULT_NAMESPACE
        if files:
            if context or kubeconfig:
                refuse(["--context and --kubeconfig are for a live cluster, -f is for files: give one or the other"])
            found = {file: opened for file in files if (opened := open_snapshot(file)) is not None}
            if len(found) > 1:
                refuse([f"{', '.join(found)}: expected one snapshot at most"])
            self.snapshots = frozenset(found)
            self._snapshot = next(iter(found.values()), None)
            return
        try:
            settings = as_kubectl(kubeconfig, context, os.environ)
        except ConnectionSettingsError as error:
            refuse([*error.lines, "no -f was given, so the live cluster is meant"])
        name = f"context {context}" if context else ""
        self.namespace = settings.namespace
        self.live = LiveCluster(settings, os.environ, name=name, timeout=timeout)

    @property
    def origin(self) -> str:
        """What messages call it."""
        if self.live is not None:
            return self.live.origin
        return ", ".join("<stdin>" if file == "-" else file for file in self._files)

    def configuration(self) -> FoundConfiguration | None:
        """The configuration of the scheduler in charge; None where nobody could know it."""
        opened = self.live or self._snapshot
        return opened.configuration() if opened is not None else None

    def read(self, *, workloads: bool = False, custom: Iterable[str] = ()) -> ClusterReading | None:
        """What a live cluster or a snapshot has, with warnings about what it lacks; None if there are only files."""
        if self.live is not None:
            with progress_bar("Reading the cluster", every=1) as progress:
                reading = self.live.read(
                    workloads=workloads, custom=custom, progress=progress and (lambda count: progress(count, None))
                )
        elif self._snapshot is not None:
            reading = self._snapshot.read(workloads=workloads, custom=custom)
        else:
            return None
        for each in reading.unreadable:
            click.echo(f"Warning: {each}", err=True)
        return reading

    def close(self) -> None:
        if self.live is not None:
            self.live.close()


def source() -> Source:
    """The cluster that the options of the running command name."""
    ctx = click.get_current_context()
    given: dict[str, Any] = ctx.meta.setdefault(_META, {})
    if "opened" not in given:
        opened = Source(
            given.get("files", ()),
            given.get("context", ""),
            given.get("kubeconfig", ""),
            given.get("request_timeout"),
        )
        ctx.call_on_close(opened.close)
        given["opened"] = opened
    found: Source = given["opened"]
    return found


def namespace() -> str:
    """The namespace of what is named without one."""
    given = click.get_current_context().meta.get(_META, {}).get("namespace", "")
    return given or source().namespace


def say_configuration(found: FoundConfiguration) -> None:
    """Which configuration decisions follow, where none was given."""
    if found.text:
        click.echo(f"Scheduler configuration: {found.origin}", err=True)
    else:
        why = f" ({found.origin})" if found.origin else ""
        click.echo(f"Scheduler configuration: the defaults{why}; --config gives another", err=True)
