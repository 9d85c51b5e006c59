"""Measuring `kubesched serve` over HTTP, on a cluster that watches keep current: what a question costs its process."""

from __future__ import annotations

import asyncio
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import uvloop

from bench import clusters
from bench.processes import ApiServer, Process, wait_for
from kubesched.kube.authentication import transport_for
from kubesched.kube.client import Client, Throttle
from kubesched.kube.connection import ConnectionSettings
from kubesched.kube.errors import KubeError
from kubesched.kube.kubeconfig import KubeconfigUser
from kubesched_sandbox.http import kubeconfig, write_kubeconfig

NODES, PODS = 5000, 30_000
QUESTIONS = 3000
TOGETHER = 3
"""How many nodes a change is about."""
_CONNECTIONS = 8
_PATH = "/v1alpha1/fit"


def _changed(verb: str, draw: random.Random) -> list[Any]:
    names = [f"node-{i:05d}" for i in draw.sample(range(NODES), TOGETHER)]
    return [{"verb": verb, "nodes": names}]


CHANGES: dict[str, Callable[[random.Random], list[Any]]] = {
    "as-it-is": lambda draw: [],
    "cordoned": lambda draw: _changed("cordon", draw),
    "lost": lambda draw: _changed("remove", draw),
}
"""What is supposed, by kind of question."""


class Answered(NamedTuple):
    """Questions of one kind, as a client sees them, and what each costs the server."""

    per_second: float
    server_us: float
    median_ms: float


class ServeProcess(Process):
    """`kubesched serve` about an API server."""

    def __init__(self, server: ApiServer, directory: Path) -> None:
        access, token, self.log = directory / "kubeconfig", directory / "token", directory / "serve.log"
        write_kubeconfig(access, kubeconfig(server.url))
        token.write_text("secret")
        command = [sys.executable, "-m", "kubesched", "serve", "--kubeconfig", str(access), "--port", "0"]
        with self.log.open("w") as log:
            super().__init__(
                subprocess.Popen([*command, "--token-file", str(token)], stdout=log, stderr=log, text=True)
            )
        wait_for(lambda: "Listening on" in self.log.read_text() or not self.is_alive, 60, "the service")
        if not self.is_alive:
            raise RuntimeError(f"the service ended:\n{self.log.read_text()[-2000:]}")
        self.url = self.log.read_text().partition("Listening on ")[2].split()[0]


def answering(rounds: int) -> dict[str, list[Answered]]:
    """Questions of each kind in turns, to one process."""
    with tempfile.TemporaryDirectory() as directory, ApiServer() as server:
        server.ask("nodes", count=NODES)
        server.ask("running", count=PODS, nodes=NODES)
        with ServeProcess(server, Path(directory)) as service:
            return uvloop.run(_answering(service, rounds))


async def _answering(service: ServeProcess, rounds: int) -> dict[str, list[Answered]]:
    settings = ConnectionSettings(server=service.url, user=KubeconfigUser(token="secret"))
    transport = transport_for(settings, os.environ, connections=_CONNECTIONS)
    client = Client(transport, Throttle(-1, 0, clock=time.monotonic), clock=time.monotonic)
    while True:
        try:
            await client.get("/readyz", retries=0)
            break
        except KubeError:
            await asyncio.sleep(0.2)
    found: dict[str, list[Answered]] = {kind: [] for kind in CHANGES}
    for i in range(rounds):
        for kind in CHANGES:
            found[kind].append(await _asked(service, client, list(islice(_questions(kind, i), QUESTIONS))))
    await transport.close()
    return found


def _questions(kind: str, seed: int) -> Iterator[bytes]:
    """One pod of a hundred kinds, and a change that no question had before."""
    draw = random.Random(seed)
    while True:
        pod = clusters.manifest(clusters.pod(0, f"kind-{draw.randrange(100)}", cpu="100m"))
        yield msgspec.json.encode({"pods": [pod], "changes": CHANGES[kind](draw)})


async def _asked(service: ServeProcess, client: Client, questions: Sequence[bytes]) -> Answered:
    waiting, seconds = iter(questions), list[float]()

    async def ask() -> None:
        for body in waiting:
            began = time.perf_counter()
            answer = msgspec.json.decode(await client.post(_PATH, body))
            seconds.append(time.perf_counter() - began)
            assert answer["fits"], answer

    cpu, started = service.cpu_seconds(), time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for _ in range(_CONNECTIONS):
            group.create_task(ask())
    spent = time.perf_counter() - started
    each_us = (service.cpu_seconds() - cpu) * 1e6 / len(questions)
    return Answered(len(questions) / spent, each_us, statistics.median(seconds) * 1000)
