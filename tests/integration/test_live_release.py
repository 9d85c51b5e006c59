"""Which release of Kubernetes a daemon follows, and where it says so."""

from __future__ import annotations

import json

from tests.integration.conftest import StartDaemon
from tests.integration.daemon_process import Daemon
from tests.integration.live_cluster import LiveCluster

OPEN = "--authorization-always-allow-paths=/livez,/readyz,/metrics,/configz,/statusz"


def _said(daemon: Daemon) -> tuple[str, str, dict[str, str]]:
    """The first line of the log, the emulation version, and what /configz has."""
    line = daemon.wait_for_log("Starting Kubernetes Scheduler")
    daemon.wait_scheduling()
    status = [line for line in daemon.get("/statusz").text.splitlines() if line.startswith("Emulation version: ")]
    return line, status[0].rpartition(" ")[2], json.loads(daemon.get("/configz").text)["kubesched"]


def test_the_release_of_the_api_server_is_followed_and_said_everywhere(
    cluster: LiveCluster, start_daemon: StartDaemon
) -> None:
    daemon = start_daemon(cluster, OPEN)
    line, emulated, shown = _said(daemon)
    assert 'release="1.36" releaseSource="server"' in line
    assert emulated == "1.36"
    assert shown == {"release": "1.36", "releaseSource": "server"}
    assert daemon.metric("kubesched_release_info", release="1.36", source="server") == 1


def test_a_flag_goes_before_the_api_server(cluster: LiveCluster, start_daemon: StartDaemon) -> None:
    daemon = start_daemon(cluster, OPEN, "--emulated-version=1.37")
    line, emulated, shown = _said(daemon)
    assert 'release="1.37" releaseSource="emulated-version"' in line
    assert emulated == "1.37"
    assert shown == {"release": "1.37", "releaseSource": "emulated-version"}


def test_a_gate_that_the_release_of_the_server_has_is_known(cluster: LiveCluster, start_daemon: StartDaemon) -> None:
    daemon = start_daemon(cluster, OPEN, "--feature-gates=GenericWorkload=true,GangScheduling=true")
    assert _said(daemon)[1] == "1.36"


def test_a_server_that_is_found_late_to_be_of_another_release_is_logged(
    cluster: LiveCluster, start_daemon: StartDaemon
) -> None:
    api = cluster.stop()
    daemon = start_daemon(cluster, OPEN)
    assert 'release="1.37" releaseSource="newest"' in daemon.wait_for_log("Starting Kubernetes Scheduler")
    assert daemon.get("/livez").status == 200
    cluster.start(api)
    line = daemon.wait_for_log("The API server is of another release than is followed")
    assert 'version="v1.36.4" release="1.37"' in line
    daemon.wait_scheduling()


def test_a_server_that_is_found_late_to_be_of_the_release_is_scheduled_for(
    cluster: LiveCluster, start_daemon: StartDaemon
) -> None:
    api = cluster.stop()
    daemon = start_daemon(cluster, OPEN, "--feature-gates=GenericWorkload=true,GangScheduling=true")
    daemon.wait_for_log("The API server cannot be asked for its version yet")
    cluster.start(api)
    daemon.wait_for_log("The API server said its version", "v1.36.4")
    daemon.wait_scheduling()
