"""`kubesched ui`: the web page of a live cluster as it is now, of manifests, a dump or a snapshot."""

from __future__ import annotations

import asyncio
import signal
import webbrowser

import click
import uvloop

from kubesched.api.errors import UserError, located
from kubesched.cli.input import describe, read, refuse
from kubesched.cli.offline import asked, config_option, feature_gates_option, seed_option
from kubesched.cli.printing import console
from kubesched.cli.source import source, source_options
from kubesched.config import Features
from kubesched.plugins.registry import all_plugins
from kubesched.scheduler.recording.replay import ReplayError
from kubesched.ui.server import PageServer
from kubesched.ui.sources.manifests import observe_manifests
from kubesched.ui.travel import TimeTravel


@click.command()
@source_options
@config_option
@feature_gates_option
@seed_option
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port to listen on; 0 picks a free one.")
@click.option("--no-browser", is_flag=True, help="Only print the address, do not open it.")
@click.option("--recording", metavar="FILE", help="A recording of `run` or `simulate` to travel through in time.")
def ui(
    files: tuple[str, ...],
    config_file: str | None,
    features: Features,
    seed: int,
    port: int,
    no_browser: bool,
    recording: str | None,
) -> None:
    """Show a cluster as a web page: its nodes, who waits and why, every decision, and pods to try.

    A live cluster is read once, and shown as it was then. With --recording it is any moment of a recording, as this
    version of the scheduler replays it with the configuration that was recorded. The page is on
    127.0.0.1 and needs the token of the printed address. It changes nothing.
    """
    if recording is not None:
        if files or config_file is not None:
            refuse(["--recording: it has its own cluster and configuration, so -f and --config mean nothing beside it"])
        server = PageServer(_travel(recording), port=port)
    else:
        found, _ = asked(files, config_file, features, seed)
        server = PageServer(observe_manifests(found.cluster, source().origin), port=port)
    uvloop.run(_serve(server, opens=not no_browser))


def _travel(file: str) -> TimeTravel:
    origin, text = read(file)
    with located(origin, ReplayError):
        return TimeTravel(text.splitlines(), origin, all_plugins())


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
