"""The scheduler inside a sandbox as a source: live, with its queue, its decisions and the story that plays there."""

from __future__ import annotations

from collections.abc import Callable

from kubesched.config import SchedulerConfiguration
from kubesched.framework.registry import Registry
from kubesched.sandbox.box import Sandbox
from kubesched.ui.model.decisions import DecisionLog
from kubesched.ui.model.observed import Observed, engine_for


def observe_sandbox(
    box: Sandbox,
    configuration: SchedulerConfiguration,
    *,
    clock: Callable[[], float],
    plugins: Registry | None = None,
    saying: Callable[[], str] = lambda: "",
) -> Observed:
    """The cluster of a sandbox that has started. `clock` is that of its event loop."""
    scheduler = box.scheduler
    log = DecisionLog(clock)
    scheduler.listeners.append(log)
    engine, profiles = engine_for(scheduler.state, configuration, plugins)
    return Observed(
        kind="sandbox",
        title=f"sandbox at {box.server.url}",
        state=scheduler.state,
        pods=scheduler.pods,
        engine=engine,
        profiles=profiles,
        clock=clock,
        queue=scheduler.queue,
        log=log,
        saying=saying,
        extenders=len(scheduler.extenders),
    )
