"""A scheduler at work as a source: its cache, its queue and its decisions, live."""

from __future__ import annotations

from collections.abc import Callable

from kubesched.config import SchedulerConfiguration
from kubesched.extenders.http_extender import HTTPExtender
from kubesched.framework.registry import Registry
from kubesched.scheduler.scheduler import Scheduler
from kubesched.simulate.cluster import ClusterModel
from kubesched.ui.model.decisions import DecisionLog
from kubesched.ui.model.observed import Observed


def observe_scheduler(
    scheduler: Scheduler,
    configuration: SchedulerConfiguration,
    *,
    kind: str,
    title: str,
    clock: Callable[[], float],
    plugins: Registry | None = None,
    saying: Callable[[], str] = lambda: "",
    measures: bool = True,
    experiments: bool = True,
) -> Observed:
    """From now on its decisions are remembered. `clock` is that of its queue, `plugins` are those that it knows.

    `measures` says whether it matters how long attempts take.
    """
    log = DecisionLog(clock) if measures else DecisionLog(clock, stopwatch=None)
    scheduler.listeners.append(log)
    return Observed(
        kind=kind,
        title=title,
        cluster=ClusterModel.of_scheduler(scheduler.state, scheduler.pods, configuration, plugins),
        clock=clock,
        live=True,
        queue=scheduler.queue,
        log=log,
        saying=saying,
        extenders=[each for each in scheduler.extenders if isinstance(each, HTTPExtender)],
        experiments=experiments,
    )
