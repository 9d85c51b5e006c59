"""`kubesched serve`: the questions over HTTP, for programs."""

from __future__ import annotations

import asyncio
import signal
from contextlib import AbstractAsyncContextManager

import click
import uvloop

from kubesched.ask.service import QueryService
from kubesched.cli.cluster_options import config_option, feature_gates_option, scheduler_config
from kubesched.cli.cluster_source import ClusterSource, DurationType, source_options
from kubesched.cli.service_options import ServiceOptions, query_service, service_options
from kubesched.config import Features
from kubesched.http.access import BearerToken, check_exposure
from kubesched.http.listen import tls_context
from kubesched.serve.server import LARGEST_BODY, MOST_AT_ONCE, QuestionServer, ServiceSettings

PORT = 8230


@click.command()
@source_options
@config_option
@feature_gates_option
@service_options(port=PORT, timeout="10s")
@click.option("--client-ca-file", default="", metavar="FILE", help="Admit clients with certificates of this authority.")
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
    options: ServiceOptions,
    client_ca_file: str,
    what_if_timeout: float | None,
    max_questions: int,
    max_body: int,
) -> None:
    """Answer questions of programs over HTTP: would these pods fit, where, why not, and what would help.

    The live cluster is followed by watches; files and snapshots stay as they are. Nothing is written to the cluster.
    """
    tls = tls_context(options.tls_cert_file, options.tls_private_key_file, client_ca_file)
    check_exposure(options.host, has_token=True, has_tls=tls is not None)
    settings = ServiceSettings(
        host=options.host,
        port=options.port,
        token=None if client_ca_file and not options.token_file else BearerToken(options.token_file),
        tls=tls,
        largest_body=max_body,
        most_at_once=max_questions,
        timeout=options.question_timeout,
    )
    config = scheduler_config(source, config_file, features)
    answering = query_service(source, config, timeout=options.question_timeout, slow_timeout=what_if_timeout)
    uvloop.run(_serve(answering, settings, tells_token=not options.token_file))


async def _serve(
    answering: AbstractAsyncContextManager[QueryService], settings: ServiceSettings, *, tells_token: bool
) -> None:
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    async with answering as service:
        server = QuestionServer(service, settings)
        await server.start()
        try:
            click.echo(f"Listening on {server.url}")
            if settings.token is not None and tells_token:
                click.echo(f"Token: {settings.token.value}")
            await ended.wait()
        finally:
            await server.stop()
