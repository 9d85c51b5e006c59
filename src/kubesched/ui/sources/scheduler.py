"""A scheduler at work as a source: its cache, its queue and its decisions, live."""

from __future__ import annotations

from collections.abc import Callable

from kubesched.config import SchedulerConfiguration
from kubesched.framework.registry import Registry
from kubesched.scheduler.scheduler import Scheduler
from kubesched.ui.model.decisions import DecisionLog
from kubesched.ui.model.observed import Observed, engine_for


def observe_scheduler(
    scheduler: Scheduler,
    configuration: SchedulerConfiguration,
    *,
    kind: str,
    title: str,
    clock: Callable[[], float],
    plugins: Registry | None = None,
    saying: Callable[[], str] = lambda: "",
) -> Observed:
    """From now on its decisions are remembered. `clock` is that of its queue, `plugins` are those that it knows."""
    log = DecisionLog(clock)
    scheduler.listeners.append(log)
    engine, profiles = engine_for(scheduler.state, configuration, plugins)
    return Observed(
        kind=kind,
        title=title,
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
