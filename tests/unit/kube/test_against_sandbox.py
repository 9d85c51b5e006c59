"""The client against the sandbox's API server: real objects, real rules, and faults on demand."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.builders import Json
from tests.sandbox_server import serving

from kubesched.api.change import Change
from kubesched.api.duration import Duration
from kubesched.api.kinds import EVENTS, LEASES, NODES, PODS
from kubesched.api.pod import Pod
from kubesched.config.configuration import LeaderElection
from kubesched.http.listen import server_context
from kubesched.kube.authentication import transport_for
from kubesched.kube.client import Client, Throttle
from kubesched.kube.connection import from_flags
from kubesched.kube.decoding import DictCodec, RecordCodec
from kubesched.kube.errors import ApiStatusError
from kubesched.kube.event_record import reference
from kubesched.kube.events import EventRecorder
from kubesched.kube.leader_election import LeaderElector
from kubesched.kube.lease import LeaseLock
from kubesched.kube.listing import UNFINISHED, ApiSource
from kubesched.kube.reflector import Reflector
from kubesched.kube.timing import Timing
from kubesched_sandbox.http import Server, kubeconfig, parse_fault, self_signed, write_kubeconfig

ALL_PODS = PODS.path_of(namespace="default")


def run(main: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(main, 120))


class View:
    """A handler that keeps the pods, and checks that the changes add up."""

    def __init__(self) -> None:
        self.pods: dict[str, Pod] = {}

    def handle(self, change: Change[Pod]) -> None:
        uid = change.obj.uid
        assert self.pods.pop(uid, None) is change.old
        if change.new is not None:
            self.pods[uid] = change.new


@asynccontextmanager
async def client_with(path: Path, content: Json) -> AsyncIterator[Client]:
    """A client as the daemon makes one: from a kubeconfig."""
    write_kubeconfig(path, content)
    transport = transport_for(from_flags(str(path), "", {}), {})
    try:
        yield Client(transport, Throttle(-1, 0, clock=time.monotonic), clock=time.monotonic)
    finally:
        await transport.close()


@asynccontextmanager
async def connected(path: Path, *faults: str) -> AsyncIterator[tuple[Server, Client]]:
    async with serving() as server:
        server.faults.replace([parse_fault(fault) for fault in faults], seed=1)
        async with client_with(path / "kubeconfig", kubeconfig(server.url)) as client:
            yield server, client


async def quickly(seconds: float) -> None:
    """The reflector's pauses, a hundred times shorter."""
    await asyncio.sleep(seconds / 100)


