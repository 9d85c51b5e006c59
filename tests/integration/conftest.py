"""A live cluster and daemons on it, all gone when the test is over."""

from __future__ import annotations

import contextlib
import itertools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.daemon_process import Daemon
from tests.integration.live_cluster import LiveCluster

StartDaemon = Callable[..., Daemon]
StartCluster = Callable[..., LiveCluster]


@pytest.fixture
def start_cluster(tmp_path: Path) -> Iterator[StartCluster]:
    """A further API server, with the options of LiveCluster."""
    with contextlib.ExitStack() as closing:

        def start(**options: Any) -> LiveCluster:
            cluster = LiveCluster(tmp_path, **options)
            closing.callback(cluster.close)
            return cluster

        yield start


@pytest.fixture
def cluster(start_cluster: StartCluster) -> LiveCluster:
    """An API server that asks for no token, over plain HTTP."""
    return start_cluster()


@pytest.fixture
def start_daemon(tmp_path: Path) -> Iterator[StartDaemon]:
    """A daemon on a cluster, with the flags and options of Daemon. What it logged is shown if the test fails."""
    numbers = itertools.count(1)
    daemons: list[Daemon] = []

    def start(cluster: LiveCluster, *flags: str, kubeconfig: Path | None = None, **options: Any) -> Daemon:
        options.setdefault("name", f"daemon-{next(numbers)}")
        daemons.append(Daemon(tmp_path, kubeconfig or cluster.kubeconfig(), *flags, **options))
        return daemons[-1]

    yield start
    for daemon in daemons:
        daemon.close()
    for daemon in daemons:
        sys.stdout.write(f"--- {daemon.log_file.name}\n{daemon.log[-20_000:]}")  # pytest shows it where a test failed
        assert daemon.may_show_tracebacks or "Traceback" not in daemon.log
