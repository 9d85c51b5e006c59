"""`kubesched run`: the drop-in scheduler on a live cluster. Its flags are kube-scheduler's, read in their own way."""

from __future__ import annotations

import sys

import click
from click.shell_completion import CompletionItem

from kubesched.api.errors import UserError
from kubesched.daemon.options import FLAGS
from kubesched.daemon.page import ObservedReplica
from kubesched.daemon.run import main
from kubesched.daemon.serving.server import ServedPage


class _Run(click.Command):
    """Click knows nothing of the flags, so it is told which there are."""

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        return [
            CompletionItem(f"--{name}", help=flag.help)
            for name, flag in FLAGS.items()
            if f"--{name}".startswith(incomplete)
        ]


@click.command(
    cls=_Run,
    add_help_option=False,
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True, "allow_interspersed_args": False},
    short_help="Schedule on a live cluster, with kube-scheduler's flags.",
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def run(arguments: tuple[str, ...]) -> None:
    """Schedule on a live cluster, with kube-scheduler's flags."""
    sys.exit(main(arguments, make_page=_page))


def _page(subject: ObservedReplica) -> ServedPage:
    try:  # only with --ui-port: a scheduler without it need not load it
        from kubesched.ui.daemon_page import DaemonPage
    except ModuleNotFoundError as error:
        if error.name != "kubesched.ui":
            raise
        raise UserError("--ui-port: needs the web page, and this image was built without it (PAGE=no)") from error
    return DaemonPage(subject)
