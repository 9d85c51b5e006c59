"""`kubesched mcp`: the questions as tools for agents, by the Model Context Protocol."""

from __future__ import annotations

import asyncio
import socket
from math import inf
from typing import Any

import click

from kubesched.api.errors import UserError
from kubesched.cli.cluster_options import config_option, feature_gates_option, scheduler_config
from kubesched.cli.cluster_source import ClusterSource, source_options
from kubesched.cli.service_options import ServiceOptions, query_service, service_options
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
@service_options(port=PORT, timeout="60s")
def mcp(
    source: ClusterSource, config_file: str | None, features: Features, transport: str, options: ServiceOptions
) -> None:
    """Answer agents by the Model Context Protocol: why pods wait, what would help, what if. Nothing is written.

    The live cluster is followed by watches; files and snapshots stay as they are. --bind-address, --port, --token-file
    and the certificate are for --transport http.
    """
    try:
        from kubesched.mcp.server import http_application, mcp_server, serve_streams
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("mcp"):
            raise
        raise UserError("mcp: the packages of the extra `mcp` are not installed: see docs/agents.md") from error
    if transport == HTTP:
        check_exposure(options.host, has_token=True, has_tls=bool(options.tls_cert_file))
    timeout = options.question_timeout
    config = scheduler_config(source, config_file, features)
    answering = query_service(source, config, timeout=timeout, slow_timeout=timeout)

    async def answer_all() -> None:
        async with answering as service:
            server = mcp_server(service, timeout or inf)
            if transport == STDIO:
                await serve_streams(server)
            else:
                token = BearerToken(options.token_file)
                await _listen(http_application(server, token, options.host), token, options)

    asyncio.run(answer_all())


async def _listen(application: Any, token: BearerToken, options: ServiceOptions) -> None:
    import uvicorn

    from kubesched.mcp.server import PATH

    host, cert = options.host, options.tls_cert_file
    tls: dict[str, Any] = {"ssl_certfile": cert, "ssl_keyfile": options.tls_private_key_file} if cert else {}
    config = uvicorn.Config(application, host=host, port=options.port, log_level="warning", lifespan="on", **tls)
    listening = socket.create_server((host, options.port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    shown = f"[{host}]" if ":" in host else host
    click.echo(f"Listening on {'https' if tls else 'http'}://{shown}:{listening.getsockname()[1]}{PATH}")
    if not options.token_file:
        click.echo(f"Token: {token.value}")
    await uvicorn.Server(config).serve(sockets=[listening])
