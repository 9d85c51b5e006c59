"""`kubesched ui`: the web page of a live cluster, of manifests, a dump or a snapshot, or of a recording."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import webbrowser
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager

import click
import uvloop

from kubesched.api.errors import located
from kubesched.ask.sources.following import following
from kubesched.ask.sources.live import LiveCluster, LiveClusterError
from kubesched.cli.cluster_options import SchedulerConfig, cluster_of, scheduler_config, simulation_options
from kubesched.cli.cluster_source import ClusterSource
from kubesched.cli.input import read, refuse
from kubesched.cli.printing import console
from kubesched.config import Features
from kubesched.plugins.registry import all_plugins
from kubesched.scheduler import garbage
from kubesched.scheduler.replay import ReplayError
from kubesched.simulate.cluster import ClusterModel
from kubesched.ui.server import PageServer
from kubesched.ui.sources import MeasuredUsage, observe_following, observe_manifests
from kubesched.ui.travel import TimeTravel


@click.command()
@simulation_options
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port to listen on; 0 picks a free one.")
@click.option("--no-browser", is_flag=True, help="Only print the address, do not open it.")
@click.option("--recording", metavar="FILE", help="A recording of `run` or `simulate` to travel through in time.")
def ui(
    source: ClusterSource,
    config_file: str | None,
    features: Features,
    seed: int,
    port: int,
    no_browser: bool,
    recording: str | None,
) -> None:
    """Show a cluster as a web page: its nodes, who waits and why, every decision, and pods to try.

    A live cluster is followed by watches: what happens there is seen as it happens. With --recording it is any
    moment of a recording, as this version of the scheduler replays it with the configuration that was recorded.
    The page is on 127.0.0.1 and needs the token of the printed address. It changes nothing.
    """
    served: AbstractAsyncContextManager[PageServer]
    if recording is not None:
        if source.files or config_file is not None:
            refuse(["--recording: it has its own cluster and configuration, so -f and --config mean nothing beside it"])
        served = contextlib.nullcontext(PageServer(_travel(recording), port=port))
    elif (live := source.live) is not None:
        served = _of_live(live, scheduler_config(source, config_file, features), seed, port)
    else:
        cluster, _ = cluster_of(source, config_file, features, seed)
        served = contextlib.nullcontext(PageServer(observe_manifests(cluster, source.origin), port=port))
    uvloop.run(_serve(served, opens=not no_browser))


@contextlib.asynccontextmanager
async def _of_live(live: LiveCluster, config: SchedulerConfig, seed: int, port: int) -> AsyncIterator[PageServer]:
    """The page of a cluster that watches keep current. LiveClusterError if it cannot be read."""
    cluster = ClusterModel((), config.settings, profiles=config.profiles, seed=seed)
    garbage.collect_seldom()
    custom, origin = config.custom_resources, live.origin
    async with following(cluster, live.settings, os.environ, custom=custom, origin=origin) as followed:
        for warning in followed.unreadable:
            click.echo(f"Warning: {warning}", err=True)
        try:
            async with asyncio.timeout(live.timeout):
                await followed.wait_synced()
        except TimeoutError:
            raise LiveClusterError(
                f"{origin}: could not be read within {live.timeout:g} s (--request-timeout)"
            ) from None
        garbage.freeze()
        measured = MeasuredUsage(followed.client)
        measuring = asyncio.create_task(measured.run(), name="usage")
        try:
            yield PageServer(observe_following(cluster, followed, origin, usage=lambda: measured.report), port=port)
        finally:
            measuring.cancel()


def _travel(file: str) -> TimeTravel:
    origin, text = read(file)
    with located(origin, ReplayError):
        return TimeTravel(text.splitlines(), origin, all_plugins())


async def _serve(served: AbstractAsyncContextManager[PageServer], *, opens: bool) -> None:
    async with served as server:
        ended = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, ended.set)
        await server.start()
        try:
            console().print(f"{server.url}\nCtrl-C ends it.", soft_wrap=True)
            if opens:
                await asyncio.to_thread(webbrowser.open, server.url)
            await ended.wait()
        finally:
            await server.stop()
