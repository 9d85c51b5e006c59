"""Measuring the sandbox's API server over HTTP, with watchers connected: creations, bindings, a long list, memory."""

from __future__ import annotations

import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import NamedTuple

import msgspec
import uvloop

from bench import clusters
from bench.processes import ApiServer
from kubesched.api.pod import Pod
from kubesched.kube.authentication import transport_for
from kubesched.kube.client import Client, Throttle, WatchStream
from kubesched.kube.connection import ConnectionSettings

NODES = 5000
PODS = 10_000
WATCHERS = 5
_CONNECTIONS = 32
_LISTS = 3
_PATH = "/api/v1/namespaces/default/pods"

Request = tuple[str, bytes]


class Rate(NamedTuple):
    """Requests per second as a client sees it, and what each costs the server."""

    per_second: float
    server_us: float


class Served(NamedTuple):
    """What was measured on one server."""

    creations: Rate
    bindings: Rate
    list_seconds: float
    rss_mb: float


def serving(*, on_disk: bool, pods: int = PODS) -> Served:
    """One server from its start to its last list; on disk, every answer waits for a commit."""
    with tempfile.TemporaryDirectory() as directory, ApiServer(directory if on_disk else "") as server:
        server.ask("nodes", count=NODES)
        return uvloop.run(_serving(server, pods))


async def _serving(server: ApiServer, pods: int) -> Served:
    transport = transport_for(ConnectionSettings(server=server.url), os.environ, connections=_CONNECTIONS)
    client = Client(transport, Throttle(-1, 0, clock=time.monotonic), clock=time.monotonic)
    async with asyncio.TaskGroup() as group:
        for _ in range(WATCHERS):
            watch = await client.watch("/api/v1/pods?watch=1&resourceVersion=0", silence=60)
            group.create_task(_see(watch, 2 * pods))
        created = [(_PATH, msgspec.json.encode(clusters.pod(i, "basic"))) for i in range(pods)]
        creations = await _rate(server, client, created)
        uids = {pod.metadata.name: pod.metadata.uid for pod in await _list(client)}
        bindings = await _rate(server, client, [_binding(i, uids) for i in range(pods)])
    seconds = [await _timed_list(client) for _ in range(_LISTS)]
    await transport.close()
    return Served(creations, bindings, statistics.median(seconds), server.rss_mb())


async def _see(watch: WatchStream, events: int) -> None:
    """Read until so many events have come."""
    with closing(watch):
        while events > 0:
            lines = await watch.lines()
            assert lines, "the watch ended"
            events -= len(lines)


async def _rate(server: ApiServer, client: Client, requests: Sequence[Request]) -> Rate:
    waiting = iter(requests)

    async def post() -> None:
        for path, body in waiting:
            await client.post(path, body)

    cpu, started = server.cpu_seconds(), time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for _ in range(_CONNECTIONS):
            group.create_task(post())
    spent = time.perf_counter() - started
    return Rate(len(requests) / spent, (server.cpu_seconds() - cpu) * 1e6 / len(requests))


def _binding(i: int, uids: Mapping[str, str]) -> Request:
    name = clusters.pod(i, "basic").name
    metadata = {"name": name, "namespace": "default", "uid": uids[name]}
    target = {"kind": "Node", "name": f"node-{i % NODES:05d}"}
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}
    return f"{_PATH}/{name}/binding", msgspec.json.encode(body)


async def _list(client: Client) -> Sequence[Pod]:
    return msgspec.json.decode(await client.get("/api/v1/pods"), type=_List).items


async def _timed_list(client: Client) -> float:
    """Seconds until a client has the whole list, as bytes."""
    started = time.perf_counter()
    await client.get("/api/v1/pods")
    return time.perf_counter() - started


class _List(msgspec.Struct):
    items: tuple[Pod, ...]
