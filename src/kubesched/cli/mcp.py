"""`kubesched mcp`: the questions as tools for agents, by the Model Context Protocol."""

from __future__ import annotations

import asyncio
import socket
from math import inf
from typing import Any

import click

from kubesched.api.errors import UserError
from kubesched.ask.service import QueryService
from kubesched.ask.sources.following import Files
from kubesched.cli.cluster_options import config_option, feature_gates_option, scheduler_config
from kubesched.cli.cluster_source import ClusterSource, DurationType, source_options
from kubesched.cli.serve import MOST_WHAT_IFS, cluster_and_feed
from kubesched.config import Features
from kubesched.http.access import BearerToken, check_exposure

STDIO, HTTP = "stdio", "http"
PORT = 8231


@click.command()
@source_options
@config_option
@feature_gates_option
@click.option(
    "--transport", type=click.Choice([STDIO, HTTP]), default=STDIO, show_default=True, help="How agents reach it."
)
@click.option("--bind-address", "host", default="127.0.0.1", show_default=True, help="Address to listen on, with http.")
@click.option("--port", type=click.IntRange(0, 65535), default=PORT, show_default=True, help="0 picks a free one.")
@click.option("--token-file", default="", metavar="FILE", help="File with the bearer token; else one is printed.")
@click.option("--tls-cert-file", default="", metavar="FILE", help="Certificate to show, for HTTPS.")
@click.option("--tls-private-key-file", default="", metavar="FILE", help="Its key.")
@click.option(
    "--question-timeout",
    type=DurationType(),
    default="60s",
    show_default=True,
    metavar="DURATION",
    help="How long a question may take; 0 is no limit.",
)
def mcp(
    source: ClusterSource,
    config_file: str | None,
    features: Features,
    transport: str,
    host: str,
    port: int,
    token_file: str,
    tls_cert_file: str,
    tls_private_key_file: str,
    question_timeout: float | None,
) -> None:
    """Answer agents by the Model Context Protocol: why pods wait, what would help, what if. Nothing is written.

    The live cluster is followed by watches; files and snapshots stay as they are.
    """
    try:
        from kubesched.mcp.server import http_application, mcp_server, serve_streams
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("mcp"):
            raise
        raise UserError("mcp: the packages of the extra `mcp` are not installed: see docs/agents.md") from error
    if transport == HTTP:
        check_exposure(host, has_token=True, has_tls=bool(tls_cert_file))
    timeout = question_timeout or inf
    cluster, current = cluster_and_feed(source, scheduler_config(source, config_file, features))

    async def answer_all() -> None:
        async with current as feed:
            stands_still = isinstance(feed, Files)
            service = QueryService(
                cluster,
                feed,
                stands_still=stands_still,
                timeout=timeout,
                slow_timeout=timeout,
                most_waiting=MOST_WHAT_IFS,
            )
            server = mcp_server(service, timeout)
            try:
                if transport == STDIO:
                    await serve_streams(server)
                else:
                    token = BearerToken(token_file)
                    tls = {"ssl_certfile": tls_cert_file, "ssl_keyfile": tls_private_key_file} if tls_cert_file else {}
                    told = "" if token_file else token.value
                    await _listen(http_application(server, token, host), host, port, told, tls)
            finally:
                service.close()

    asyncio.run(answer_all())


async def _listen(application: Any, host: str, port: int, told_token: str, tls: dict[str, Any]) -> None:
    import uvicorn

    from kubesched.mcp.server import PATH

    config = uvicorn.Config(application, host=host, port=port, log_level="warning", lifespan="on", **tls)
    listening = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    shown = f"[{host}]" if ":" in host else host
    click.echo(f"Listening on {'https' if tls else 'http'}://{shown}:{listening.getsockname()[1]}{PATH}")
    if told_token:
        click.echo(f"Token: {told_token}")
    await uvicorn.Server(config).serve(sockets=[listening])
