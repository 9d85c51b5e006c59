"""The two schedulers as processes with the same settings, and what they and the kernel say of their work."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from prometheus_client.parser import text_string_to_metric_families

from bench.peer.client import Access, fetch, is_ready
from bench.peer.control_plane import ADMIN, SCHEDULER, ControlPlane, binary
from bench.processes import Process, free_port, wait_for

KUBESCHED, KUBE_SCHEDULER, BINDER = "kubesched", "kube-scheduler", "binder"
_LONGEST_START = 120.0
_REST, _IDLE_SHARE = 0.4, 0.06
"""A scheduler is at rest if it needs less than this share of a core for so many seconds."""

_COUNTED = {
    "scheduler_schedule_attempts_total": ("result",),
    "scheduler_queue_incoming_pods_total": ("queue", "event"),
}


class Scheduler(Process):
    """Either of them; it ends with the `with` block."""

    def __init__(
        self,
        kind: str,
        plane: ControlPlane,
        *,
        tree: Path | None = None,
        config: Path | None = None,
        gates: dict[str, bool] | None = None,
        flags: tuple[str, ...] = (),
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        """`tree` is the checkout whose kubesched is measured, this one unless said so; `settings` are more fields."""
        self.kind = kind
        self.log = plane.folder / f"{kind}.log"
        access = plane.kubeconfig(SCHEDULER)
        file = plane.folder / f"{kind}.yaml"
        file.write_text(yaml.safe_dump(_settings(access, config) | dict(settings or {})))
        port = free_port()
        self._access = Access(f"https://127.0.0.1:{port}", ADMIN, None)
        chosen = ",".join(f"{gate}={str(on).lower()}" for gate, on in (gates or {}).items())
        command = [
            *_program(kind),
            f"--config={file}",
            f"--authentication-kubeconfig={access}",
            f"--authorization-kubeconfig={access}",
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            *([f"--feature-gates={chosen}"] if chosen else []),
            *flags,
        ]
        environment = os.environ | ({"PYTHONPATH": str(tree / "src")} if tree else {})
        if kind == KUBESCHED:
            _compile(environment)
        with self.log.open("a") as log:
            super().__init__(subprocess.Popen(command, stdout=log, stderr=log, text=True, env=environment))

    def wait_until_ready(self) -> None:
        wait_for(lambda: is_ready(self._access) or not self.is_alive, _LONGEST_START, f"{self.kind}'s start")
        if not self.is_alive:
            raise RuntimeError(f"{self.kind} ended:\n{self.log.read_text(errors='replace')[-2000:]}")

    async def rest(self, longest: float) -> None:
        """Until it has nothing to do, or so many seconds have passed."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + longest
        while loop.time() < deadline:
            before = self.cpu_seconds()
            await asyncio.sleep(_REST)
            if self.cpu_seconds() - before < _REST * _IDLE_SHARE:
                return

    def counted(self) -> Counter[str]:
        """So far: scheduling attempts by result, and pods that came into a queue by queue and event."""
        counted: Counter[str] = Counter()
        for family in text_string_to_metric_families(fetch(self._access, "/metrics", timeout=60).decode()):
            for sample in family.samples:
                if labels := _COUNTED.get(sample.name):
                    counted[" ".join(sample.labels[label] for label in labels)] += int(sample.value)
        return counted


def _compile(environment: Mapping[str, str]) -> None:
    """As pip does when it installs: a start that compiles 400 modules would be measured otherwise."""
    where = "import compileall, kubesched; compileall.compile_dir(kubesched.__path__[0], quiet=1)"
    subprocess.run([sys.executable, "-c", where], env=environment, check=True)


def _program(kind: str) -> list[str]:
    if kind == KUBESCHED:
        return [sys.executable, "-m", "kubesched", "run"]
    if kind == BINDER:
        return [sys.executable, "-m", "bench.peer.binder"]
    return [str(binary(kind))]


def _settings(kubeconfig: Path, config: Path | None) -> dict[str, Any]:
    settings: dict[str, Any] = yaml.safe_load(config.read_text()) if config else {}
    return (
        {"leaderElection": {"leaderElect": False}}
        | settings
        | {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "clientConnection": {"kubeconfig": str(kubeconfig), "qps": 5000, "burst": 5000},
        }
    )
