"""`kubectl_complete-sched`: what kubectl runs to complete `kubectl sched ...`."""

from __future__ import annotations

import sys

import click
from click.shell_completion import ShellComplete

from kubesched.cli.main import main

_NO_FILES, _FILES = 4, 0
"""Directives of cobra, kubectl's parser: whether names of files may follow as well."""


def complete() -> None:
    """Print a completion per line, then the directive. The last argument is the word that is being typed."""
    *before, word = sys.argv[1:] or [""]
    found = ShellComplete(main, {}, "kubectl-sched", "").get_completions(before, word)
    for item in found:
        if item.type == "plain":
            click.echo(f"{item.value}\t{item.help}" if item.help else item.value)
    click.echo(f":{_FILES if any(item.type != 'plain' for item in found) or not found else _NO_FILES}")
