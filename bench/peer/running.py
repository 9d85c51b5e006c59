"""One run: a control plane of its own, one scheduler, one workload."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import msgspec
import uvloop

from bench.peer.cases import CaseError, Workload, settable_gates
from bench.peer.client import Api
from bench.peer.control_plane import ControlPlane
from bench.peer.executor import Executor
from bench.peer.measurement import Result
from bench.peer.pods import PodWatch
from bench.peer.schedulers import KUBESCHED, Scheduler

CONTROLLERS = ("resourceclaim-controller", "garbage-collector-controller")
"""Where pods have claim templates, someone has to make claims of them, and to delete those whose pods are gone."""


class Settings(msgspec.Struct, frozen=True):
    """How to run, whatever the workload."""

    tree: Path | None = None
    """The checkout whose kubesched is measured; None is the one that is imported here."""
    flags: tuple[str, ...] = ()
    """For both schedulers."""
    timeout: float = 1200.0
    keep: Path | None = None
    """Where logs and settings stay."""


def measure(workload: Workload, kind: str, settings: Settings) -> Result:
    """What one scheduler does with one workload. Raises TimeoutError if it is not done in time."""
    gates = settable_gates(workload)
    controllers = CONTROLLERS if gates.get("DynamicResourceAllocation") else ()
    with (
        _folder(settings.keep, f"{workload.case}-{workload.name}-{kind}") as folder,
        ControlPlane(folder, gates=gates, controllers=controllers) as plane,
        ExitStack() as running,
    ):

        def start() -> Scheduler:
            tree = settings.tree if kind == KUBESCHED else None
            config = workload.scheduler_config
            scheduler = Scheduler(kind, plane, tree=tree, config=config, gates=gates, flags=settings.flags)
            return running.enter_context(scheduler)

        try:
            return uvloop.run(_perform(workload, plane, start, settings.timeout))
        except TimeoutError:
            raise TimeoutError(f"{workload.full_name}: {kind} was not done after {settings.timeout:g} s") from None


@contextmanager
def _folder(kept: Path | None, name: str) -> Iterator[Path]:
    if kept is None:
        with tempfile.TemporaryDirectory(prefix="bench-peer-") as temporary:
            yield Path(temporary)
    else:
        kept.mkdir(parents=True, exist_ok=True)
        yield Path(tempfile.mkdtemp(prefix=f"{name}-", dir=kept))


async def _perform(workload: Workload, plane: ControlPlane, start: Callable[[], Scheduler], timeout: float) -> Result:
    api = Api(plane.access)
    watch = PodWatch(api)
    watching = asyncio.create_task(watch.run())
    executor = Executor(workload, api, watch, start, plane.forget_history)
    try:
        async with asyncio.timeout(timeout):
            await executor.run()
    finally:
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching
        await api.close()
    if executor.result is None:
        raise CaseError(f"{workload.full_name} measures nothing")
    return executor.result
