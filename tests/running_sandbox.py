"""A sandbox that runs: server, controllers, hollow nodes and the scheduler in a thread, and kubectl outside."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import shutil
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import TypeVar

from tests.background_loop import in_background
from tests.sandbox_server import fresh_api, serving

from kubesched import config
from kubesched.config.features import DEFAULT_FEATURES, Features
from kubesched_sandbox.api import Api
from kubesched_sandbox.http import Server
from kubesched_sandbox.nodes import HollowNodes, node_manifests
from kubesched_sandbox.nodes.pods import PodTimings
from kubesched_sandbox.reconcilers import Runner, standard_reconcilers
from kubesched_sandbox.scheduling import SandboxScheduler

T = TypeVar("T")
KUBECTL = shutil.which("kubectl")
FAST = PodTimings(startup=(0.02, 0.2), stop=(0.02, 0.1), job=(0.2, 0.5))


class Sandbox:
    """A running cluster: what kubectl sees, and calls into the process that serves it."""

    def __init__(self, api: Api, hollow: HollowNodes, server: Server, loop: asyncio.AbstractEventLoop) -> None:
        self.api, self.hollow, self.server = api, hollow, server
        self._loop = loop
        self.kubeconfig = Path()
        self.home = Path()

    def call(self, function: Callable[[Api], T]) -> T:
        """Use the Api where it lives; it must not be touched from another thread."""

        async def run() -> T:
            return function(self.api)

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result(120)

    def kubectl(self, *arguments: str, stdin: str = "", fails: bool = False, timeout: float = 120) -> str:
        """What a command prints: on both streams if it is to fail, on standard output otherwise."""
        assert KUBECTL is not None
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.home), "KUBECONFIG": str(self.kubeconfig)}
        done = subprocess.run(
            [KUBECTL, *arguments], input=stdin, capture_output=True, text=True, timeout=timeout, env=environment
        )
        told = f"kubectl {' '.join(arguments)} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
        assert (done.returncode != 0) == fails, told
        return done.stdout + done.stderr if fails else done.stdout


@contextlib.asynccontextmanager
async def _running(nodes: int, features: Features) -> AsyncIterator[Sandbox]:
    api = fresh_api()
    hollow = HollowNodes(api, random.Random(1), timings=FAST)
    hollow.add(node_manifests(nodes))
    runner = Runner(api, [*standard_reconcilers(api, job_groups=features.job_groups), hollow])
    inside = SandboxScheduler(api, config.default(features))
    async with serving(api) as server:
        runner.start()
        scheduling = asyncio.create_task(inside.run())
        yield Sandbox(api, hollow, server, asyncio.get_running_loop())
        await inside.stop()
        await scheduling
        await runner.stop()


@contextlib.contextmanager
def running_sandbox(nodes: int = 4, features: Features = DEFAULT_FEATURES) -> Iterator[Sandbox]:
    """A cluster in a thread of its own."""
    with in_background(_running(nodes, features)) as (sandbox, _):
        yield sandbox
