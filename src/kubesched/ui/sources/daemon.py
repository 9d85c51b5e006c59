"""The scheduler of a daemon as a source, from the first look until the last; in shadow mode the one in charge, too."""

from __future__ import annotations

import time

from kubesched.daemon.page import ObservedReplica
from kubesched.framework.extender import ignoring_managed_resources
from kubesched.plugins.registry import all_plugins
from kubesched.scheduler.listener import SchedulerListener
from kubesched.ui.model.observed import Observed, engine_for
from kubesched.ui.model.seen_decisions import SeenDecisions
from kubesched.ui.sources.scheduler import observe_scheduler

STANDBY = "This replica does not lead: it follows the cluster, and decides nothing until it has the lease."


def attached(subject: ObservedReplica) -> Observed:
    """To be called in the thread that schedules, as `detached` is."""
    configuration, scheduler, shadow = subject.settings.configuration, subject.replica.scheduler, subject.replica.shadow
    if shadow is None:
        return observe_scheduler(
            scheduler,
            configuration,
            kind="daemon",
            title="kubesched run",
            clock=time.monotonic,
            plugins=all_plugins(),
            saying=lambda: "" if subject.leads() else STANDBY,
            experiments=False,
        )
    plugins = all_plugins()
    engine, profiles = engine_for(scheduler.state, configuration, plugins)
    seen = SeenDecisions(time.time, scheduler.pods.values())
    scheduler.listeners.append(seen)
    return Observed(
        kind="shadow",
        title="kubesched run --shadow",
        state=scheduler.state,
        pods=scheduler.pods,
        engine=engine,
        profiles=profiles,
        configuration=ignoring_managed_resources(configuration),
        clock=time.time,
        plugins=plugins,
        live=True,
        pods_without_node=seen.without_node,
        log=seen,
        shadow=shadow,
        experiments=False,
    )


def detached(subject: ObservedReplica, observed: Observed) -> None:
    """Nothing is kept up for the page any longer."""
    listeners, log = subject.replica.scheduler.listeners, observed.log
    if isinstance(log, SchedulerListener):
        listeners.remove(log)
