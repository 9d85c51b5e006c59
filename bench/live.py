"""Measuring `kubesched run` on the sandbox's API server: the CPU time of the scheduler's process alone."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from bench.processes import ApiServer, SchedulerProcess, wait_for

NODES = 5000
PODS = {"basic": 10_000, "spread-soft": 10_000, "spread-hard": 10_000, "required-anti-affinity": 5000}
"""Pods that keep away from their own fit on a node each."""
TRICKLE = 500
"""Pods a second, where they come one by one."""
RUNNING = 30_000
LONGEST_RUN = 60.0
_REST = 10.0
"""Seconds in which nothing is asked of a sandbox, so that it comes to rest."""


class Start(NamedTuple):
    """What it takes until the first decision could be made."""

    cpu_seconds: float
    peak_rss_mb: float


class Alive(NamedTuple):
    """A whole sandbox in one process, from the first Deployment until every pod runs, and then at rest."""

    wall_seconds: float
    cpu_seconds: float
    rss_mb: float
    idle_percent: float
    """Of a core, to keep up leases and conditions."""


def binding(kind: str, nodes: int = NODES, pods: int = 0, per_second: int = 0) -> float:
    """CPU microseconds per pod, from the creation of many until all are bound and all events are written.

    The pods come all at once, or one by one: then the scheduler wakes up for each, and what it does per turn shows.
    """
    pods = pods or PODS[kind]
    with tempfile.TemporaryDirectory() as directory, ApiServer() as server:
        server.ask("nodes", count=nodes)
        with SchedulerProcess(server.url, Path(directory)) as scheduler:
            scheduler.wait_until_ready()
            before = scheduler.cpu_seconds()
            server.ask("pods", kind=kind, count=pods, per_second=per_second)
            wait_for(lambda: _is_done(server.ask("tell"), pods), LONGEST_RUN, f"{pods} pods and events")
            return (scheduler.cpu_seconds() - before) * 1e6 / pods


def starting(nodes: int = NODES, running: int = RUNNING) -> Start:
    """From the start of the process until it would schedule, with pods on all nodes."""
    with tempfile.TemporaryDirectory() as directory, ApiServer() as server:
        server.ask("nodes", count=nodes)
        server.ask("running", count=running, nodes=nodes)
        with SchedulerProcess(server.url, Path(directory)) as scheduler:
            scheduler.wait_until_ready()
            return Start(scheduler.cpu_seconds(), scheduler.peak_rss_mb())


def running_in_sandbox(nodes: int = NODES, apps: int = 100, replicas: int = 100) -> Alive:
    """Hollow nodes, controllers, API server and scheduler on one event loop."""
    with ApiServer() as server:
        server.ask("come alive", nodes=nodes)
        time.sleep(_REST)
        before, started = server.cpu_seconds(), time.monotonic()
        server.ask("deploy", apps=apps, replicas=replicas)
        pods = apps * replicas
        wait_for(lambda: server.ask("tell")["running"] >= pods, LONGEST_RUN, f"{pods} pods to run")
        wall, cpu = time.monotonic() - started, server.cpu_seconds() - before
        time.sleep(_REST)
        before, started = server.cpu_seconds(), time.monotonic()
        time.sleep(_REST)
        idle = (server.cpu_seconds() - before) / (time.monotonic() - started)
        return Alive(wall, cpu, server.rss_mb(), 100 * idle)


def _is_done(progress: dict[str, Any], pods: int) -> bool:
    return bool(progress["bound"] == progress["events"] == pods)
