"""The cluster of a soak on a real control plane, as a process: etcd, API server, controllers, a proxy that misbehaves,
kubelets, churn and referee. No scheduler."""

from __future__ import annotations

import asyncio
import json
import logging
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import uvloop
from bench.peer.control_plane import ADMIN, SCHEDULER, ControlPlane

from kubesched.api.api_error import ApiError
from kubesched.api.kinds import NODES, PODS, RESOURCE_CLAIMS
from kubesched.kube.client import Client, Throttle
from kubesched.kube.credentials import FixedAuthorization, bearer
from kubesched.kube.dialing import Dialer
from kubesched.kube.errors import UnreachableError
from kubesched.kube.tls import ServerTrust
from kubesched.kube.transport import Transport
from kubesched_sandbox.api import ApiEvent
from soak.balancer import Balancer
from soak.churn import Churn
from soak.cluster import STEPS_PER_SECOND, obey_until_stdin_ends, state_of
from soak.kubelets import Kubelets
from soak.mirror import Mirror
from soak.real_api import RealApi
from soak.referee import Referee

_CONTROLLERS = (
    "deployment-controller",
    "replicaset-controller",
    "resourceclaim-controller",
    "garbage-collector-controller",
    "pod-garbage-collector-controller",
)
_NOT_ADMITTED_BY = ("ServiceAccount", "TaintNodesByCondition")
_AWAY_PAUSE = 1.0
_REFUSED_FOR_NOW = 429
"""Codes from here on are no refusals: the server is busy, ill, or not there yet."""
_SLOW = 0.3


class RealCluster:
    """What is served, and what befalls it."""

    def __init__(self, plane: ControlPlane, seed: int) -> None:
        self._plane = plane
        dialer = Dialer(plane.access.url, ServerTrust(ca_file=str(plane.access.authority)))
        self._transport = Transport(dialer, FixedAuthorization(bearer(ADMIN)), clock=time.monotonic)
        client = Client(self._transport, Throttle(-1, 0, clock=time.monotonic), clock=time.monotonic)
        self.referee = Referee()
        self._kubelets = Kubelets(client)
        self.mirror = Mirror(client, (NODES, PODS, RESOURCE_CLAIMS), self._see)
        self._api = RealApi(client, self.mirror, asyncio.get_running_loop())
        self._churn = Churn(self._api, self._api.add_node, random.Random(seed))
        self._proxy = Balancer([int(plane.access.url.rpartition(":")[2])])
        self._tasks: list[asyncio.Task[None]] = []
        self._restarting: asyncio.Task[None] | None = None
        self._churning = False
        self.done = {"kills": 0, "compactions": 0, "freezes": 0, "silences": 0, "cuts": 0, "slow times": 0}

    async def start(self) -> Path:
        """The kubeconfig with which a scheduler gets in, by way of the proxy."""
        await self._proxy.start()
        self._tasks.append(asyncio.create_task(self.mirror.run()))
        await self.mirror.wait_synced()
        return self._plane.kubeconfig(SCHEDULER, "by-proxy", url=f"https://127.0.0.1:{self._proxy.port}")

    async def stop(self) -> None:
        self._kubelets.stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._restarting is not None:
            await asyncio.gather(self._restarting, return_exceptions=True)
        await self._proxy.stop()
        await self._transport.close()

    async def obey(self, command: dict[str, Any]) -> dict[str, Any]:
        match command["do"]:
            case "begin":
                await asyncio.to_thread(self._begin)
                self._churning = True
                self._tasks.append(asyncio.create_task(self._keep_churning()))
            case "trouble":
                for what in command["what"]:
                    self._trouble(what)
            case "calm":
                self._calm()
            case "rest":
                await self._rest()
            case "tell":
                self._raise_what_broke()
            case "tell the truth":
                return self.referee.truth()
            case unknown:
                raise ValueError(f"unknown command {unknown}")
        return {**state_of(self.mirror.objects(PODS), self.referee), "done": {**self.done, "lists": self.mirror.lists}}

    def _see(self, event: ApiEvent) -> None:
        self.referee.see(event)
        self._kubelets.see(event)

    def _begin(self) -> None:
        self._api.begin()
        self._churn.begin()

    async def _keep_churning(self) -> None:
        while self._churning:
            await self._insist(self._churn.step, tries=1)
            await asyncio.sleep(1 / STEPS_PER_SECOND)

    async def _rest(self) -> None:
        self._churning = False
        if self._restarting is not None:
            await self._restarting
        await self._insist(self._churn.rest, tries=60)

    async def _insist(self, act: Callable[[], None], tries: int) -> None:
        """In a thread, since it waits for answers; again if the server was away."""
        for _ in range(tries):
            try:
                await asyncio.to_thread(act)
                return
            except UnreachableError:
                pass
            except ApiError as error:
                if error.code < _REFUSED_FOR_NOW:
                    raise
            await asyncio.sleep(_AWAY_PAUSE)

    # -- what goes wrong -----------------------------------------------------------------------------------------------

    def _trouble(self, what: str) -> None:
        match what:
            case "slow":
                self._proxy.delay = _SLOW
                self.done["slow times"] += 1
            case "frozen":
                self._proxy.freeze()
                self.done["freezes"] += 1
            case "silent":
                self._proxy.kill(0)
                self.done["silences"] += 1
            case "cut":
                self._proxy.cut(0)
                self.done["cuts"] += 1
            case "killed" | "compacted":
                if self._restarting is None or self._restarting.done():
                    self._restarting = asyncio.create_task(self._kill(compact=what == "compacted"))
            case unknown:
                raise ValueError(f"unknown trouble {unknown}")

    def _calm(self) -> None:
        self._proxy.delay = 0.0
        self._proxy.thaw()
        self._proxy.revive(0)

    async def _kill(self, *, compact: bool) -> None:
        """In the middle of everything; and etcd forgets first, so that no watch can go on from where it was."""
        if compact:
            await asyncio.to_thread(self._plane.compact)
            self.done["compactions"] += 1
        self._plane.api_server.process.kill()
        self.done["kills"] += 1
        await asyncio.to_thread(self._plane.api_server.process.wait)
        await asyncio.to_thread(self._plane.start_api_server_again)

    def _raise_what_broke(self) -> None:
        for task in (*self._tasks, *([self._restarting] if self._restarting else ())):
            if task.done() and not task.cancelled():
                task.result()


async def serve(plane: ControlPlane, seed: int) -> None:
    """Until stdin ends."""
    cluster = RealCluster(plane, seed)
    access = await cluster.start()
    try:
        await obey_until_stdin_ends({"url": plane.access.url, "access": str(access)}, cluster.obey)
    finally:
        await cluster.stop()


if __name__ == "__main__":
    # uvloop tells of every connection that ends in the middle of its TLS; here they are ended on purpose.
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    given = json.loads(sys.argv[1])
    folder = Path(given["directory"], "control-plane")
    folder.mkdir()
    with ControlPlane(folder, controllers=_CONTROLLERS, without_admission=_NOT_ADMITTED_BY) as running:
        uvloop.run(serve(running, given["seed"]))
