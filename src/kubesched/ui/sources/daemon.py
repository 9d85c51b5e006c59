"""The scheduler of a daemon as a source, from the first look until the last; in shadow mode the one in charge, too."""

from __future__ import annotations

import time

from kubesched.daemon.supervision import Subject
from kubesched.plugins.registry import all_plugins
from kubesched.scheduler.listener import SchedulerListener
from kubesched.simulate.cluster import ClusterModel
from kubesched.ui.model.observed import Observed
from kubesched.ui.model.seen_decisions import SeenDecisions
from kubesched.ui.sources.scheduler import observe_scheduler

STANDBY = "This replica does not lead: it follows the cluster, and decides nothing until it has the lease."


def attached(subject: Subject) -> Observed:
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
    seen = SeenDecisions(time.time, scheduler.pods.values())
    scheduler.listeners.append(seen)
    return Observed(
        kind="shadow",
        title="kubesched run --shadow",
        cluster=ClusterModel.of_scheduler(scheduler.state, scheduler.pods, configuration, all_plugins()),
        clock=time.time,
        live=True,
        pods_without_node=seen.without_node,
        log=seen,
        shadow=shadow,
        experiments=False,
    )


def detached(subject: Subject, observed: Observed) -> None:
    """Nothing is kept up for the page any longer."""
    listeners, log = subject.replica.scheduler.listeners, observed.log
    if isinstance(log, SchedulerListener):
        listeners.remove(log)
