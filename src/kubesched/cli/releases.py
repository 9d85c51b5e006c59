"""What an upgrade of Kubernetes would change: `compare` with two releases, `what-if --upgrade-to`."""

from __future__ import annotations

from collections.abc import Sequence

import click
from rich.console import Console

from kubesched import config as configuration
from kubesched.api.errors import located
from kubesched.api.release import Release
from kubesched.ask.answers import Skipped, answer
from kubesched.ask.html import releases_page
from kubesched.ask.output import listed
from kubesched.ask.releases.comparison import ReleaseComparison, compare_releases
from kubesched.ask.releases.settings import usable_gates
from kubesched.cli.cluster_options import (
    SchedulerConfig,
    plugin_errors_reported,
    written_config,
)
from kubesched.cli.cluster_source import ClusterSource
from kubesched.cli.edit_options import EditOptions
from kubesched.cli.grid import STRONG, Grid
from kubesched.cli.input import refuse
from kubesched.cli.printing import BAD, console, note, paragraph, print_plain, print_rows, print_skipped, progress_bar
from kubesched.config import Features, SchedulerConfiguration
from kubesched.daemon.feature_gates import FeatureGates, gate_settings
from kubesched.daemon.flag_values import MULTIMAP
from kubesched.simulate.cluster import profiles_of

MOST_ROWS = 20
_NAMED = 3


def answer_releases(
    source: ClusterSource,
    releases: Sequence[Release],
    config_file: str | None,
    gates: Sequence[str],
    edits: EditOptions,
    *,
    output: str,
    all_pods: bool,
) -> None:
    """Compare two releases on the cluster that is meant, and print it; or all that is wrong, and the end."""
    if releases[0] == releases[1]:
        refuse([f"expected two different releases, got {releases[0].name} twice"])
    with located("--feature-gates"):
        gate_values = gate_settings(MULTIMAP.parse(",".join(gates)))
        (before, refused_before), (after, refused_after) = (_features(gate_values, release) for release in releases)
    origin, text = written_config(source, config_file)

    def load(features: Features) -> SchedulerConfiguration:
        if not text:
            return configuration.default(features)
        return configuration.load(text, source=origin or "", features=features)

    try:
        settings = load(after)
    except configuration.ConfigError:
        settings = load(before)
    manifests = edits.edited(source, SchedulerConfig(origin, settings, profiles_of(settings)))
    with plugin_errors_reported(), progress_bar("Deciding") as progress:
        refused = (*refused_before, *refused_after)
        comparison = compare_releases(
            manifests.objects, load, before, after, gates=gate_values, refused=refused, progress=progress
        )
    match output:
        case "json" | "yaml":
            print_plain(answer(comparison, Skipped(manifests.skipped)), output)
        case "html":
            click.echo(releases_page(comparison), nl=False)
        case _:
            _print(console(), comparison, most=None if all_pods else MOST_ROWS)
            print_skipped(console(), manifests.skipped)


def _features(gates: dict[str, bool], release: Release) -> tuple[Features, list[str]]:
    """What the gates come to under a release, without those that it refuses. GateError if it would be no better."""
    usable, refused = usable_gates(gates, release)
    return Features.of(FeatureGates(usable, release), release), refused


def _print(out: Console, comparison: ReleaseComparison, *, most: int | None) -> None:
    paragraph(out, f"From Kubernetes {comparison.before} to {comparison.after}", STRONG)
    for line in comparison.refused:
        paragraph(out, f"Refused by {line}", BAD)
    if comparison.decided or not comparison.refused:
        paragraph(out, comparison.summary)
    for group in comparison.groups:
        out.print()
        paragraph(out, group.title, STRONG)
        for cause in group.causes:
            paragraph(out, f"{cause.name}: {cause.reference}")
        rows = Grid(("Pods", "", "Number", comparison.before, comparison.after), right=(2,), spaced=True)
        for change in group.changes[:most]:
            names = listed(change.pods, _NAMED).replace(", ", "\n")
            rows.add(names, change.kind, str(len(change.pods)), change.before.words, change.after.words)
        print_rows(out, rows, len(group.changes) - (most or len(group.changes)))
    for title, settings in (("Field of the configuration", comparison.fields), ("Feature gate", comparison.gates)):
        rows = Grid((title, comparison.before, comparison.after), spaced=settings is comparison.fields)
        for setting in settings:
            rows.add(setting.setting, setting.before or "none", setting.after or "none")
        if settings:
            print_rows(out, rows)
    if comparison.decided:
        out.print()
        note(out, comparison.method)
