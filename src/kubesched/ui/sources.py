"""The clusters that the page can look at, each as an `ObservedCluster`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable

import msgspec

from kubesched.api.kinds import Object
from kubesched.ask.sources.following import ClusterFeed, NotReadyError
from kubesched.config import SchedulerConfiguration
from kubesched.daemon.page import ObservedReplica
from kubesched.extenders.http_extender import HTTPExtender
from kubesched.framework.registry import Registry
from kubesched.kube.client import Client
from kubesched.kube.errors import KubeError
from kubesched.plugins.registry import all_plugins
from kubesched.scheduler.listener import SchedulerListener
from kubesched.scheduler.scheduler import Scheduler
from kubesched.simulate.cluster import ClusterModel
from kubesched.ui.model.decisions import DecisionLog, SeenDecisions
from kubesched.ui.model.observed import ObservedCluster
from kubesched.ui.model.owners import WantedPods
from kubesched.ui.model.usage import UsageReport, read_usage

_MEASURED_EVERY = 15.0
"""Seconds; metrics-server measures as often."""
_TRIED_EVERY = 60.0


def observe_manifests(cluster: ClusterModel, title: str) -> ObservedCluster:
    """The cluster that manifests describe. Nothing is scheduled: the page says what would become of pods that wait."""
    return ObservedCluster(
        kind="manifests",
        title=title,
        cluster=cluster,
        clock=lambda: 0.0,
    )


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
    wanted: Callable[[], Iterable[WantedPods]] | None = None,
    usage: Callable[[], UsageReport | None] = lambda: None,
) -> ObservedCluster:
    """From now on its decisions are remembered. `clock` is that of its queue, `plugins` are those that it knows.

    `measures` says whether it matters how long attempts take.
    """
    log = DecisionLog(clock) if measures else DecisionLog(clock, stopwatch=None)
    scheduler.listeners.append(log)
    return ObservedCluster(
        kind=kind,
        title=title,
        cluster=ClusterModel.of_scheduler(scheduler.state, scheduler.pods, configuration, plugins),
        clock=clock,
        wall_clock=time.time if measures else None,
        live=True,
        queue=scheduler.queue,
        log=log,
        saying=saying,
        extenders=[extender for extender in scheduler.extenders if isinstance(extender, HTTPExtender)],
        experiments=experiments,
        wanted=wanted,
        usage=usage,
    )


def observe_following(
    cluster: ClusterModel,
    followed: ClusterFeed,
    title: str,
    *,
    clock: Callable[[], float] = time.time,
    usage: Callable[[], UsageReport | None] = lambda: None,
) -> ObservedCluster:
    """The cluster as the watches show it; the page says so when one of them is broken.

    From now on the decisions are noted that changes amount to. `clock` has seconds since 1970.
    """
    seen = SeenDecisions(clock, cluster.pods.values())
    cluster.observers.append(seen.handling)
    return ObservedCluster(
        kind="live",
        title=title,
        cluster=cluster,
        clock=clock,
        wall_clock=clock,
        live=True,
        pods_without_node=seen.without_node,
        log=seen,
        usage=usage,
        saying=lambda: _trouble(followed),
    )


class MeasuredUsage:
    """What metrics.k8s.io of a live cluster says, asked again and again; nothing where it has no such API."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.report: UsageReport | None = None

    async def run(self) -> None:
        """For ever."""
        while True:
            try:
                nodes, pods = [await self._items(kind) for kind in ("nodes", "pods")]
                self.report = read_usage(nodes, pods)
            except KubeError:  # no such API, no right to read it, or no answer: usage is only shown where there is one
                self.report = None
            await asyncio.sleep(_MEASURED_EVERY if self.report is not None else _TRIED_EVERY)

    async def _items(self, kind: str) -> list[Object]:
        text = await self._client.get(f"/apis/metrics.k8s.io/v1beta1/{kind}", timeout=_MEASURED_EVERY, retries=0)
        return msgspec.json.decode(text, type=_Metrics).items


class _Metrics(msgspec.Struct):
    items: list[Object] = []


def _trouble(followed: ClusterFeed) -> str:
    try:
        behind = followed.age().behind
    except NotReadyError as error:
        return f"The cluster is still being read: {error}."
    if not behind:
        return ""
    return "Not up to date: " + ", ".join(f"{watch.kind} ({watch.why})" for watch in behind)


STANDBY = "This replica does not lead: it follows the cluster, and decides nothing until it has the lease."


def attached(subject: ObservedReplica) -> ObservedCluster:
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
    return ObservedCluster(
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


def detached(subject: ObservedReplica, observed: ObservedCluster) -> None:
    """Nothing is kept up for the page any longer."""
    listeners, log = subject.replica.scheduler.listeners, observed.log
    if isinstance(log, SchedulerListener):
        listeners.remove(log)
