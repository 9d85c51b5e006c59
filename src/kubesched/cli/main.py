"""`kubesched`: the command and its subcommands, each loaded when it is called, so that a question is answered soon."""

from __future__ import annotations

import difflib
import sys
from importlib import import_module
from typing import Any

import click

from kubesched import __version__
from kubesched.api.errors import UserError
from kubesched.cli.input import refuse

COMMANDS = {
    "capacity": "Count how many more copies of a pod fit on the cluster, and say what stops the next one.",
    "check": "Check whether nodes can be drained or upgraded now: budgets, room, replicas, local data.",
    "compare": "Simulate the cluster once per configuration, and show the results side by side.",
    "config": "Check, complete and convert scheduler configurations.",
    "explain": "Explain decisions: the verdict on all nodes, the scores, the choice, preemption, and what would help.",
    "mcp": "Answer agents by the Model Context Protocol: why pods wait, what would help, what if.",
    "place": "Place all pending pods, and those that workloads lack, one after another, and show where they go.",
    "plan": "Plan moves, nodes and placements, with a bound that says how far from the best they are.",
    "plugin": "List the plugins that are installed, and begin a new one.",
    "rbac": "Print the roles that a step needs, and nothing more: to ask, to run in shadow mode, to schedule.",
    "replay": "Run a recording again and compare every decision.",
    "run": "Schedule on a live cluster, with kube-scheduler's flags.",
    "sandbox": "Run a cluster in one process: an API server for kubectl, hollow nodes, controllers and the scheduler.",
    "serve": "Answer questions of programs over HTTP: would these pods fit, where, why not, and what would help.",
    "shadow": "Tell what a shadow found: on how many pods two schedulers agree, and why they differ.",
    "simulate": "Run the pods and workloads of the cluster in virtual time, to the end.",
    "snapshot": "Write all that scheduling looks at on a live cluster to a file, for -f of the other commands.",
    "test": "Run placement tests: cases that say where pods have to land, and where never.",
    "ui": "Show a cluster as a web page: its nodes, who waits and why, every decision, and pods to try.",
    "version": "Show the version, and the release of Kubernetes that decisions follow.",
    "what-if": "Change the cluster, and show the difference: who moves, who waits and why, who is evicted.",
}
"""Each is the attribute of its name in the module of its name (the sandbox has its own distribution); with the first
sentence of its help, so that the list of commands can be shown without loading any."""

MAY_BE_MISSING = {
    "kubesched_sandbox": "the package kubesched-sandbox beside kubesched",
    "kubesched.ui": "the web page, and this image was built without it (PAGE=no)",
}
"""Packages that an installation can do without, and what to say where one is asked for."""


class SuggestingGroup(click.Group):
    """Names the commands that are spelled like the one that there is not. For options, click does the same."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        commands = self.list_commands(ctx)
        name = args[0]
        if name not in commands and not name.startswith("-") and not ctx.resilient_parsing:
            close = difflib.get_close_matches(name, commands, n=3, cutoff=0.5)
            hint = f" Did you mean {' or '.join(close)}?" if close else ""
            ctx.fail(f"No such command {name!r}.{hint}")
        return super().resolve_command(ctx, args)


class CommandsByModule(SuggestingGroup):
    """A group whose commands are modules beside this one."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        name = cmd_name.replace("-", "_")
        module = "kubesched_sandbox.cli" if name == "sandbox" else f"kubesched.cli.{name}"
        try:
            command: click.Command = getattr(import_module(module), name)
        except ModuleNotFoundError as error:
            if error.name not in MAY_BE_MISSING:
                raise
            raise UserError(f"{cmd_name}: needs {MAY_BE_MISSING[error.name]}") from error
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command. What its user can put right is printed, a line per mistake; a bug keeps its traceback."""
        try:
            return super().invoke(ctx)
        except UserError as error:
            refuse(error.lines)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=CommandsByModule, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="kubesched")
def main() -> None:
    """The Kubernetes scheduler in Python: on a live cluster, in a sandbox, or on manifests."""


_NO_FILES, _FILES = 4, 0
"""Directives of cobra, kubectl's parser: whether names of files may follow as well."""


def complete_for_kubectl() -> None:
    """`kubectl_complete-sched`, which kubectl runs to complete `kubectl sched ...`.

    Prints a completion per line, then the directive. The last argument is the word that is being typed.
    """
    from click.shell_completion import ShellComplete

    *before, word = sys.argv[1:] or [""]
    completions = ShellComplete(main, {}, "kubectl-sched", "").get_completions(before, word)
    for item in completions:
        if item.type == "plain":
            click.echo(f"{item.value}\t{item.help}" if item.help else item.value)
    click.echo(f":{_FILES if any(item.type != 'plain' for item in completions) or not completions else _NO_FILES}")