@asynccontextmanager
async def following(
    client: Client, view: View, *, silence: float = 5.0, streamed: bool = True
) -> AsyncIterator[Reflector[Pod]]:
    source = ApiSource(client, PODS, field_selector=UNFINISHED, silence=silence)
    reflector = Reflector(
        "pods", source, RecordCodec(Pod), view.handle, streamed_lists=streamed, timing=Timing(sleep=quickly)
    )
    task = asyncio.create_task(reflector.run())
    try:
        yield reflector
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def create(client: Client, name: str) -> Json:
    pod = {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    created: Json = msgspec.json.decode(await client.post(ALL_PODS, msgspec.json.encode(pod)))
    return created


async def bind(client: Client, pod: Json, node: str) -> None:
    meta = {"name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": meta, "target": {"kind": "Node", "name": node}}
    path = PODS.path_of(namespace="default", name=meta["name"], subresource="binding")
    await client.post(path, msgspec.json.encode(body))


async def until_true(server: Server, client: Client, view: View) -> None:
    """Wait until the view is true."""
    server.faults.replace([])
    page = RecordCodec(Pod).page(await client.get(f"{PODS.path_of()}?fieldSelector=status.phase!=Succeeded"))
    truth = {pod.uid: pod for pod in page.objects}

    def versions(pods: dict[str, Pod]) -> dict[str, str]:
        return {uid: pod.metadata.resource_version for uid, pod in pods.items()}

    async with asyncio.timeout(60):
        while versions(view.pods) != versions(truth):
            await asyncio.sleep(0.01)


async def churn(client: Client) -> None:
    """Pods come, are bound, go, and come again under the same name."""
    for round_ in range(3):
        pods = [await create(client, f"p{n}") for n in range(8)]
        for pod in pods[::2]:
            await bind(client, pod, "node-a")
        for pod in pods[:6] if round_ < 2 else pods[:3]:
            await client.delete(f"{ALL_PODS}/{pod['metadata']['name']}?gracePeriodSeconds=0")
        if round_ < 2:
            for pod in pods[6:]:
                await client.delete(f"{ALL_PODS}/{pod['metadata']['name']}?gracePeriodSeconds=0")


async def make_node(client: Client) -> None:
    await client.post(NODES.path_of(), b'{"metadata":{"name":"node-a"}}')


def test_pod_is_seen_bound_and_seen_bound_once(tmp_path: Path) -> None:
    async def main() -> None:
        async with connected(tmp_path) as (_, client):
            await make_node(client)
            view = View()
            async with following(client, view) as reflector:
                await asyncio.wait_for(reflector.wait_synced(), 60)
                pod = await create(client, "p")
                await bind(client, pod, "node-a")
                with pytest.raises(ApiStatusError) as caught:
                    await bind(client, pod, "node-a")
                assert caught.value.reason == "Conflict"
                async with asyncio.timeout(60):
                    while not any(it.spec.node_name for it in view.pods.values()):
                        await asyncio.sleep(0.005)

    run(main())


@pytest.mark.parametrize(
    "fault",
    [
        "drop-watch:p=0.2,resource=pods",
        "duplicate:p=0.5,resource=pods",
        "reorder:p=0.5,resource=pods",
        "410:p=0.1,verb=watch,resource=pods",
        "freeze:p=0.05,verb=watch,resource=pods",
        "500-before:count=3,verb=list,resource=pods",
        "410:count=2,verb=list,resource=pods",
        "429:count=3,verb=watch,resource=pods,retry-after=0",
    ],
)
def test_reflector_ends_up_with_the_truth_when_the_server_misbehaves(fault: str, tmp_path: Path) -> None:
    async def main() -> None:
        async with connected(tmp_path, fault) as (server, client):
            await make_node(client)
            view = View()
            streamed = "verb=list" not in fault
            async with following(client, view, silence=0.2, streamed=streamed) as reflector:
                await reflector.wait_synced()
                await churn(client)
                (rule,) = msgspec.convert(server.faults.status()["rules"], list[dict[str, Any]])
                assert rule["happened"]
                await until_true(server, client, view)

    run(main())


def test_write_that_was_done_although_it_failed_is_found_by_reading(tmp_path: Path) -> None:
    async def main() -> None:
        async with connected(tmp_path) as (server, client):
            await make_node(client)
            pod = await create(client, "p")
            server.faults.replace([parse_fault("500-after:resource=pods/binding")])
            with pytest.raises(ApiStatusError) as caught:
                await bind(client, pod, "node-a")
            assert caught.value.code == 500
            bound = RecordCodec(Pod).decode(await client.get(f"{ALL_PODS}/p"))
            assert bound.spec.node_name == "node-a"

    run(main())


def test_any_resource_can_be_followed(tmp_path: Path) -> None:
    changes: list[Change[Json]] = []

    async def main() -> None:
        async with connected(tmp_path) as (_, client):
            await make_node(client)
            reflector = Reflector("nodes", ApiSource(client, NODES), DictCodec(), changes.append, streamed_lists=False)
            task = asyncio.create_task(reflector.run())
            await asyncio.wait_for(reflector.wait_synced(), 60)
            assert [(change.verb, change.obj["metadata"]["name"]) for change in changes] == [("added", "node-a")]
            assert reflector.objects["node-a"]["kind"] == "Node"
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    run(main())


def test_repeated_event_is_one_event_with_a_series(tmp_path: Path) -> None:
    async def main() -> None:
        async with connected(tmp_path) as (_, client):
            pod = RecordCodec(Pod).decode(msgspec.json.encode(await create(client, "p")))
            recorder = EventRecorder(client, "default-scheduler")
            for _ in range(3):
                recorder.record(
                    reference(pod, "v1", "Pod"),
                    type="Warning",
                    reason="FailedScheduling",
                    action="Scheduling",
                    note="n",
                )
                await recorder.flush(5)
            assert recorder.failed == recorder.dropped == 0
            page = DictCodec().page(await client.get(EVENTS.path_of(namespace="default")))
            (event,) = page.objects
            assert event["series"]["count"] == 3
            assert event["regarding"]["name"] == "p"

    run(main())


def test_lease_goes_from_one_to_the_next(tmp_path: Path) -> None:
    async def main() -> None:
        async with connected(tmp_path) as (_, client):
            await client.post("/api/v1/namespaces", b'{"metadata":{"name":"leases"}}')
            config = LeaderElection(lease_duration=Duration(9), renew_deadline=Duration(8), retry_period=Duration(0.1))
            leaders: list[str] = []

            async def lead(name: str) -> None:
                leaders.append(name)
                await asyncio.sleep(0.05)

            def elector(name: str) -> LeaderElector:
                return LeaderElector(LeaseLock(client, namespace="leases", name="x"), name, config)

            await asyncio.gather(*(elector(name).run(partial(lead, name)) for name in "ab"))
            assert sorted(leaders) == ["a", "b"]
            lease = msgspec.json.decode(await client.get(LEASES.path_of(namespace="leases", name="x")))
            assert lease["spec"]["holderIdentity"] == ""
            assert lease["spec"]["leaseTransitions"] == 1

    run(main())


def test_tls_and_token_of_a_kubeconfig_let_us_in(tmp_path: Path) -> None:
    async def main() -> None:
        pair = self_signed(["127.0.0.1"])
        async with serving(tls=server_context(pair), token="secret") as server:
            content = kubeconfig(server.url, token="secret", authority=pair.chain)
            async with client_with(tmp_path / "good", content) as client:
                assert DictCodec().page(await client.get(NODES.path_of())).objects == []
            async with client_with(tmp_path / "bad", kubeconfig(server.url, authority=pair.chain)) as client:
                with pytest.raises(ApiStatusError) as caught:
                    await client.get(NODES.path_of())
                assert caught.value.reason == "Unauthorized"

    run(main())
