"""`--feature-gates`, as `kubesched run` takes it, for every command that schedules."""

from __future__ import annotations

import click

from kubesched.cli.input import refuse
from kubesched.config import Features
from kubesched.daemon.feature_gates import FeatureGates, GateError
from kubesched.daemon.flags.values import MULTIMAP


def _read(context: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> Features:
    """What the gates turn on and off; or what is wrong with them, and the end."""
    try:
        gates = FeatureGates.parse(MULTIMAP.parse(",".join(given)))
    except GateError as error:
        refuse([f"--feature-gates: {error}"])
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
