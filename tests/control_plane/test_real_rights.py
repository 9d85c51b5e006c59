"""The roles that `kubesched rbac` prints suffice on a real API server, and its audit log shows no request beyond."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from bench.peer.control_plane import ADMIN, ASSETS, ControlPlane, MissingBinaryError, binary
from tests.control_plane.conftest import CONTROLLERS
from tests.control_plane.real_cluster import RealCluster
from tests.control_plane.test_real_volumes_and_devices import LATE, claim, local_volume, uses
from tests.integration.daemon_process import Daemon
from tests.integration.live_cluster import wait_until

from kubesched.api.kinds import BUILT_IN, PODS
from kubesched.ask.rights import FOLLOWED, cluster_rights, system_rights

NAMESPACE = "default"
POLICY = "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: Metadata}]\n"
CLAIM = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}}
Request = tuple[str, str, str]
UNUSED: set[Request] = {
    *(("", resource, "get") for resource in ("pods", "persistentvolumes", "persistentvolumeclaims")),
    ("resource.k8s.io", "resourceclaims/binding", "patch"),
    *(("resource.k8s.io", "resourceclaims", verb) for verb in ("get", "create", "update", "delete")),
    ("events.k8s.io", "events", "patch"),
    ("", "configmaps", "get"),
}
"""What a scheduler may do that this test does not have it do: it has no extended resources of devices, no
answer gets lost, no event comes twice; of a claim's binding the API server asks itself."""

SINCE_V1_37 = {"devicetaintrules"}
"""What an older server does not have, so that nobody asks it."""


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """One that keeps an audit log."""
    if not os.environ.get(ASSETS):
        pytest.skip(f"{ASSETS} is not set")
    try:
        binary("kube-controller-manager")
    except MissingBinaryError as error:
        pytest.skip(str(error))
    folder = tmp_path_factory.mktemp("audited")
    (folder / "policy.yaml").write_text(POLICY)
    flags = (f"--audit-policy-file={folder / 'policy.yaml'}", f"--audit-log-path={folder / 'audit.log'}")
    with ControlPlane(folder, controllers=CONTROLLERS, flags=flags) as plane:
        yield plane


class Account:
    """A service account that has the rights that the command prints for a step, and no others."""

    def __init__(self, step: str, cluster: RealCluster) -> None:
        self.name = f"{step}er"
        self._cluster = cluster
        cluster.create("v1", "ServiceAccount", self.name)
        command = [sys.executable, "-m", "kubesched", "rbac", step, "--service-account", f"{NAMESPACE}/{self.name}"]
        printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        for document in yaml.safe_load_all(printed):
            namespace = document["metadata"].get("namespace", "")
            resource = BUILT_IN[document["apiVersion"], document["kind"]]
            cluster.ask("POST", resource.path_of(namespace=namespace), document)
        path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{self.name}/token"
        request: dict[str, Any] = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        self.token = str(cluster.ask("POST", path, request)["status"]["token"])
        self.kubeconfig = cluster.plane.kubeconfig(self.token, self.name)

    def requests(self) -> dict[Request, set[int]]:
        """The answers to all requests about resources, by group, resource and verb."""
        found: dict[Request, set[int]] = {}
        for line in (self._cluster.plane.folder / "audit.log").read_text().splitlines():
            event = json.loads(line)
            if event["user"]["username"] != f"system:serviceaccount:{NAMESPACE}:{self.name}":
                continue
            if "objectRef" not in event or "resource" not in event["objectRef"]:
                continue
            about = event["objectRef"]
            resource = "/".join(filter(None, (about["resource"], about.get("subresource"))))
            codes = found.setdefault((about.get("apiGroup", ""), resource, event["verb"]), set())
            codes.add(event.get("responseStatus", {}).get("code", 0))
        return found


def granted(step: str) -> set[Request]:
    rights = (*cluster_rights(step), *system_rights(step))
    return {(right.group, right.resource, verb) for right in rights for verb in right.verbs}


def assert_exact(account: Account, step: str, *, unused: set[str]) -> None:
    """No request was refused, none was beyond what is granted, and all resources are read but for those named.

    Whether a resource is listed first, or its watch begins with all there is, is for the server to say.
    """
    requests = account.requests()
    assert [request for request, codes in requests.items() if 403 in codes] == []
    assert set(requests) <= granted(step)
    unread = {resource for _, resource, _ in granted(step)} - {resource for _, resource, _ in requests}
    assert unread <= unused | SINCE_V1_37


@pytest.fixture
def busy(plane: ControlPlane) -> Iterator[RealCluster]:
    cluster = RealCluster(plane)
    cluster.add_node("only", cpu="1", labels={"disk": "ssd"})
    yield cluster
    cluster.clear()


