"""The sandbox as a process to measure or to measure against: it takes commands on stdin, one line of JSON each."""

from __future__ import annotations

import asyncio
import json
import random
import sys
from pathlib import Path
from typing import Any

import uvloop

from bench import clusters
from kubesched import config
from kubesched.api.kinds import DEPLOYMENTS, EVENTS, NODES, PODS
from kubesched.api.pod import PodStatus
from kubesched.scheduler import garbage
from kubesched_sandbox.api import Api, ApiEvent, bootstrap
from kubesched_sandbox.http import Server
from kubesched_sandbox.nodes import HollowNodes, node_manifests
from kubesched_sandbox.reconcilers import Runner, standard_reconcilers
from kubesched_sandbox.scheduling import SandboxScheduler
from kubesched_sandbox.store import SqliteStore, Store

_AT_ONCE = 50
"""Objects made between two turns of the clients."""


class Cluster:
    """What is served, and how far the scheduler has come."""

    def __init__(self, data_dir: str) -> None:
        self.api = Api(SqliteStore(Path(data_dir)) if data_dir else Store())
        bootstrap(self.api)
        self.bound = self.events = self.running = 0
        self.api.subscribe((PODS, EVENTS), self._count)

    def _count(self, event: ApiEvent) -> None:
        if event.resource is EVENTS:
            is_about_a_pod = event.object["regarding"]["kind"] == "Pod"  # there is one about the lease, too
            self.events += event.type == "ADDED" and is_about_a_pod
        elif event.type == "MODIFIED" and event.old is not None:
            is_on, was_on = (bool(pod["spec"].get("nodeName")) for pod in (event.object, event.old))
            self.bound += is_on and not was_on
            runs, ran = ((pod.get("status") or {}).get("phase") == "Running" for pod in (event.object, event.old))
            self.running += runs and not ran

    async def add_nodes(self, count: int) -> None:
        for i in range(count):
            self.api.create(NODES, "", clusters.manifest(clusters.node(i)))
            await _turns(i)

    async def add_pods(self, kind: str, count: int, per_second: int = 0, first: int = 0) -> None:
        """All that many as fast as it goes, or one by one at a rate. The number of the first is in its name."""
        make, started = clusters.PLACED[kind], asyncio.get_running_loop().time()
        for i in range(count):
            self.api.create(PODS, "default", clusters.manifest(make(first + i)))
            if per_second:
                await asyncio.sleep(max(0.0, started + (i + 1) / per_second - asyncio.get_running_loop().time()))
            await _turns(i)

    async def add_running(self, count: int, nodes: int) -> None:
        """Pods that have been on their nodes for a while."""
        running = {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"}
        for i in range(count):
            pod = clusters.pod(i, "running", node_name=f"node-{i % nodes:05d}", status=PodStatus(phase="Running"))
            self.api.create(PODS, "default", clusters.manifest(pod))
            self.api.patch(PODS, "default", pod.name, {"status": running}, subresource="status")
            await _turns(i)

    async def come_alive(self, nodes: int) -> None:
        """From now on there are hollow nodes, controllers and a scheduler in this process."""
        hollow = HollowNodes(self.api, random.Random(1))
        self.runner = Runner(self.api, [*standard_reconcilers(self.api), hollow])
        self.runner.start()
        self.inside = SandboxScheduler(self.api, config.default())
        self.scheduling = asyncio.create_task(self.inside.run())
        for i, manifest in enumerate(node_manifests(nodes)):
            hollow.add([manifest])
            await _turns(i)

    def deploy(self, apps: int, replicas: int) -> None:
        for i in range(apps):
            name = f"app-{i}"
            pod = clusters.manifest(clusters.pod(i, name))
            template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": pod["spec"]["containers"]}}
            spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
            self.api.create(DEPLOYMENTS, "default", {"metadata": {"name": name}, "spec": spec})

    async def obey(self, command: dict[str, Any]) -> dict[str, Any]:
        match command:
            case {"do": "nodes", "count": count}:
                await self.add_nodes(count)
            case {"do": "pods", "kind": kind, "count": count, "per_second": per_second, **more}:
                await self.add_pods(kind, count, per_second, **more)
            case {"do": "running", "count": count, "nodes": nodes}:
                await self.add_running(count, nodes)
            case {"do": "come alive", "nodes": nodes}:
                await self.come_alive(nodes)
            case {"do": "deploy", "apps": apps, "replicas": replicas}:
                self.deploy(apps, replicas)
            case {"do": "tell"}:
                pass
            case _:
                raise ValueError(f"unknown command {command}")
        return {"bound": self.bound, "events": self.events, "running": self.running}


async def _turns(made: int) -> None:
    if made % _AT_ONCE == 0:
        await asyncio.sleep(0)


async def serve(data_dir: str) -> None:
    """Until stdin ends."""
    garbage.collect_seldom()
    cluster = Cluster(data_dir)
    server = Server(cluster.api)
    await server.start()
    commands = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)
    _answer({"url": server.url})
    while line := await commands.readline():
        _answer(await cluster.obey(json.loads(line)))
    await server.stop()
    await cluster.api.store.close()


def _answer(answer: dict[str, Any]) -> None:
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    uvloop.run(serve(sys.argv[1] if len(sys.argv) > 1 else ""))
