"""`kubesched check`: what blocks a drain or an upgrade is found, on a live cluster and on files, with exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result
from tests.front_server import fronted
from tests.unit.ask.clusters import shop

from kubesched.cli.main import main
from kubesched_sandbox.http import kubeconfig, write_kubeconfig

CONTAINER = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}


def node(name: str, cpu: str = "4") -> dict[str, Any]:
    amounts = {"cpu": cpu, "memory": "8Gi", "pods": "110"}
    labels = {"kubernetes.io/hostname": name}
    status = {"capacity": amounts, "allocatable": amounts}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": status}


def replica_set(name: str, replicas: int, **spec: Any) -> dict[str, Any]:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [CONTAINER], **spec}}
    body = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": name}, "spec": body}


def pod(name: str, on: str, *, owner: str = "", **spec: Any) -> dict[str, Any]:
    owners = [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": owner, "controller": True}]
    metadata = {"name": name, "labels": {"app": owner}} | ({"ownerReferences": owners} if owner else {})
    body = {"containers": [CONTAINER], "nodeName": on, **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": body}


def budget(name: str, app: str, **spec: Any) -> dict[str, Any]:
    body = {"selector": {"matchLabels": {"app": app}}, **spec}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name}, "spec": body}


def run(tmp_path: Path, objects: list[dict[str, Any]], *arguments: str) -> Result:
    file = tmp_path / "cluster.yaml"
    file.write_text(yaml.safe_dump_all(objects))
    return CliRunner().invoke(main, ["check", *arguments, "-f", str(file)])


def findings(tmp_path: Path, objects: list[dict[str, Any]], *arguments: str) -> dict[str, tuple[str, str]]:
    """What is said by topic, with its severity."""
    found = json.loads(run(tmp_path, objects, *arguments, "-o", "json").stdout)
    return {each["topic"]: (each["severity"], f"{each['subject']}: {each['text']}") for each in found["findings"]}


HEALTHY = [
    node("a"),
    node("b"),
    replica_set("web", 2),
    pod("web-1", "a", owner="web"),
    pod("web-2", "b", owner="web"),
]


def test_a_drain_that_nothing_stands_against_is_ready(tmp_path: Path) -> None:
    done = run(tmp_path, [*HEALTHY, budget("web", "web", maxUnavailable=1)], "drain", "a")
    assert done.exit_code == 0
    assert "ready to drain 1 node with 1 pod to move" in done.stdout


@pytest.mark.parametrize(("extra", "topic", "text"), [
    ([budget("web", "web", minAvailable=2)], "budget", "default/web: allows no eviction: 2 have to be up and 2 are"),
    ([budget("one", "web", maxUnavailable=1), budget("two", "web", maxUnavailable=1)], "budget", "more than one"),
    ([pod("bare", "a")], "owner", "default/bare: no owner"),
    ([pod("other-1", "b", owner="other"), pod("other-2", "b", owner="other"), pod("other-3", "b", owner="other")],
     "room", "default/web-1: 1 pod would find no node: "),
])  # fmt: skip
def test_what_blocks_a_drain_is_named_and_the_exit_code_says_so(
    extra: list[dict[str, Any]], topic: str, text: str, tmp_path: Path
) -> None:
    severity, said = findings(tmp_path, [*HEALTHY, *extra], "drain", "a")[topic]
    assert severity == "blocks"
    assert text in said
    assert run(tmp_path, [*HEALTHY, *extra], "drain", "a").exit_code == 1


def test_what_is_at_risk_blocks_only_with_strict(tmp_path: Path) -> None:
    terms = [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["a", "b"]}]}]
    volume = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "disk"}, "spec": {
        "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "local": {"path": "/d"},
        "storageClassName": "s", "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
        "claimRef": {"name": "data", "namespace": "default"}}}  # fmt: skip
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data", "annotations": {
        "pv.kubernetes.io/bind-completed": "yes"}}, "spec": {"volumeName": "disk", "accessModes": ["ReadWriteOnce"],
        "storageClassName": "s", "resources": {"requests": {"storage": "1Gi"}}}}  # fmt: skip
    uses = [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]
    gated = replica_set("db", 1, schedulingGates=[{"name": "example.com/wait"}], volumes=uses)
    objects = [*HEALTHY, gated, pod("db-1", "a", owner="db", volumes=uses), volume, claim]
    found = findings(tmp_path, objects, "drain", "a")
    assert found["replicas"] == ("risk", "default/db-1: the only replica: there is an interruption")
    assert "data on its node alone (default/data)" in found["local-data"][1]
    assert found["gate"] == ("risk", "default/replicaset/db: new pods wait for their gates: example.com/wait")
    assert run(tmp_path, objects, "drain", "a", "--strict").exit_code == 1


def test_data_that_a_drain_would_delete_is_a_risk(tmp_path: Path) -> None:
    volumes = [{"name": "scratch", "emptyDir": {}}]
    found = findings(tmp_path, [*HEALTHY, pod("web-3", "a", owner="web", volumes=volumes)], "drain", "a")
    severity, said = found["local-data"]
    assert severity == "risk"
    assert said.startswith("default/web-3: data in an emptyDir or a hostPath stays behind")
    assert "local-data" not in findings(tmp_path, HEALTHY, "drain", "a")


def test_a_gate_of_a_workload_elsewhere_is_none_here(tmp_path: Path) -> None:
    elsewhere = replica_set("web", 1, schedulingGates=[{"name": "example.com/wait"}])
    elsewhere["metadata"]["namespace"] = "other"
    assert "gate" not in findings(tmp_path, [*HEALTHY, elsewhere], "drain", "a")


def test_an_upgrade_with_a_surge_finds_room_that_a_drain_does_not(tmp_path: Path) -> None:
    full = [node("a", "2"), replica_set("web", 2), pod("web-1", "a", owner="web"), pod("web-2", "a", owner="web")]
    assert "room" in findings(tmp_path, full, "drain", "a")
    assert "room" not in findings(tmp_path, full, "upgrade")
    done = run(tmp_path, full, "upgrade")
    assert done.exit_code == 0
    assert "ready to upgrade 1 node with 2 pods to move, in " in done.stdout


def test_nodes_come_in_the_order_of_what_stands_against_them(tmp_path: Path) -> None:
    objects = [node("c"), *HEALTHY, budget("web", "web", minAvailable=2)]
    ordered = json.loads(run(tmp_path, objects, "upgrade", "-o", "json").stdout)["nodes"]
    assert ordered == ["c", "a", "b"]


def test_a_live_cluster_is_checked_and_shown_as_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with fronted(shop()) as front:
        write_kubeconfig(tmp_path / "kubeconfig", kubeconfig(front.url))
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
        done = CliRunner().invoke(main, ["check", "drain", "node-0", "-o", "html"])
    assert done.exit_code == 1
    assert "Not ready to drain 1 node" in done.stdout
    assert "default/web-1" in done.stdout


def test_a_drain_without_nodes_is_refused() -> None:
    assert "name the nodes" in CliRunner().invoke(main, ["check", "drain", "-f", "x"]).output