def start(tmp_path: Path, account: Account, *flags: str, **config: Any) -> Daemon:
    who_may_ask = (
        f"--authentication-kubeconfig={account.kubeconfig}",
        f"--authorization-kubeconfig={account.kubeconfig}",
    )
    return Daemon(tmp_path, account.kubeconfig, *who_may_ask, *flags, config=config, token=ADMIN, name=account.name)


def test_questions_get_by_with_the_role_to_ask(busy: RealCluster, tmp_path: Path) -> None:
    busy.add_pod("tall", cpu="9")
    account = Account("ask", busy)
    command = [sys.executable, "-m", "kubesched", "explain", "tall", "--kubeconfig", str(account.kubeconfig)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "Insufficient cpu" in done.stdout
    assert "cannot be read" not in done.stderr
    serving = [sys.executable, "-m", "kubesched", "serve", "--port", "0", "--kubeconfig", str(account.kubeconfig)]
    with subprocess.Popen(serving, stdout=subprocess.PIPE, text=True) as process:
        try:
            watches = {
                (group, resource, verb)
                for group, resource, verb in granted("ask")
                if verb == "watch" and group != "scheduling.k8s.io" and resource not in SINCE_V1_37
            }
            wait_until(lambda: watches <= set(account.requests()), "all watches open", within=60)
        finally:
            process.terminate()
    assert_exact(account, "ask", unused={"podgroups", "workloads", "pods/proxy"})
    assert {verb for _, _, verb in account.requests()} == {"list", "watch"}


def test_a_shadow_gets_by_with_its_role_and_writes_nothing(busy: RealCluster, tmp_path: Path) -> None:
    account = Account("shadow", busy)
    file = tmp_path / "shadow.json"
    daemon = start(tmp_path, account, "--shadow", "--shadow-file", str(file))
    try:
        daemon.wait_for_log("Watching, and binding nothing")
        busy.add_pod("agreed")
        busy.ask("POST", PODS.path_of(namespace=NAMESPACE, name="agreed", subresource="binding"), _binding("agreed"))
        wait_until(lambda: daemon.metric("kubesched_shadow_decisions_total") == 1, "a judgement")
        assert daemon.get("/metrics", token=account.token).status == 403  # it may not read its own: that was reviewed
        assert daemon.stop() == 0
    finally:
        daemon.close()
    assert json.loads(file.read_text())["kind"] == "ShadowLedger"
    assert_exact(account, "shadow", unused={"configmaps"})
    assert not {verb for _, _, verb in account.requests()} & {"patch", "update", "delete"}


def _binding(pod: str) -> dict[str, Any]:
    target = {"apiVersion": "v1", "kind": "Node", "name": "only"}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod}, "target": target}


def test_a_scheduler_gets_by_with_its_role(busy: RealCluster, tmp_path: Path) -> None:
    account = Account("run", busy)
    election = {"leaderElect": True, "resourceName": "kubesched", "resourceNamespace": "kube-system"}
    daemon = start(tmp_path, account, leaderElection=election)
    try:
        daemon.wait_scheduling()
        busy.add_pod("low", cpu="800m", priority=0)
        busy.wait_bound("low")
        busy.add_pod("high", cpu="800m", priority=1000)
        busy.wait_bound("high")
        busy.add_gpu_class()
        busy.offer_gpus("only", "gpu-0")
        busy.create("resource.k8s.io/v1", "ResourceClaim", "claimed", spec=CLAIM)
        busy.add_pod("device", resourceClaims=[{"name": "gpu", "resourceClaimName": "claimed"}])
        busy.wait_bound("device")
        wait_until(lambda: "Scheduled" in busy.reasons("device"), "its event")
        none, other = "kubernetes.io/no-provisioner", "example.com/disk"
        for name, provisioner in (("local", none), ("made", other)):
            storage = ("storage.k8s.io/v1", "StorageClass", name)
            busy.create(*storage, provisioner=provisioner, volumeBindingMode=LATE)
            claim(busy, name, name)
        local_volume(busy, "disk", "only", "local")
        busy.add_pod("database", cpu="20m", volumes=uses("local"))
        busy.wait_bound("database")  # its volume was written
        busy.add_pod("archive", cpu="20m", volumes=uses("made"))
        patched = ("", "persistentvolumeclaims", "patch")
        wait_until(lambda: patched in account.requests(), "the node for the provisioner written")
        assert daemon.get("/metrics", token=account.token).status == 403  # it may not read its own: that was reviewed
        assert daemon.stop() == 0
    finally:
        daemon.close()
    requests = account.requests()
    assert_exact(account, "run", unused={resource for _, resource, _ in UNUSED})
    assert {request for request in granted("run") if request[2] not in FOLLOWED} - set(requests) <= UNUSED
    written = {("", "pods/binding", "create"), ("", "pods/status", "patch"), ("", "pods", "delete")}
    written |= {("events.k8s.io", "events", "create"), ("coordination.k8s.io", "leases", "create")}
    assert written <= set(requests)
