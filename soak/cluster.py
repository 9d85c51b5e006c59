"""The cluster of a soak, as a process: API server, hollow nodes, controllers, churn and referee. No scheduler."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import uvloop

from kubesched.api.kinds import NODES, PODS, RESOURCE_CLAIMS, Object
from kubesched.scheduler import garbage
from kubesched_sandbox.api import Api, bootstrap
from kubesched_sandbox.http import Server
from kubesched_sandbox.nodes import HollowNodes, publish_gpus
from kubesched_sandbox.reconcilers import Runner, standard_reconcilers
from kubesched_sandbox.store import Store
from soak.churn import FITS_NOWHERE, GPUS, Churn
from soak.referee import Referee

STEPS_PER_SECOND = 20


class Cluster:
    """What is served, and what befalls it."""

    def __init__(self, seed: int) -> None:
        self.api = Api(Store())
        bootstrap(self.api)
        self.referee = Referee()
        self.api.subscribe((NODES, PODS, RESOURCE_CLAIMS), self.referee.see)
        self._hollow = HollowNodes(self.api, random.Random(seed))
        self.runner = Runner(self.api, [*standard_reconcilers(self.api), self._hollow])
        self._churn = Churn(self.api, self._add_node, random.Random(seed))
        self._churning: asyncio.Task[None] | None = None

    def obey(self, command: dict[str, Any]) -> dict[str, Any]:
        match command["do"]:
            case "begin":
                self._churn.begin()
                self._churning = asyncio.create_task(self._keep_churning())
            case "rest":
                assert self._churning is not None
                self._churning.cancel()
                self._churn.rest()
            case "tell":
                self._raise_what_broke()
            case "tell the truth":
                return self.referee.truth()
            case unknown:
                raise ValueError(f"unknown command {unknown}")
        return self._state()

    def _state(self) -> dict[str, Any]:
        return state_of(self.api.select(PODS), self.referee)

    def _add_node(self, node: Object) -> None:
        self._hollow.add([node])
        publish_gpus(self.api, {node["metadata"]["name"]: GPUS})

    async def _keep_churning(self) -> None:
        while True:
            self._churn.step()
            await asyncio.sleep(1 / STEPS_PER_SECOND)

    def _raise_what_broke(self) -> None:
        if self._churning is not None and self._churning.done() and not self._churning.cancelled():
            self._churning.result()


def state_of(pods: Sequence[Object], referee: Referee) -> dict[str, Any]:
    """How far scheduling has come."""
    unfinished = [pod for pod in pods if pod["status"].get("phase") not in ("Succeeded", "Failed")]
    waiting = [pod for pod in unfinished if not pod["spec"].get("nodeName")]
    hopeless = [pod for pod in waiting if FITS_NOWHERE in pod["metadata"]["labels"]]
    return {
        "pods": len(pods),
        "bound": referee.bound,
        "fouls": referee.fouls,
        "waiting": len(waiting) - len(hopeless),
        "hopeless": len(hopeless),
        "leaving": sum("deletionTimestamp" in pod["metadata"] for pod in pods),
    }


async def serve(seed: int) -> None:
    """Until stdin ends."""
    garbage.collect_seldom()
    cluster = Cluster(seed)
    server = Server(cluster.api)
    await server.start()
    cluster.runner.start()

    async def obey(command: dict[str, Any]) -> dict[str, Any]:
        return cluster.obey(command)

    await obey_until_stdin_ends({"url": server.url}, obey)
    with contextlib.suppress(asyncio.CancelledError):
        await cluster.runner.stop()
    await server.stop()


async def obey_until_stdin_ends(
    first: dict[str, Any], obey: Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]
) -> None:
    """Say the first word, then answer every line of stdin with a line."""
    commands = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)
    _answer(first)
    while line := await commands.readline():
        _answer(await obey(json.loads(line)))


def _answer(answer: dict[str, Any]) -> None:
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1])))
