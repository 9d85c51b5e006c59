"""Two replicas of `kubesched run`, started again whenever they end, as a kubelet would; what they did is kept."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bench.processes import SchedulerProcess, wait_for

_SETTINGS = "leaderElection: {leaseDuration: 6s, renewDeadline: 4s, retryPeriod: 1s}\n"
_FLAGS = ("--logging-format", "json", "-v", "2")
_LEADS = '"msg":"Starting to schedule"'
_COMPARED = "Compared the cache with the API server"
_DUMPED = "Dump of the cache"
_LEASE_LOST = 1
_OF_UVLOOP = (
    "Fatal error on SSL protocol",  # its words for a connection that was closed in the middle of its TLS
    "SSLProtocol._on_handshake_complete",  # and for one that was reset in the moment in which we gave up on it
)


def broken_lines(log: Path, expected: Iterable[str] = ()) -> list[str]:
    """Lines that tell of a mistake of ours, unless they have any of the expected words."""
    return [
        f"{log}: {line[:300]}"
        for line in log.read_text().splitlines()
        if ("Traceback" in line or "stacktrace" in line)
        and not any(words in line for words in (*expected, *_OF_UVLOOP))
    ]


class Replica:
    """One after another, processes under one name."""

    def __init__(self, name: str, url: str, directory: Path, access: Path | None = None) -> None:
        """`access` is a kubeconfig, if the address alone does not do."""
        self.name, self._url, self._directory, self._access = name, url, directory, access
        self.logs: list[Path] = []
        self.kills = 0
        self.losses = 0
        """How often it ended by itself because it could not renew its lease."""
        self.faults: list[str] = []
        self.process = self._started()
        self._has_led = False

    @property
    def leads(self) -> bool:
        """Whether this process schedules. One that loses the lease ends, so what was once so stays so."""
        self._has_led = self._has_led or _LEADS in self.process.log.read_text()
        return self._has_led and self.process.is_alive

    def look_after(self) -> None:
        """Start it again if it ended, and judge how it ended."""
        code = self.process.process.poll()
        if code is None:
            return
        if code == _LEASE_LOST and "Leaderelection lost" in self.process.log.read_text():
            self.losses += 1
        elif code != -signal.SIGKILL:
            self.faults.append(f"{self.name} ended with exit code {code}, see {self.process.log}")
        self.process = self._started()
        self._has_led = False

    def kill(self) -> None:
        self.kills += 1
        self.process.process.kill()
        self.process.process.wait()
        self.look_after()

    def cache(self, within: float = 60.0) -> tuple[dict[str, Any], int]:
        """What it holds true of every node, and in how many objects that differed from what it then read anew."""
        before = len(self._entries(_COMPARED))
        self.process.process.send_signal(signal.SIGUSR2)
        wait_for(lambda: len(self._entries(_COMPARED)) > before, within, f"{self.name} to compare")
        return self._entries(_DUMPED)[-1]["nodes"], self._entries(_COMPARED)[-1]["differences"]

    def stop(self) -> None:
        code = self.process.end()
        if code != 0:
            self.faults.append(f"{self.name} was asked to stop and ended with exit code {code}")

    def broken_lines(self) -> list[str]:
        """Lines of any of its logs that tell of a mistake of ours."""
        return [line for log in self.logs for line in broken_lines(log)]

    def _started(self) -> SchedulerProcess:
        name = f"{self.name}-{len(self.logs)}"
        process = SchedulerProcess(
            self._url, self._directory, name=name, settings=_SETTINGS, flags=_FLAGS, access=self._access
        )
        self.logs.append(process.log)
        return process

    def _entries(self, message: str) -> list[dict[str, Any]]:
        """Lines of the log with that message; the last line may not be whole yet."""
        lines = self.process.log.read_text().split("\n")[:-1]
        return [json.loads(line) for line in lines if f'"msg":"{message}"' in line]
