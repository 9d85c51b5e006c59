"""`--feature-gates`, as `kubesched run` takes it, for every command that schedules."""

from __future__ import annotations

import click

from kubesched.api.errors import located
from kubesched.config import Features
from kubesched.daemon.feature_gates import FeatureGates
from kubesched.daemon.flags.values import MULTIMAP


def _read(context: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> Features:
    """What the gates turn on and off. Raises GateError."""
    with located("--feature-gates"):
        gates = FeatureGates.parse(MULTIMAP.parse(",".join(given)))
    for warning in gates.warnings:
        click.echo(warning, err=True)
    return Features.of(gates)


feature_gates_option = click.option(
    "--feature-gates",
    "features",
    multiple=True,
    callback=_read,
    metavar="GATE=BOOL,...",
    help="Features to switch on or off, as for kube-scheduler. May be repeated.",
)
