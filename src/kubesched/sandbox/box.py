"""The whole cluster in a box, started and stopped together, and a chronicle of what its scheduler did."""

from __future__ import annotations

import asyncio
import random
import ssl
import tempfile
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from kubesched import config
from kubesched.api.kinds import Object
from kubesched.config import SchedulerConfiguration
from kubesched.framework.registry import Registry
from kubesched.sandbox.api import Api, Stamps, bootstrap
from kubesched.sandbox.controllers import Runner, standard_controllers
from kubesched.sandbox.http import Faults, Rule, Server, kubeconfig, self_signed, server_context, write_kubeconfig
from kubesched.sandbox.nodes import HollowNodes, publish_gpus
from kubesched.sandbox.scheduling import SchedulerInside
from kubesched.sandbox.store import SqliteStore, Store
from kubesched.scheduler.attempt.attempt import Attempt, AttemptOutcome
from kubesched.scheduler.listener import SchedulerListener
from kubesched.scheduler.scheduler import Scheduler

_REMEMBERED = 200


class Entry(NamedTuple):
    """One attempt that is over."""

    at: float
    pod: str
    outcome: str
    """bound, preempts, unschedulable, error, bind-error, ..."""
    text: str


class Chronicle(SchedulerListener):
    """Listens to a scheduler; `on_entry` is called with what was written down."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.entries: deque[Entry] = deque(maxlen=_REMEMBERED)
        self.outcomes: Counter[str] = Counter()
        self.victims = 0
        self.on_entry: Callable[[Entry], None] = lambda entry: None
        self._latest: OrderedDict[str, str] = OrderedDict()

    def finished(self, attempt: Attempt) -> None:
        outcome = attempt.outcome or ""
        self.outcomes[outcome] += 1
        self.victims += len(attempt.victims)
        outcome = "preempts" if attempt.victims else outcome
        entry = Entry(self._clock(), attempt.queued.key, outcome, _reason(attempt))
        if self._says_something_new(entry):
            self.entries.append(entry)
            self.on_entry(entry)

    @property
    def errors(self) -> int:
        """Attempts that ended because something broke, rather than because no node would do."""
        return self.outcomes[AttemptOutcome.ERROR] + self.outcomes[AttemptOutcome.BIND_ERROR]

    def _says_something_new(self, entry: Entry) -> bool:
        """A pod that is tried in vain again and again has nothing new to tell."""
        if self._latest.pop(entry.pod, None) == entry.text:
            self._latest[entry.pod] = entry.text
            return False
        self._latest[entry.pod] = entry.text
        if len(self._latest) > _REMEMBERED:
            self._latest.popitem(last=False)
        return True


def _reason(attempt: Attempt) -> str:
    """Why the pod went where it did, or nowhere."""
    decision, failure = attempt.decision, attempt.failure
    if attempt.victims and failure is not None:
        victims = ", ".join(sorted(victim.pod.key for victim in attempt.victims))
        return f"takes the place of {victims} on {failure.nominated}"
    if failure is not None:
        # The first sentence is about the nodes; what follows is about preemption, and seldom of interest.
        return failure.message.partition(". ")[0]
    assert decision is not None
    if attempt.node == decision.pod.status.nominated_node_name:
        return f"on {attempt.node}, which was kept for it"
    if decision.feasible <= 1:
        return f"on {attempt.node}: the only node of {decision.evaluated} that fits"
    among = "" if decision.draw.among == 1 else f", drawn from {decision.draw.among} equally good ones"
    return f"on {attempt.node}: best of {decision.feasible} that fit, score {decision.score}{among}"


@dataclass(frozen=True)
class Plan:
    """What kind of sandbox is wanted."""

    nodes: Sequence[Object] = ()
    """Templates of the nodes to begin with."""
    gpus: int = 0
    """Example GPUs on each of them."""
    configuration: SchedulerConfiguration = field(default_factory=config.default)
    plugins: Registry | None = None
    schedules: bool = True
    """Whether the scheduler inside is at work; if not it only watches, and pods wait for one from outside."""
    host: str = "127.0.0.1"
    port: int = 0
    token: str | None = None
    tls: bool = False
    data_dir: Path | None = None
    """Where objects outlive the process; without it they live in memory."""
    kubeconfig: Path | None = None
    """Where to write a kubeconfig; without it in a folder that goes with the sandbox."""
    faults: Sequence[Rule] = ()
    seed: int | None = None
    node_grace: float = 40.0
    """Seconds without a sign of life after which a node counts as lost."""


class Sandbox:
    """A running cluster. To be started and stopped on an event loop."""

    def __init__(self, plan: Plan) -> None:
        """ValueError if it must not listen on the planned address."""
        self._plan = plan
        self._store = SqliteStore(plan.data_dir) if plan.data_dir else Store()
        self._folder = tempfile.TemporaryDirectory(prefix="kubesched-sandbox-")
        rng = random.Random(plan.seed)
        self.api = Api(self._store, Stamps(rng=rng))
        self._authority: bytes | None = None
        faults = Faults(plan.faults, seed=plan.seed or 0)
        self.server = Server(self.api, host=plan.host, port=plan.port, token=plan.token, tls=self._tls(), faults=faults)
        self.nodes = HollowNodes(self.api, rng, lease_period=plan.node_grace / 4 if plan.node_grace < 40 else None)
        self._controllers = Runner(self.api, (*standard_controllers(self.api, node_grace=plan.node_grace), self.nodes))
        self._rng = rng
        self.kubeconfig = plan.kubeconfig or Path(self._folder.name, "kubeconfig")

    @property
    def scheduler(self) -> Scheduler:
        return self._inside.scheduler

    @property
    def schedules(self) -> bool:
        """Whether the scheduler inside is at work, rather than waiting for one from outside."""
        return self._plan.schedules

    async def start(self) -> None:
        """OSError if the port is taken or the kubeconfig cannot be written, ApiError if a node cannot be."""
        running = asyncio.get_running_loop()
        began = running.time()
        self.chronicle = Chronicle(lambda: running.time() - began)
        await self.server.start()
        try:
            self._populate()
        except Exception:
            await self._close()
            raise
        self._inside = SchedulerInside(
            self.api,
            self._plan.configuration,
            plugins=self._plan.plugins,
            draw=self._rng.randrange,
            listeners=[self.chronicle],
        )
        self._scheduling = asyncio.create_task(self._schedule(), name="scheduling")
        self._controllers.start()

    def _populate(self) -> None:
        """What is there before controllers and scheduler start: mistakes in it are found here."""
        bootstrap(self.api, authority=(self._authority or b"").decode(), port=self.server.port)
        self.nodes.add(self._plan.nodes)
        if self._plan.gpus:
            publish_gpus(self.api, [node["metadata"]["name"] for node in self._plan.nodes], self._plan.gpus)
        document = kubeconfig(self.server.url, token=self._plan.token, authority=self._authority)
        write_kubeconfig(self.kubeconfig, document)

    async def _schedule(self) -> None:
        if self._plan.schedules:
            await self._inside.run()

    async def stop(self) -> None:
        await self._inside.stop()
        await self._scheduling
        await self._controllers.stop()
        await self._close()

    async def _close(self) -> None:
        await self.server.stop()
        await self._store.close()
        self._folder.cleanup()

    def _tls(self) -> ssl.SSLContext | None:
        if not self._plan.tls:
            return None
        made = self_signed({"localhost", "127.0.0.1", self._plan.host} - {"0.0.0.0", "::"})
        self._authority = made.chain
        certificate, key = Path(self._folder.name, "tls.crt"), Path(self._folder.name, "tls.key")
        certificate.write_bytes(made.chain)
        key.touch(mode=0o600)
        key.write_bytes(made.key)
        return server_context(certificate, key)
