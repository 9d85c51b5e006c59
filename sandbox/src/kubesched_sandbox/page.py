"""The web page of a sandbox: its scheduler, and what the API server beside it knows of workloads and usage."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Callable, Iterator

from kubesched.api.kinds import CRON_JOBS, DAEMON_SETS, DEPLOYMENTS, JOBS, NODES, PODS, STATEFUL_SETS
from kubesched.ui.model.owners import WantedPods
from kubesched.ui.model.usage import UsageReport, read_usage
from kubesched.ui.server import PageServer
from kubesched.ui.sources import observe_scheduler
from kubesched.ui.views import Reused
from kubesched_sandbox.api.catalog import NODE_METRICS, POD_METRICS
from kubesched_sandbox.api.conditions import condition_of
from kubesched_sandbox.api.reading import Reading
from kubesched_sandbox.api.usage import metrics
from kubesched_sandbox.box import Sandbox, SandboxSettings

_TOKEN_BYTES = 18
"""So that the address of the page fits a line of 60 columns; it can still not be guessed."""


async def serve_page(
    box: Sandbox,
    settings: SandboxSettings,
    saying: Callable[[], str],
    port: int,
    stack: contextlib.AsyncExitStack,
) -> str:
    """Serve the page until the stack unwinds. Its address."""
    observed = observe_scheduler(
        box.scheduler,
        settings.configuration,
        kind="sandbox",
        title=f"sandbox at {box.server.url}",
        clock=asyncio.get_running_loop().time,
        plugins=settings.plugins,
        saying=saying,
        wanted=lambda: wanted_in(box.api),
        usage=Reused(lambda: usage_in(box.api)),
    )
    server = PageServer(observed, port=port, token=secrets.token_urlsafe(_TOKEN_BYTES))
    await server.start()
    stack.push_async_callback(server.stop)
    return server.url


def wanted_in(api: Reading) -> Iterator[WantedPods]:
    """How many pods the workloads of a sandbox want; Jobs of CronJobs are part of those."""
    for resource in (DEPLOYMENTS, STATEFUL_SETS, DAEMON_SETS, JOBS, CRON_JOBS):
        for obj in api.select(resource):
            spec, status, metadata = obj.get("spec") or {}, obj.get("status") or {}, obj["metadata"]
            if metadata.get("ownerReferences"):
                continue
            pods: int | None = spec.get("replicas", 1)
            if resource is DAEMON_SETS:
                pods = status.get("desiredNumberScheduled")
            elif resource is JOBS:
                left = max(spec.get("completions", 1) - status.get("succeeded", 0), 0)
                pods = min(spec.get("parallelism", 1), left)
            elif resource is CRON_JOBS:
                pods = None
            failed = condition_of(obj, "ReplicaFailure") or {}
            refusal = failed.get("message", "")
            yield WantedPods(metadata.get("namespace", ""), resource.kind, metadata["name"], pods, refusal)


def usage_in(api: Reading) -> UsageReport:
    """What its metrics API says."""
    nodes = metrics(api, NODE_METRICS, api.select(NODES), None)
    return read_usage(nodes, metrics(api, POD_METRICS, api.select(PODS), None))
