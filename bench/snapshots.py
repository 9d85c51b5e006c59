"""Measuring `kubesched snapshot` on the sandbox's API server: the process that reads, and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from bench.processes import ApiServer
from kubesched_sandbox.http import kubeconfig, write_kubeconfig

NODES, PODS = 5000, 50_000


class Taken(NamedTuple):
    """What it takes to read a cluster and to write it to a file."""

    cpu_seconds: float
    peak_rss_mb: float
    file_mb: float


def taking(nodes: int = NODES, pods: int = PODS) -> Taken:
    """From the start of the process to its end."""
    with tempfile.TemporaryDirectory() as directory, ApiServer() as server:
        server.ask("nodes", count=nodes)
        server.ask("running", count=pods, nodes=nodes)
        access, file = Path(directory, "kubeconfig"), Path(directory, "cluster.json.gz")
        write_kubeconfig(access, kubeconfig(server.url))
        command = [sys.executable, "-m", "kubesched", "snapshot", "--kubeconfig", str(access), "-o", str(file)]
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise RuntimeError(f"kubesched snapshot ended with {process.returncode}")
        return Taken(used.ru_utime + used.ru_stime, used.ru_maxrss / 1e3, file.stat().st_size / 1e6)
