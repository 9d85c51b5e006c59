"""What informers do for all reflectors, against a real API server: originals for extenders, letting more come."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.builders import Json
from tests.sandbox_server import serving
from tests.unit.extenders.extender_server import settings
from tests.unit.scheduler.memory_cluster import MemoryCluster

from kubesched.api.kinds import NODES, PODS
from kubesched.kube.authentication import transport_for
from kubesched.kube.client import Client, Throttle
from kubesched.kube.connection import from_flags
from kubesched.kube.informers import Informers
from kubesched.kube.originals import Originals
from kubesched.plugins.registry import in_tree
from kubesched.scheduler.assembly import SchedulerSettings, build_scheduler
from kubesched_sandbox.api import Api
from kubesched_sandbox.http import kubeconfig, write_kubeconfig


class Followed:
    """A cluster, and a scheduler that hears of it but decides nothing."""

    def __init__(self, api: Api, client: Client, extender: Json) -> None:
        self.api = api
        configuration = settings({"urlPrefix": "http://extender.test", **extender})
        self.scheduler = build_scheduler(
            SchedulerSettings(clock=time.monotonic, draw=lambda among: 0), configuration, MemoryCluster(), in_tree()
        )
        self.originals = Originals(configuration)
        self.informers = Informers(client, self.scheduler.handle, originals=self.originals)

    def add_pod(self, name: str) -> None:
        container = {"name": "main", "image": "app", "env": [{"name": "X", "value": name}]}
        self.api.create(PODS, "default", {"metadata": {"name": name}, "spec": {"containers": [container]}})

    def add_node(self, name: str) -> None:
        self.api.create(NODES, "", {"metadata": {"name": name}, "status": {"phase": "Running"}})

    def bind(self, name: str, node: str) -> None:
        self.api.bind("default", name, {"metadata": {"name": name}, "target": {"kind": "Node", "name": node}})

    def environment_of(self, name: str) -> str:
        """As the original of the pod has it that the scheduler believes in."""
        original = self.originals.of(self.scheduler.pods[f"default/{name}"])
        assert original is not None
        return str(json.loads(bytes(original))["spec"]["containers"][0]["env"][0]["value"])


@asynccontextmanager
async def connected(directory: Path, extender: Json) -> AsyncIterator[Followed]:
    """Informers that do not run yet."""
    async with serving() as server:
        write_kubeconfig(directory / "kubeconfig", kubeconfig(server.url))
        transport = transport_for(from_flags(str(directory / "kubeconfig"), "", {}), {})
        cluster = Followed(
            server.api, Client(transport, Throttle(-1, 0, clock=time.monotonic), clock=time.monotonic), extender
        )
        try:
            yield cluster
        finally:
            await transport.close()


@asynccontextmanager
async def followed(directory: Path, extender: Json) -> AsyncIterator[Followed]:
    async with connected(directory, extender) as cluster:
        running = asyncio.create_task(cluster.informers.run())
        try:
            await asyncio.wait_for(cluster.informers.wait_synced(), 60)
            yield cluster
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


def test_catching_up_before_the_first_lists_costs_no_second_ones(tmp_path: Path) -> None:
    async def story() -> None:
        async with connected(tmp_path, {"filterVerb": "filter"}) as cluster:
            caught_up = cluster.informers.catch_up()
            running = asyncio.create_task(cluster.informers.run())
            await asyncio.wait_for(caught_up, 60)
            assert {reflector.lists for reflector in cluster.informers.reflectors.values()} == {1}
            await cluster.informers.catch_up()
            assert {reflector.lists for reflector in cluster.informers.reflectors.values()} == {2}
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    asyncio.run(story())


def test_originals_come_and_go_with_the_pods_that_wait(tmp_path: Path) -> None:
    async def story() -> None:
        async with followed(tmp_path, {"filterVerb": "filter", "nodeCacheCapable": True}) as cluster:
            cluster.add_node("node")
            for name in ("waits", "bound", "gone"):
                cluster.add_pod(name)
            await cluster.informers.catch_up()
            assert len(cluster.originals) == 3
            assert cluster.environment_of("waits") == "waits"
            cluster.bind("bound", "node")
            cluster.api.delete(PODS, "default", "gone", grace=0)
            await cluster.informers.catch_up()
            assert len(cluster.originals) == 1
            assert cluster.environment_of("waits") == "waits"

    asyncio.run(story())


def test_pod_that_changes_or_is_made_anew_has_the_original_of_what_it_is_now(tmp_path: Path) -> None:
    async def story() -> None:
        async with followed(tmp_path, {"filterVerb": "filter"}) as cluster:
            cluster.add_node("node")
            cluster.add_pod("pod")
            await cluster.informers.catch_up()
            for _ in range(3):
                cluster.api.patch(NODES, "", "node", {"metadata": {"labels": {"a": str(time.monotonic())}}})
                cluster.api.delete(PODS, "default", "pod", grace=0)
                cluster.add_pod("pod")
            await cluster.informers.catch_up()
            assert cluster.environment_of("pod") == "pod"
            assert len(cluster.originals) == 2

    asyncio.run(story())


def test_cache_is_compared_with_records(tmp_path: Path) -> None:
    async def story() -> None:
        async with followed(tmp_path, {"filterVerb": "filter"}) as cluster:
            cluster.add_node("node")
            cluster.add_pod("pod")
            nodes, pods = await cluster.informers.read_anew()
            assert nodes["node"] == cluster.scheduler.state.nodes.node(cluster.scheduler.state.nodes.row_of["node"])
            assert pods == cluster.scheduler.pods

    asyncio.run(story())
