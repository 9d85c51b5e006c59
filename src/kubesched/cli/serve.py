"""`kubesched serve`: the questions over HTTP, for programs."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from contextlib import AbstractAsyncContextManager, nullcontext
from math import inf

import click
import uvloop

from kubesched.ask.service import QueryService
from kubesched.ask.sources.following import ClusterFeed, Files, following
from kubesched.cli.cluster_options import (
    SchedulerConfig,
    config_option,
    feature_gates_option,
    manifests_of,
    scheduler_config,
)
from kubesched.cli.cluster_source import ClusterSource, DurationType, source_options
from kubesched.config import Features
from kubesched.framework.budget import LIMIT, Budget
from kubesched.http.access import BearerToken, check_exposure
from kubesched.http.listen import tls_context
from kubesched.scheduler import garbage
from kubesched.serve.server import LARGEST_BODY, MOST_AT_ONCE, QuestionServer, ServiceSettings
from kubesched.simulate.cluster import ClusterModel

PORT = 8230
MOST_WHAT_IFS = 4
"""How many may be under way: one is answered, the others wait for their turn."""


@click.command()
@source_options
@config_option
@feature_gates_option
@click.option("--bind-address", "host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=PORT, show_default=True, help="0 picks a free one.")
@click.option("--token-file", default="", metavar="FILE", help="File with the bearer token; else one is printed.")
@click.option("--tls-cert-file", default="", metavar="FILE", help="Certificate to show, for HTTPS.")
@click.option("--tls-private-key-file", default="", metavar="FILE", help="Its key.")
@click.option("--client-ca-file", default="", metavar="FILE", help="Admit clients with certificates of this authority.")
@click.option(
    "--question-timeout",
    type=DurationType(),
    default="10s",
    show_default=True,
    metavar="DURATION",
    help="How long a question may take; 0 is no limit.",
)
@click.option(
    "--what-if-timeout",
    type=DurationType(),
    default="60s",
    show_default=True,
    metavar="DURATION",
    help="How long a what-if may take, with its wait for others; 0 is no limit.",
)
@click.option(
    "--max-questions",
    type=click.IntRange(min=1),
    default=MOST_AT_ONCE,
    show_default=True,
    help="How many may be under way at once.",
)
@click.option(
    "--max-body",
    type=click.IntRange(min=1),
    default=LARGEST_BODY,
    show_default=True,
    metavar="BYTES",
    help="How large a question may be.",
)
def serve(
    source: ClusterSource,
    config_file: str | None,
    features: Features,
    host: str,
    port: int,
    token_file: str,
    tls_cert_file: str,
    tls_private_key_file: str,
    client_ca_file: str,
    question_timeout: float | None,
    what_if_timeout: float | None,
    max_questions: int,
    max_body: int,
) -> None:
    """Answer questions of programs over HTTP: would these pods fit, where, why not, and what would help.

    The live cluster is followed by watches; files and snapshots stay as they are. Nothing is written to the cluster.
    """
    tls = tls_context(tls_cert_file, tls_private_key_file, client_ca_file)
    check_exposure(host, has_token=True, has_tls=tls is not None)
    settings = ServiceSettings(
        host=host,
        port=port,
        token=None if client_ca_file and not token_file else BearerToken(token_file),
        tls=tls,
        largest_body=max_body,
        most_at_once=max_questions,
        timeout=question_timeout,
    )
    cluster, current = cluster_and_feed(source, scheduler_config(source, config_file, features))
    uvloop.run(_serve(cluster, current, settings, what_if_timeout or inf, tells_token=not token_file))


async def _serve(
    cluster: ClusterModel,
    current: AbstractAsyncContextManager[ClusterFeed],
    settings: ServiceSettings,
    what_if_timeout: float,
    *,
    tells_token: bool,
) -> None:
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    async with current as feed:
        service = QueryService(
            cluster,
            feed,
            stands_still=isinstance(feed, Files),
            timeout=settings.timeout or inf,
            slow_timeout=what_if_timeout,
            most_waiting=MOST_WHAT_IFS,
        )
        server = QuestionServer(service, settings)
        await server.start()
        try:
            click.echo(f"Listening on {server.url}")
            if settings.token is not None and tells_token:
                click.echo(f"Token: {settings.token.value}")
            await ended.wait()
        finally:
            await server.stop()


def cluster_and_feed(
    source: ClusterSource, config: SchedulerConfig
) -> tuple[ClusterModel, AbstractAsyncContextManager[ClusterFeed]]:
    """The cluster, and what keeps it current. Of equals the first is chosen: a question has one answer.

    Of files workloads have made their pods, as for the commands; of a live cluster that is for its controllers.
    """
    live = source.live
    objects = manifests_of(source, config, workloads=True).objects if live is None else ()
    budget = Budget(time.thread_time, limit=LIMIT)
    make = ClusterModel.with_missing_pods if live is None else ClusterModel
    cluster = make(objects, config.settings, profiles=config.profiles, draw=lambda among: 0, budget=budget)
    if live is None:
        return cluster, nullcontext(Files(source.origin))
    garbage.collect_seldom()
    custom = config.custom_resources
    return cluster, following(cluster, live.settings, os.environ, custom=custom, origin=live.origin)
