"""What an operator can get wrong: one clear line and exit code 1, or a clear line each time it is tried again."""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.conftest import StartCluster, StartDaemon
from tests.integration.daemon_process import HEADER, start_command
from tests.integration.live_cluster import LiveCluster, wait_until
from tests.unit.kube.certificates import authority, server_context

from kubesched.api.api_error import ApiError
from kubesched_sandbox.http import Faults


class Denials(Faults):
    """A server whose roles allow nothing of what is named here, as a verb or as a resource."""

    def __init__(self, *denied: str) -> None:
        super().__init__()
        self.denied = set(denied)

    @property
    def active(self) -> bool:
        return True

    def before(self, verb: str, resource: str) -> ApiError | None:
        if not self.denied & {verb, resource}:
            return None
        message = f'{resource} is forbidden: User "system:kube-scheduler" cannot {verb} resource "{resource}"'
        return ApiError(403, "Forbidden", message)


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        yield taken.getsockname()[1]


def _refusal(tmp_path: Path, *arguments: str, config: object = None) -> str:
    """All that a daemon says which must end by itself with exit code 1."""
    log = tmp_path / "refusal.log"
    if config is not None:
        file = tmp_path / "refused.yaml"
        file.write_text(config if isinstance(config, str) else json.dumps(config))
        arguments = ("--config", str(file), *arguments)
    process = start_command(arguments, log)
    try:
        assert process.wait(30) == 1
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        raise AssertionError(f"still running:\n{log.read_text()}") from None
    assert "Traceback" not in log.read_text()
    return log.read_text()


# What ends at once


def test_unknown_flag_is_refused_in_the_first_line(tmp_path: Path) -> None:
    said = _refusal(tmp_path, "--colour=blue").splitlines()
    assert said == ["Error: unknown flag: --colour", "All flags: kubesched run --help"]


def test_bad_value_of_a_flag_is_refused(tmp_path: Path) -> None:
    first = _refusal(tmp_path, "--secure-port=https").splitlines()[0]
    assert first.startswith('Error: invalid argument "https" for "--secure-port" flag')


def test_configuration_with_a_mistake_is_refused_with_its_place(tmp_path: Path) -> None:
    said = _refusal(tmp_path, config={**HEADER, "percentageOfNodesToScore": 300, "parallelism": 0}).splitlines()
    assert any("percentageOfNodesToScore" in line for line in said)
    assert any("parallelism" in line for line in said)
    assert all(line.startswith("Error: ") for line in said)


def test_configuration_that_is_not_there_is_refused(tmp_path: Path) -> None:
    assert _refusal(tmp_path, "--config", "/nowhere.yaml") == (
        "Error: --config: No such file or directory: /nowhere.yaml\n"
    )


def test_unknown_plugin_is_refused(tmp_path: Path, cluster: LiveCluster) -> None:
    profile = {"plugins": {"filter": {"enabled": [{"name": "Astrology"}]}}}
    connection = {"kubeconfig": str(cluster.kubeconfig())}
    (line,) = _refusal(
        tmp_path, "--secure-port=0", config={**HEADER, "clientConnection": connection, "profiles": [profile]}
    ).splitlines()
    assert line.startswith("Error: ")
    assert "Astrology" in line


def test_kubeconfig_that_is_not_there_is_refused(tmp_path: Path) -> None:
    config = {**HEADER, "clientConnection": {"kubeconfig": "/nowhere/kubeconfig"}}
    (line,) = _refusal(tmp_path, "--secure-port=0", config=config).splitlines()
    assert line.startswith("Error: ")
    assert "/nowhere/kubeconfig" in line


def test_recording_that_cannot_be_written_is_refused(tmp_path: Path, cluster: LiveCluster) -> None:
    config = {**HEADER, "clientConnection": {"kubeconfig": str(cluster.kubeconfig())}}
    last = _refusal(tmp_path, "--secure-port=0", "--record=/nowhere/lives", config=config).splitlines()[-1]
    assert last == "Error: --record: No such file or directory: /nowhere/lives"


def test_extender_whose_certificates_are_not_there_is_refused(tmp_path: Path, cluster: LiveCluster) -> None:
    extender = {"urlPrefix": "https://127.0.0.1:1", "filterVerb": "filter", "tlsConfig": {"caFile": "/nowhere/ca"}}
    connection = {"kubeconfig": str(cluster.kubeconfig())}
    config = {**HEADER, "clientConnection": connection, "extenders": [extender]}
    (line,) = _refusal(tmp_path, "--secure-port=0", config=config).splitlines()
    assert line.startswith("Error: tlsConfig: ")


def test_port_in_use_is_refused(tmp_path: Path, cluster: LiveCluster, taken_port: int) -> None:
    config = {**HEADER, "clientConnection": {"kubeconfig": str(cluster.kubeconfig())}}
    flags = ("--bind-address=127.0.0.1", f"--secure-port={taken_port}")
    (line,) = _refusal(tmp_path, *flags, config=config).splitlines()
    assert line.startswith("Error: failed to create listener: ")
    assert line.endswith("bind: address already in use")


