"""Measuring `kubesched run` on the sandbox's API server: the CPU time of the scheduler's process alone."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import NamedTuple

from bench.processes import ApiServer, SchedulerProcess, wait_for

NODES = 5000
PODS = {"basic": 10_000, "spread-soft": 10_000, "spread-hard": 10_000, "required-anti-affinity": 5000}
"""Pods that keep away from their own fit on a node each."""
RUNNING = 30_000
LONGEST_RUN = 60.0


class Start(NamedTuple):
    """What it takes until the first decision could be made."""

    cpu_seconds: float
    rss_mb: float


def binding(kind: str, nodes: int = NODES, pods: int = 0) -> float:
    """CPU microseconds per pod, from the creation of many until all are bound and all events are written."""
    pods = pods or PODS[kind]
    with tempfile.TemporaryDirectory() as directory, ApiServer() as server:
        server.ask("nodes", count=nodes)
        with SchedulerProcess(server.url, Path(directory)) as scheduler:
            scheduler.wait_until_ready()
            before = scheduler.cpu_seconds()
            server.ask("pods", kind=kind, count=pods)
            done = {"bound": pods, "events": pods}
            wait_for(lambda: server.ask("progress") == done, LONGEST_RUN, f"{pods} pods and events")
            return (scheduler.cpu_seconds() - before) * 1e6 / pods


def starting(nodes: int = NODES, running: int = RUNNING) -> Start:
    """From the start of the process until it would schedule, with pods on all nodes."""
    with tempfile.TemporaryDirectory() as directory, ApiServer() as server:
        server.ask("nodes", count=nodes)
        server.ask("running", count=running, nodes=nodes)
        with SchedulerProcess(server.url, Path(directory)) as scheduler:
            scheduler.wait_until_ready()
            return Start(scheduler.cpu_seconds(), scheduler.peak_rss_mb())
