"""The soak on a real API server, tried on one that is there without binaries: the sandbox's, over HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable

from soak.balancer import Balancer
from soak.kubelets import Kubelets
from soak.mirror import Mirror
from soak.referee import Referee
from tests.sandbox_server import fresh_api, serving
from tests.unit.soak.test_soak_verdict import bound_pod, node

from kubesched.api.kinds import NODES, PODS
from kubesched.kube.client import Client, Throttle
from kubesched.kube.credentials import FixedAuthorization
from kubesched.kube.dialing import Dialer
from kubesched.kube.tls import ServerTrust
from kubesched.kube.transport import Transport
from kubesched_sandbox.api import Api, ApiEvent
from kubesched_sandbox.nodes.manifests import DURATION

_LONGEST = 30.0


@contextlib.asynccontextmanager
async def client_of(api: Api) -> AsyncIterator[Client]:
    async with serving(api) as server:
        dialer = Dialer(server.url, ServerTrust())
        transport = Transport(dialer, FixedAuthorization(""), clock=time.monotonic)
        yield Client(transport, Throttle(-1, 0, clock=time.monotonic), clock=time.monotonic)
        await transport.close()


class Seen:
    """Events that were shown, to be waited for."""

    def __init__(self, *others: Callable[[ApiEvent], None]) -> None:
        self._others = others
        self._queue: asyncio.Queue[ApiEvent] = asyncio.Queue()

    def __call__(self, event: ApiEvent) -> None:
        for other in self._others:
            other(event)
        self._queue.put_nowait(event)

    async def wait_for(self, happened: Callable[[ApiEvent], bool]) -> ApiEvent:
        async with asyncio.timeout(_LONGEST):
            while not happened(event := await self._queue.get()):
                pass
            return event


def is_bound(name: str) -> Callable[[ApiEvent], bool]:
    return lambda event: event.object["metadata"]["name"] == name and bool(event.object["spec"].get("nodeName"))


@contextlib.asynccontextmanager
async def mirrored(client: Client, seen: Seen) -> AsyncIterator[Mirror]:
    mirror = Mirror(client, (NODES, PODS), seen)
    running = asyncio.create_task(mirror.run())
    await mirror.wait_synced()
    yield mirror
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


def test_referee_sees_fouls_through_watches() -> None:
    async def main() -> None:
        api, referee = fresh_api(), Referee()
        node(api, "node-1", cpu="1")
        seen = Seen(referee.see)
        async with client_of(api) as client, mirrored(client, seen):
            bound_pod(api, "first", "600m", "node-1")
            await seen.wait_for(is_bound("first"))
            assert referee.fouls == []
            bound_pod(api, "second", "600m", "node-1")
            await seen.wait_for(is_bound("second"))
            assert referee.fouls == ["node-1 has 1000 of cpu; since second was bound it holds 1200"]

    asyncio.run(main())


def test_what_a_gap_amounts_to_is_shown_in_an_order_that_could_have_been() -> None:
    """One pod is done and one deleted, and then others have their room: none of that is a foul."""

    async def main() -> None:
        api, referee = fresh_api(), Referee()
        node(api, "node-1", cpu="1")
        bound_pod(api, "z-done", "600m", "node-1")
        bound_pod(api, "gone", "300m", "node-1")
        async with client_of(api) as client:
            mirror = Mirror(client, (NODES, PODS), referee.see)
            await mirror._list(NODES)
            await mirror._list(PODS)
            api.patch(PODS, "default", "z-done", {"status": {"phase": "Succeeded"}}, subresource="status")
            api.delete(PODS, "default", "gone", grace=0)
            bound_pod(api, "a-next", "700m", "node-1")
            bound_pod(api, "b-next", "300m", "node-1")
            await mirror._list(PODS)
        assert referee.fouls == []
        assert referee.bound == 4
        assert referee.truth()["node-1"]["pods"] == ["default/a-next", "default/b-next"]

    asyncio.run(main())


def test_kubelets_run_pods_for_their_time_and_let_them_go() -> None:
    async def main() -> None:
        api = fresh_api()
        node(api, "node-1", cpu="1")
        async with client_of(api) as client:
            kubelets = Kubelets(client)
            seen = Seen(kubelets.see)
            async with mirrored(client, seen):
                container = {"name": "main", "image": "app:1"}
                for name, annotations in (("task", {DURATION: "0s"}), ("service", {})):
                    metadata = {"name": name, "annotations": annotations}
                    api.create(PODS, "default", {"metadata": metadata, "spec": {"containers": [container]}})
                    api.bind(
                        "default", name, {"metadata": {"name": name}, "target": {"kind": "Node", "name": "node-1"}}
                    )
                ended = await seen.wait_for(lambda event: event.object["status"].get("phase") == "Succeeded")
                assert ended.object["metadata"]["name"] == "task"
                api.delete(PODS, "default", "service")
                gone = await seen.wait_for(lambda event: event.type == "DELETED")
                assert gone.object["metadata"]["name"] == "service"
            kubelets.stop()

    asyncio.run(main())


def test_proxy_that_is_frozen_loses_nothing() -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(100):
            writer.write(data)
        writer.close()

    async def main() -> None:
        async with await asyncio.start_server(echo, "127.0.0.1", 0) as server:
            proxy = Balancer([server.sockets[0].getsockname()[1]])
            await proxy.start()
            reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
            writer.write(b"before")
            assert await reader.readexactly(6) == b"before"
            proxy.freeze()
            writer.write(b"during")
            answer = asyncio.create_task(reader.readexactly(6))
            await asyncio.wait((answer,), timeout=0.05)
            assert not answer.done()
            proxy.thaw()
            assert await answer == b"during"
            writer.close()
            await proxy.stop()

    asyncio.run(main())
