"""What commands read, and how they refuse it: a line per mistake on standard error, and exit code 2."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn

import click


def read(file: str) -> tuple[str, str]:
    """What to call the file in messages, and its text; `-` is standard input."""
    source = "<stdin>" if file == "-" else file
    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        return source, data.decode()
    except OSError as error:
        refuse([describe(error, source)])
    except UnicodeDecodeError:
        refuse([f"{source}: not UTF-8 text"])


def describe(error: OSError, where: str) -> str:
    """The error as one line."""
    return f"{where}: {error.strerror or error}"


def refuse(lines: Iterable[str]) -> NoReturn:
    """Say what is wrong and stop."""
    for line in lines:
        click.echo(line, err=True)
    sys.exit(2)
