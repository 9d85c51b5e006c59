"""`kubesched`: the command and its subcommands, each loaded when it is called, so that a question is answered soon."""

from __future__ import annotations

from importlib import import_module

import click

from kubesched import __version__

COMMANDS = ("capacity", "compare", "config", "explain", "place", "replay", "run", "sandbox", "simulate")
"""Each is the attribute of its name in the module of its name."""


class CommandsByModule(click.Group):
    """A group whose commands are modules beside this one."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(import_module(f"kubesched.cli.{cmd_name}"), cmd_name)
        return command


@click.group(cls=CommandsByModule, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="kubesched")
def main() -> None:
    """The Kubernetes scheduler in Python: asks the same questions, and tells you the answers."""
