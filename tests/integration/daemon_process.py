"""`kubesched run` as a process: started with a configuration, watched through its log and its port, told to stop."""

from __future__ import annotations

import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.integration.live_cluster import wait_until

HEADER = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
_UNLIMITED = 5000


class Answered(NamedTuple):
    """What an endpoint of the daemon said."""

    status: int
    text: str


class Daemon:
    """One process. It is killed, if it still runs, when the test is over."""

    def __init__(
        self,
        directory: Path,
        kubeconfig: Path | str,
        *flags: str,
        config: Mapping[str, Any] | None = None,
        environ: Mapping[str, str] | None = None,
        qps: int = _UNLIMITED,
        token: str | None = None,
        with_page: bool = False,
        name: str = "daemon",
    ) -> None:
        """`config` are fields of the configuration; `token` goes with every question asked on the secure port."""
        self.log_file = directory / f"{name}.log"
        self.may_show_tracebacks = False
        """Whether the test breaks something of which the log should tell where."""
        self._token = token
        file = directory / f"{name}.json"
        connection = {"kubeconfig": str(kubeconfig), "qps": qps, "burst": qps}
        file.write_text(json.dumps({**HEADER, "clientConnection": connection, **(config or {})}))
        self._reservation, self.port = _reserved_port()
        arguments = (
            *("--config", str(file)),
            *("--secure-port", str(self.port), "--permit-port-sharing", "--bind-address", "127.0.0.1"),
            *("-v", "2", *flags),
        )
        self._page_reservation, self.ui_port = _reserved_port()
        if with_page:
            arguments = (*arguments, "--ui-port", str(self.ui_port))
        self.process = start_command(arguments, self.log_file, environ)

    @property
    def log(self) -> str:
        return self.log_file.read_text()

    def log_lines(self, *words: str) -> list[str]:
        """The lines that have all of these words."""
        return [line for line in self.log.splitlines() if all(word in line for word in words)]

    def wait_for_log(self, *words: str) -> str:
        """The first line with all of these words, as soon as there is one."""

        def first() -> str | None:
            assert self.process.poll() is None or self.log_lines(*words), f"it ended without {words}:\n{self.log}"
            return next(iter(self.log_lines(*words)), None)

        return str(wait_until(first, f"{words} in the log"))

    def wait_scheduling(self) -> None:
        """Until it has the lease, if it needs one, and knows the cluster."""
        self.wait_for_log("Starting to schedule")

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def wait_exit(self, within: float = 120.0) -> int:
        try:
            return self.process.wait(within)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running after {within:g} s:\n{self.log}") from None

    def stop(self) -> int:
        """Tell it to stop, and return what it exits with."""
        self.send(signal.SIGTERM)
        return self.wait_exit()

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(10)
        self._reservation.close()
        self._page_reservation.close()

    def get(
        self, path: str, *, token: str | None = None, headers: Mapping[str, str] | None = None, method: str = "GET"
    ) -> Answered:
        """Ask the secure port, or that of the page about what is under /ui. An empty token is none at all."""
        shown = self._token if token is None else token
        sent = {**({"Authorization": f"Bearer {shown}"} if shown else {}), **(headers or {})}
        port = self.ui_port if path.startswith("/ui") else self.port
        request = urllib.request.Request(f"https://127.0.0.1:{port}{path}", headers=sent, method=method)
        trusting = ssl.create_default_context()
        trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
        try:
            with urllib.request.urlopen(request, timeout=120, context=trusting) as answer:
                return Answered(answer.status, answer.read().decode())
        except urllib.error.HTTPError as refusal:
            with refusal:
                return Answered(refusal.code, refusal.read().decode())

    def metrics(self) -> dict[str, float]:
        """All samples, by their name and labels as they are written."""
        answered = self.get("/metrics")
        assert answered.status == 200, answered
        lines = (line.rpartition(" ") for line in answered.text.splitlines() if line and not line.startswith("#"))
        return {name: float(value) for name, _, value in lines}

    def metric(self, series: str, /, **labels: str) -> float:
        """The sum of all samples of that series with these labels."""
        wanted = [f'{label}="{value}"' for label, value in labels.items()]
        return sum(
            value
            for sample, value in self.metrics().items()
            if sample.partition("{")[0] == series and all(label in sample for label in wanted)
        )


def start_command(
    arguments: Sequence[str], log_file: Path, environ: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """`kubesched run` with all that it says in a file."""
    with log_file.open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "kubesched", "run", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(environ or {})},
        )


def _reserved_port() -> tuple[socket.socket, int]:
    """A port that nobody else will get as long as this socket is open; the daemon shares it."""
    reservation = socket.socket()
    reservation.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    reservation.bind(("127.0.0.1", 0))
    return reservation, reservation.getsockname()[1]
