"""`kubesched`: the command and its subcommands."""

from __future__ import annotations

import click

from kubesched import __version__
from kubesched.cli.capacity import capacity
from kubesched.cli.compare import compare
from kubesched.cli.config import config
from kubesched.cli.explain import explain
from kubesched.cli.place import place
from kubesched.cli.replay import replay
from kubesched.cli.run import run
from kubesched.cli.sandbox import sandbox
from kubesched.cli.simulate import simulate


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="kubesched")
def main() -> None:
    """The Kubernetes scheduler in Python: asks the same questions, and tells you the answers."""


main.add_command(capacity)
main.add_command(compare)
main.add_command(config)
main.add_command(explain)
main.add_command(place)
main.add_command(replay)
main.add_command(run)
main.add_command(sandbox)
main.add_command(simulate)
