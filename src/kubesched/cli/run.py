"""`kubesched run`: the drop-in scheduler on a live cluster. Its flags are kube-scheduler's, read in their own way."""

from __future__ import annotations

import sys

import click

from kubesched.daemon.run import main


@click.command(
    add_help_option=False,
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True, "allow_interspersed_args": False},
    short_help="Schedule on a live cluster, with kube-scheduler's flags.",
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def run(arguments: tuple[str, ...]) -> None:
    """Schedule on a live cluster, with kube-scheduler's flags."""
    sys.exit(main(arguments))
