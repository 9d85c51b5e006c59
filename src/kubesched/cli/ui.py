"""`kubesched ui`: the web page of a live cluster as it is now, of manifests, a dump or a snapshot."""

from __future__ import annotations

import asyncio
import signal
import webbrowser

import click
import uvloop

from kubesched.api.errors import UserError
from kubesched.cli.input import describe
from kubesched.cli.offline import asked, config_option, feature_gates_option, seed_option
from kubesched.cli.printing import console
from kubesched.cli.source import source, source_options
from kubesched.config import Features
from kubesched.ui.server import PageServer
from kubesched.ui.sources.manifests import observe_manifests


@click.command()
@source_options
@config_option
@feature_gates_option
@seed_option
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port to listen on; 0 picks a free one.")
@click.option("--no-browser", is_flag=True, help="Only print the address, do not open it.")
def ui(
    files: tuple[str, ...], config_file: str | None, features: Features, seed: int, port: int, no_browser: bool
) -> None:
    """Show a cluster as a web page: its nodes, who waits and why, every decision, and pods to try.

    A live cluster is read once, and shown as it was then. The page is on 127.0.0.1 and needs the token of the printed
    address. It changes nothing.
    """
    found, _ = asked(files, config_file, features, seed)
    server = PageServer(observe_manifests(found.cluster, source().origin), port=port)
    uvloop.run(_serve(server, opens=not no_browser))


async def _serve(server: PageServer, *, opens: bool) -> None:
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    await started(server)
    try:
        console().print(f"{server.url}\nCtrl-C ends it.", soft_wrap=True)
        if opens:
            await asyncio.to_thread(webbrowser.open, server.url)
        await ended.wait()
    finally:
        await server.stop()


async def started(server: PageServer) -> None:
    """Start it. UserError if the port is taken."""
    try:
        await server.start()
    except OSError as error:
        raise UserError(describe(error, f"port {server.port} for the page")) from error