def test_policy_of_a_config_map_that_is_not_there_is_refused(tmp_path: Path, cluster: LiveCluster) -> None:
    config = {**HEADER, "clientConnection": {"kubeconfig": str(cluster.kubeconfig())}}
    last = _refusal(tmp_path, "--secure-port=0", "--policy-configmap=policy", config=config).splitlines()[-1]
    assert last == 'Error: configmaps "policy" not found'


# What is tried again, because it may get better


def test_server_that_cannot_be_reached_is_tried_again_until_told_to_stop(
    cluster: LiveCluster, start_daemon: StartDaemon
) -> None:
    kubeconfig = cluster.kubeconfig()
    api = cluster.stop()
    daemon = start_daemon(cluster, kubeconfig=kubeconfig)
    line = daemon.wait_for_log("Error retrieving lease lock")
    assert f"dial tcp 127.0.0.1:{cluster.port}: connect: connection refused" in line
    cluster.start(api)
    daemon.wait_scheduling()


@pytest.mark.parametrize("flags", [(), ("--leader-elect=false",), ("--shadow",)], ids=["leading", "alone", "shadow"])
def test_daemon_without_a_server_ends_when_told_to(
    cluster: LiveCluster, start_daemon: StartDaemon, flags: tuple[str, ...]
) -> None:
    kubeconfig = cluster.kubeconfig()
    cluster.stop()
    daemon = start_daemon(cluster, *flags, kubeconfig=kubeconfig)
    daemon.wait_for_log("connection refused")
    assert daemon.stop() == 0


def test_token_that_is_not_known_is_named_as_the_cause(start_cluster: StartCluster, start_daemon: StartDaemon) -> None:
    cluster = start_cluster(tls=True, token="right")
    daemon = start_daemon(cluster, kubeconfig=cluster.kubeconfig(token="wrong"))
    assert 'err="Unauthorized"' in daemon.wait_for_log("Error retrieving lease lock")
    daemon.wait_for_log("Pod: failed to list or watch", "Unauthorized")
    assert daemon.stop() == 0


def test_authority_that_did_not_sign_the_server_is_named_as_the_cause(
    start_cluster: StartCluster, start_daemon: StartDaemon
) -> None:
    cluster = start_cluster(tls=True)
    daemon = start_daemon(cluster, kubeconfig=cluster.kubeconfig(authority=authority().certificate))
    assert "the server's certificate" in daemon.wait_for_log("Error retrieving lease lock")
    assert daemon.stop() == 0


def test_certificate_that_has_expired_is_named_as_the_cause(
    start_cluster: StartCluster, start_daemon: StartDaemon, tmp_path: Path
) -> None:
    expired = authority().issue("server", hosts=("127.0.0.1",), days=-1)
    cluster = start_cluster(context=server_context(tmp_path, expired))
    daemon = start_daemon(cluster, kubeconfig=cluster.kubeconfig(authority=authority().certificate))
    assert "certificate has expired" in daemon.wait_for_log("Error retrieving lease lock")
    assert daemon.stop() == 0


def test_binding_that_is_forbidden_is_told_on_the_pod_and_made_once_it_is_allowed(
    start_cluster: StartCluster, start_daemon: StartDaemon
) -> None:
    denials = Denials("pods/binding")
    cluster = start_cluster(faults=denials)
    cluster.add_node("node")
    cluster.add_pod("pod")
    daemon = start_daemon(cluster)
    condition = wait_until(lambda: cluster.condition("pod"), "a condition")
    assert condition["reason"] == "SchedulerError"
    assert 'cannot create resource "pods/binding"' in condition["message"]
    daemon.wait_for_log("Error scheduling pod", "forbidden")
    denials.denied.clear()
    wait_until(lambda: cluster.node_of("pod"), "the pod bound")


def test_kind_that_must_not_be_read_is_named_and_nothing_is_scheduled_until_it_may(
    start_cluster: StartCluster, start_daemon: StartDaemon
) -> None:
    denials = Denials("nodes")
    cluster = start_cluster(faults=denials)
    cluster.add_node("node")
    cluster.add_pod("pod")
    daemon = start_daemon(cluster)
    daemon.wait_for_log("Node: failed to list or watch", "nodes is forbidden")
    ready = wait_until(lambda: daemon.get("/readyz?verbose"), "an answer")
    assert ready.status == 500
    assert cluster.condition("pod") == {}
    denials.denied.clear()
    wait_until(lambda: cluster.node_of("pod"), "the pod bound")


def test_lease_that_must_not_be_written_is_named_as_the_cause(
    start_cluster: StartCluster, start_daemon: StartDaemon
) -> None:
    cluster = start_cluster(faults=Denials("leases"))
    daemon = start_daemon(cluster)
    assert "leases is forbidden" in daemon.wait_for_log("Error retrieving lease lock")
    assert daemon.stop() == 0


def test_events_and_conditions_that_must_not_be_written_do_not_keep_pods_from_nodes(
    start_cluster: StartCluster, start_daemon: StartDaemon
) -> None:
    cluster = start_cluster(faults=Denials("events", "pods/status"))
    cluster.add_node("node", cpu="1")
    cluster.add_pod("large", cpu="3")
    cluster.add_pods(3)
    daemon = start_daemon(cluster)
    wait_until(lambda: cluster.bound == 3, "all that fits bound")
    daemon.wait_for_log("Server rejected event", "forbidden")
    assert daemon.stop() == 0
