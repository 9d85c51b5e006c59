"""The way from a command line to options: help, versions and mistakes are dealt with here, as kube-scheduler does."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from typing import TextIO

from kubesched.daemon.flags.parsing import FlagError
from kubesched.daemon.options import ArgumentsError, Options, help_text, parse_options, usage
from kubesched.daemon.version import version_text


def options_or_exit_code(arguments: Sequence[str], command: str, out: TextIO, err: TextIO) -> Options | int:
    """What to run with; or, if there is nothing to run, the code to exit with once all has been said."""
    width = shutil.get_terminal_size((0, 0)).columns
    try:
        options = parse_options(arguments, command)
    except ArgumentsError as problem:
        err.write(f"Error: {problem}\n")
        return 1
    except FlagError as problem:
        err.write(f"{usage(command, width)}\nError: {problem}\n")
        return 1
    if options.help:
        out.write(help_text(command, width))
        return 0
    text = version_text(options.version)
    if text is not None:
        out.write(f"{text}\n")
        return 0
    return options
