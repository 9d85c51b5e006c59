"""Processes that are measured from outside: an API server, schedulers, and what the kernel says of each."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from kubesched_sandbox.http import kubeconfig, write_kubeconfig

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_READY = "Starting to schedule"
_LONGEST_START = 60.0


class Process:
    """A process that ends with the `with` block."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def end(self, within: float = 20.0) -> int:
        """Ask it to end, and see to it that it does. Its exit code."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        else:
            self.process.terminate()
        try:
            return self.process.wait(within)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()
        finally:
            if self.process.stdout is not None:
                self.process.stdout.close()

    @property
    def is_alive(self) -> bool:
        return self.process.poll() is None

    def cpu_seconds(self) -> float:
        """What all its threads have spent so far, in user and kernel mode."""
        _, spent = _parent_and_cpu(self.process.pid)
        return spent

    def cpu_seconds_of_others(self) -> float:
        """What we, and all others whom we have started and who still run, have spent so far."""
        spent = 0.0
        for pid in (int(folder.name) for folder in Path("/proc").iterdir() if folder.name.isdigit()):
            with contextlib.suppress(OSError):
                parent, cpu = _parent_and_cpu(pid)
                spent += cpu if os.getpid() in (pid, parent) and pid != self.process.pid else 0.0
        return spent

    def main_thread_seconds(self) -> float:
        """The same of its main thread alone, to the nanosecond."""
        return int(Path(f"/proc/{self.process.pid}/task/{self.process.pid}/schedstat").read_text().split()[0]) / 1e9

    def rss_mb(self) -> float:
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * _PAGE / 1e6

    def peak_rss_mb(self) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) / 1e3


def _parent_and_cpu(pid: int) -> tuple[int, float]:
    # The name of the program, in brackets, may have blanks in it.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[1]), (int(fields[11]) + int(fields[12])) / _TICKS


class ApiServer(Process):
    """The sandbox's API server, without nodes, controllers or a scheduler."""

    def __init__(self, argument: str = "", module: str = "bench.api_server") -> None:
        """`argument` is a directory for its data, or whatever else the module takes."""
        command = [sys.executable, "-m", module, argument]
        super().__init__(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        self.greeting = self._answer()
        """What it said of itself when it was ready."""
        self.url: str = self.greeting["url"]

    def ask(self, do: str, **details: Any) -> dict[str, Any]:
        """Have something done; the answer says how far scheduling has come since."""
        stdin = self.process.stdin
        assert stdin is not None
        stdin.write(json.dumps({"do": do, **details}) + "\n")
        stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the API server ended with exit code {self.process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        return answer


class SchedulerProcess(Process):
    """`kubesched run` against an API server, its own limits raised so that they are not what is measured."""

    def __init__(
        self,
        url: str,
        directory: Path,
        *,
        name: str = "scheduler",
        settings: str = "",
        flags: tuple[str, ...] = (),
        access: Path | None = None,
    ) -> None:
        """`access` is a kubeconfig, if the address alone does not do."""
        config, self.log = directory / f"{name}.yaml", directory / f"{name}.log"
        if access is None:
            access = directory / f"{name}.kubeconfig"
            write_kubeconfig(access, kubeconfig(url))
        config.write_text(
            "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
            f"clientConnection: {{kubeconfig: {access}, qps: 10000, burst: 10000}}\n{settings}"
        )
        self.port = free_port()
        command = [sys.executable, "-m", "kubesched", "run", "--config", str(config), "--bind-address", "127.0.0.1"]
        command += ["--secure-port", str(self.port), *flags]
        with self.log.open("a") as log:
            super().__init__(subprocess.Popen(command, stdout=log, stderr=log, text=True))

    def wait_until_ready(self) -> None:
        """Until it leads, has seen everything, and would schedule."""
        wait_for(lambda: _READY in self.log.read_text() or not self.is_alive, _LONGEST_START, "the scheduler's start")
        if not self.is_alive:
            raise RuntimeError(f"the scheduler ended:\n{self.log.read_text()[-2000:]}")


def wait_for(happened: Callable[[], bool], seconds: float, what: str, every: float = 0.1) -> None:
    """Look every so often; TimeoutError if it does not happen in time."""
    deadline = time.monotonic() + seconds
    while not happened():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {seconds:g} s in vain for {what}")
        time.sleep(every)


def free_port() -> int:
    with contextlib.closing(socket.socket()) as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
        return port
