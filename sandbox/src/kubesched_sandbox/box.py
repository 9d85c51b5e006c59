"""A whole sandbox: API server, hollow nodes, controllers, scheduler and page, started and stopped together."""

from __future__ import annotations

import asyncio
import random
import ssl
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kubesched import config
from kubesched.api.kinds import PODS, Object
from kubesched.config import SchedulerConfiguration
from kubesched.framework.registry import Registry
from kubesched.http.listen import server_context
from kubesched.scheduler.scheduler import Scheduler
from kubesched_sandbox.api import Api, Stamps, bootstrap
from kubesched_sandbox.chronicle import Chronicle
from kubesched_sandbox.http import Faults, Rule, Server, kubeconfig, self_signed, write_kubeconfig
from kubesched_sandbox.http.controller_reviews import ControllerReviews
from kubesched_sandbox.nodes import HollowNodes, publish_gpus
from kubesched_sandbox.reconcilers import Runner, standard_reconcilers
from kubesched_sandbox.scheduling import SandboxScheduler
from kubesched_sandbox.store import SqliteStore, Store


@dataclass(frozen=True)
class SandboxSettings:
    """What kind of sandbox is wanted."""

    nodes: Sequence[Object] = ()
    """Templates of the nodes to begin with."""
    gpus: Mapping[str, int] = field(default_factory=dict)
    """Example GPUs by node."""
    configuration: SchedulerConfiguration = field(default_factory=config.default)
    plugins: Registry | None = None
    schedules: bool = True
    """Whether the sandbox's own scheduler schedules; if not it only watches, and pods wait for another scheduler."""
    host: str = "127.0.0.1"
    port: int = 0
    token: str | None = None
    tls: bool = False
    data_dir: Path | None = None
    """The directory where objects are stored; without one they are kept in memory."""
    kubeconfig: Path | None = None
    """Where to write a kubeconfig; without it in a folder that goes with the sandbox."""
    faults: Sequence[Rule] = ()
    otlp: str = ""
    """Where traces of attempts are sent, by gRPC's naming; without it there are none."""
    seed: int | None = None
    node_grace: float = 40.0
    """Seconds without a sign of life after which a node counts as lost."""


def _shown(settings: SandboxSettings) -> Object:
    return config.to_plain(config.without_secrets(settings.configuration))


class Sandbox:
    """A running cluster. To be started and stopped on an event loop."""

    def __init__(self, settings: SandboxSettings) -> None:
        """ExposedError if it must not listen on the given address."""
        self._settings = settings
        self._store = SqliteStore(settings.data_dir) if settings.data_dir else Store()
        self._folder = tempfile.TemporaryDirectory(prefix="kubesched-sandbox-")
        rng = random.Random(settings.seed)
        release = settings.configuration.features.release
        self.api = Api(self._store, Stamps(rng=rng), release)
        self._authority: bytes | None = None
        faults = Faults(settings.faults, seed=settings.seed or 0)
        self.server = Server(
            self.api,
            host=settings.host,
            port=settings.port,
            token=settings.token,
            tls=self._tls(),
            faults=faults,
            scheduler_configuration=_shown(settings) if settings.schedules else None,
            release=release,
        )
        self.nodes = HollowNodes(
            self.api, rng, lease_period=settings.node_grace / 4 if settings.node_grace < 40 else None
        )
        controllers = standard_reconcilers(
            self.api,
            node_grace=settings.node_grace,
            job_groups=settings.configuration.features.job_groups,
            authority=(self._authority or b"").decode(),
        )
        self._controllers = Runner(self.api, (*controllers, self.nodes))
        self._reviews = self.api.reviewer = ControllerReviews(self.api)
        self._rng = rng
        self.kubeconfig = settings.kubeconfig or Path(self._folder.name, "kubeconfig")

    @property
    def scheduler(self) -> Scheduler:
        return self._inside.scheduler

    @property
    def schedules(self) -> bool:
        """Whether the sandbox's own scheduler schedules, rather than waiting for another one."""
        return self._settings.schedules

    async def start(self) -> None:
        """ListenError if the port is taken, OSError if the kubeconfig, ApiError if a node cannot be written."""
        running = asyncio.get_running_loop()
        began = running.time()
        self.chronicle = Chronicle(lambda: running.time() - began)
        await self.server.start()
        try:
            self._populate()
        except Exception:
            await self._close()
            raise
        self.api.subscribe((PODS,), self.chronicle.observe, replay=False)
        self._inside = SandboxScheduler(
            self.api,
            self._settings.configuration,
            plugins=self._settings.plugins,
            draw=self._rng.randrange,
            listeners=[self.chronicle],
            otlp=self._settings.otlp,
        )
        self._scheduling = asyncio.create_task(self._schedule(), name="scheduling")
        self._controllers.start()

    def _populate(self) -> None:
        """What is there before controllers and scheduler start: mistakes in it are found here."""
        bootstrap(self.api, authority=(self._authority or b"").decode(), port=self.server.port)
        self.nodes.add(self._settings.nodes)
        if any(self._settings.gpus.values()):
            publish_gpus(self.api, self._settings.gpus)
        document = kubeconfig(self.server.url, token=self._settings.token, authority=self._authority)
        write_kubeconfig(self.kubeconfig, document)

    async def _schedule(self) -> None:
        if self._settings.schedules:
            await self._inside.run()

    async def stop(self) -> None:
        await self._inside.stop()
        await self._scheduling
        await self._controllers.stop()
        await self._reviews.stop()
        await self._close()

    async def _close(self) -> None:
        await self.server.stop()
        await self._store.close()
        self._folder.cleanup()

    def _tls(self) -> ssl.SSLContext | None:
        if not self._settings.tls:
            return None
        made = self_signed({"localhost", "127.0.0.1", self._settings.host} - {"0.0.0.0", "::"})
        self._authority = made.chain
        return server_context(made)
