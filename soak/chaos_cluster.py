"""The cluster of the chaos test, as a process: two API servers behind one address, certificates, odd objects."""

from __future__ import annotations

import asyncio
import json
import random
import ssl
import sys
from pathlib import Path
from typing import Any

import uvloop
from tests.unit.kube.certificates import Authority, server_context

from kubesched.api.kinds import WATCHED
from kubesched.scheduler import garbage
from kubesched_sandbox.http import Server, kubeconfig, write_kubeconfig
from soak.balancer import Balancer
from soak.cluster import Cluster, obey_until_stdin_ends
from soak.odd_objects import ODD, example, paths, spoilt

_DEAD_FOR = (3.0, 15.0)
_BOTH_ALIVE_FOR = (2.0, 6.0)
_ROTATE_EVERY = 4.0
_KEY_FOLLOWS_AFTER = 1.5
"""Seconds in which the new certificate lies beside the old key."""
_ODD_PER_SECOND = 5
_SPOILT = [
    (kind, example(kind))
    for kind in WATCHED
    if kind.resource.kind in ("CSINode", "CSIDriver", "CSIStorageCapacity", "VolumeAttachment", "ResourceSlice")
]
"""Kinds that no controller of the sandbox reads: they must not be what breaks."""
_STORABLE = [odd for odd in ODD if not (isinstance(odd, int) and odd >= 2**63)]


class Chaos:
    """What goes wrong all the time, besides the churn."""

    def __init__(self, cluster: Cluster, directory: Path, rng: random.Random) -> None:
        self._cluster, self._directory, self._rng = cluster, directory, rng
        self._authority = Authority()
        self._contexts: list[ssl.SSLContext] = []
        self._servers: list[Server] = []
        self._balancer: Balancer | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self.done = {"deaths": 0, "rotations": 0, "odd objects": 0}

    async def start(self) -> None:
        """Serve, with client certificates asked for; nothing goes wrong yet."""
        for _ in range(2):
            pair = self._authority.issue("kube-apiserver", hosts=("127.0.0.1",))
            context = server_context(self._directory, pair, clients=self._authority)
            server = Server(self._cluster.api, tls=context)
            await server.start()
            self._contexts.append(context)
            self._servers.append(server)
        self._balancer = Balancer([server.port for server in self._servers], self._rng)
        await self._balancer.start()
        pair = self._authority.issue("system:kube-scheduler")
        (self._directory / "client.crt").write_bytes(pair.certificate)
        (self._directory / "client.key").write_bytes(pair.key)
        config = kubeconfig(f"https://127.0.0.1:{self._balancer.port}", authority=self._authority.certificate)
        config["users"][0]["user"] = {
            "client-certificate": str(self._directory / "client.crt"),
            "client-key": str(self._directory / "client.key"),
        }
        write_kubeconfig(self._directory / "kubeconfig", config)

    def begin(self) -> None:
        self._tasks = [asyncio.create_task(each) for each in (self._die_in_turns(), self._rotate(), self._odd())]

    async def end(self) -> None:
        for task in self._tasks:
            task.cancel()
        for ended in await asyncio.gather(*self._tasks, return_exceptions=True):
            if isinstance(ended, Exception):
                raise ended
        assert self._balancer is not None
        for number in range(len(self._servers)):
            self._balancer.revive(number)
        for kind, _ in _SPOILT:
            self._remove_odd(kind.resource.qualified)

    async def stop(self) -> None:
        assert self._balancer is not None
        await self._balancer.stop()
        for server in self._servers:
            await server.stop()

    async def _die_in_turns(self) -> None:
        assert self._balancer is not None
        while True:
            for number in range(len(self._servers)):
                await asyncio.sleep(self._rng.uniform(*_BOTH_ALIVE_FOR))
                self._balancer.kill(number)
                self.done["deaths"] += 1
                await asyncio.sleep(self._rng.uniform(*_DEAD_FOR))
                self._balancer.revive(number)

    async def _rotate(self) -> None:
        while True:
            await asyncio.sleep(_ROTATE_EVERY)
            pair = self._authority.issue("system:kube-scheduler")
            (self._directory / "client.crt").write_bytes(pair.certificate)
            await asyncio.sleep(_KEY_FOLLOWS_AFTER)
            (self._directory / "client.key").write_bytes(pair.key)
            for context in self._contexts:
                file = self._directory / "server.pem"
                served = self._authority.issue("kube-apiserver", hosts=("127.0.0.1",))
                file.write_bytes(served.certificate + served.key)
                context.load_cert_chain(file)
            self.done["rotations"] += 1

    async def _odd(self) -> None:
        """Past admission, straight into the store: as a server of another version might have left them there."""
        while True:
            await asyncio.sleep(1 / _ODD_PER_SECOND)
            kind, whole = self._rng.choice(_SPOILT)
            obj = whole
            for path in self._rng.sample([path for path in paths(whole) if path[0] != "metadata"], 2):
                obj = spoilt(obj, path, self._rng.choice(_STORABLE))
            meta = {**whole["metadata"], "name": f"odd-{self._rng.randrange(20)}"}
            if self._rng.random() < 0.2:
                meta["labels"] = self._rng.choice(_STORABLE)
            self._cluster.api.store.put(kind.resource.qualified, {**obj, "metadata": meta})
            self.done["odd objects"] += 1

    def _remove_odd(self, table: str) -> None:
        store = self._cluster.api.store
        for namespace in ("", "default"):
            for number in range(20):
                if store.table(table).get(namespace, f"odd-{number}") is not None:
                    store.remove(table, namespace, f"odd-{number}")


async def serve(seed: int, directory: Path) -> None:
    """Until stdin ends."""
    garbage.collect_seldom()
    cluster = Cluster(seed)
    chaos = Chaos(cluster, directory, random.Random(seed))
    await chaos.start()
    cluster.runner.start()

    async def obey(command: dict[str, Any]) -> dict[str, Any]:
        answer = cluster.obey(command)
        match command["do"]:
            case "begin":
                chaos.begin()
            case "rest":
                await chaos.end()
            case "tell":
                answer |= chaos.done
        return answer

    await obey_until_stdin_ends({"url": ""}, obey)
    await cluster.runner.stop()
    await chaos.stop()


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    uvloop.run(serve(given["seed"], Path(given["directory"])))
