"""Credentials that are replaced while the daemon runs, as kubelets replace the tokens of service accounts."""

from __future__ import annotations

import os
import urllib.error
from pathlib import Path

import yaml
from bench.peer.client import Access, fetch
from bench.peer.control_plane import ControlPlane
from tests.control_plane.conftest import StartKubesched
from tests.control_plane.real_cluster import RealCluster
from tests.integration.live_cluster import wait_until

from kubesched.api.kinds import SECRETS

ACCOUNT = {"name": "rotating", "namespace": "kube-system"}
ROLES = ("system:kube-scheduler", "system:volume-scheduler")


def add_account(cluster: RealCluster) -> None:
    """With the rights of kube-scheduler."""
    cluster.create("v1", "ServiceAccount", ACCOUNT["name"], metadata={"namespace": ACCOUNT["namespace"]})
    for role in ROLES:
        cluster.create(
            "rbac.authorization.k8s.io/v1",
            "ClusterRoleBinding",
            f"rotating-{role.rpartition(':')[2]}",
            roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            subjects=[{"kind": "ServiceAccount", **ACCOUNT}],
        )


def new_token(cluster: RealCluster, secret: str) -> str:
    """Good for as long as that Secret is there."""
    made = cluster.create("v1", "Secret", secret, metadata={"namespace": ACCOUNT["namespace"]})
    bound = {"apiVersion": "v1", "kind": "Secret", "name": secret, "uid": made["metadata"]["uid"]}
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"boundObjectRef": bound}}
    path = f"/api/v1/namespaces/{ACCOUNT['namespace']}/serviceaccounts/{ACCOUNT['name']}/token"
    token: str = cluster.ask("POST", path, request)["status"]["token"]
    return token


def is_refused(plane: ControlPlane, token: str) -> bool:
    """The API server believes a token that it has seen for ten seconds more."""
    try:
        fetch(Access(plane.access.url, token, plane.access.authority), "/api/v1/nodes")
    except urllib.error.HTTPError as error:
        return error.code == 401
    return False


def write(token: str, file: Path) -> None:
    """At once, as a kubelet does it."""
    fresh = file.with_suffix(".new")
    fresh.write_text(token)
    os.replace(fresh, file)


def test_pods_are_bound_with_the_token_that_replaced_one_no_longer_good(
    cluster: RealCluster, plane: ControlPlane, start_kubesched: StartKubesched, tmp_path: Path
) -> None:
    add_account(cluster)
    file, first = tmp_path / "token", new_token(cluster, "first")
    write(first, file)
    access = yaml.safe_load(plane.kubeconfig("unused", "rotating").read_text())
    access["users"][0]["user"] = {"tokenFile": str(file)}
    kubeconfig = tmp_path / "rotating.kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(access))
    daemon = start_kubesched(kubeconfig=kubeconfig)
    cluster.add_node("node-1")
    cluster.add_pod("before")
    cluster.wait_bound("before")

    write(new_token(cluster, "second"), file)
    cluster.ask("DELETE", SECRETS.path_of(namespace=ACCOUNT["namespace"], name="first"))
    wait_until(lambda: is_refused(plane, first), "the first token to be refused", within=60)
    cluster.add_pod("after")
    assert cluster.wait_bound("after") == "node-1"
    assert daemon.stop() == 0
