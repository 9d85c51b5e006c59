"""`kubesched version`: which kubesched this is, and which Kubernetes it follows."""

from __future__ import annotations

import platform

import click

from kubesched import __version__
from kubesched.api.release import NEWEST, RELEASES
from kubesched.ask.output import document
from kubesched.ask.version_answer import VersionAnswer
from kubesched.cli.printing import TEXT, output_option, print_plain


@click.command()
@output_option()
def version(output: str) -> None:
    """Show the version, and the release of Kubernetes that decisions follow."""
    releases = tuple(f"v{release.version}" for release in reversed(RELEASES.values()))
    answer = VersionAnswer(__version__, f"v{NEWEST.version}", platform.python_version(), releases)
    if output == TEXT:
        followed = " or ".join(releases)
        click.echo(f"kubesched {answer.version}, as Kubernetes {followed}, on Python {answer.python}")
    else:
        print_plain(document("Version", answer), output)
