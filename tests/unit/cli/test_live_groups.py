"""Pod groups of a live cluster: read in the version that its server has, kept in snapshots, and explained."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.front_server import Front, fronted
from tests.sandbox_server import fresh_api

from kubesched.api.kinds import NODES, POD_GROUPS, PODS, WORKLOADS
from kubesched.ask.sources.snapshot import open_snapshot
from kubesched.cli.main import main
from kubesched_sandbox.api import Api
from kubesched_sandbox.http import kubeconfig, write_kubeconfig
from kubesched_sandbox.nodes import node_manifests

GATES = "--feature-gates=GenericWorkload=true,GangScheduling=true"
CONTAINER = {"name": "main", "image": "train", "resources": {"requests": {"cpu": "3"}}}
SERVED, BETA = "/apis/scheduling.k8s.io/v1alpha2", "/apis/scheduling.k8s.io/v1beta1"


def training() -> Api:
    """A gang of three, and nodes for two of its pods."""
    api = fresh_api()
    for node in node_manifests([{"metadata": {"name": name}, "status": {"capacity": {"cpu": "4"}}} for name in "ab"]):
        api.create(NODES, "", node)
    policy = {"gang": {"minCount": 3}}
    workload = {"podGroupTemplates": [{"name": "workers", "schedulingPolicy": policy}]}
    api.create(WORKLOADS, "default", {"metadata": {"name": "training"}, "spec": workload})
    reference = {"workload": {"workloadName": "training", "podGroupTemplateName": "workers"}}
    spec = {"schedulingPolicy": policy, "podGroupTemplateRef": reference}
    api.create(POD_GROUPS, "default", {"metadata": {"name": "train"}, "spec": spec})
    for i in range(3):
        pod = {"containers": [CONTAINER], "schedulingGroup": {"podGroupName": "train"}}
        api.create(PODS, "default", {"metadata": {"name": f"train-{i}"}, "spec": pod})
    return api


@pytest.fixture
def front(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Front]:
    monkeypatch.chdir(tmp_path)
    with fronted(training()) as front:
        write_kubeconfig(tmp_path / "kubeconfig", kubeconfig(front.url))
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
        yield front


def run(*arguments: str, code: int = 0) -> Result:
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == code, result.output
    return result


def group_of(*arguments: str) -> dict[str, object]:
    found: dict[str, object] = json.loads(run("explain", *arguments, GATES, "-o", "json").stdout)["podGroup"]
    return found


def test_group_of_a_live_cluster_is_explained(front: Front) -> None:
    found = group_of("podgroup/train")
    assert (found["group"], found["needed"], found["waiting"]) == ("default/train", 3, 3)
    assert found["outcome"] == "unschedulable"
    assert ("GET", BETA) in front.asked


def test_snapshot_has_groups_and_what_they_were_made_from(front: Front) -> None:
    run("snapshot", "-o", "cluster.json.gz")
    snapshot = open_snapshot("cluster.json.gz")
    assert snapshot is not None
    reading = snapshot.read()
    assert [(obj.name, obj.is_alpha, obj.workload_name) for obj in reading.objects["PodGroup"]] == [  # type: ignore[attr-defined]
        ("train", True, "training")
    ]
    assert [obj.name for obj in reading.objects["Workload"]] == ["training"]
    assert group_of("podgroup/train", "-f", "cluster.json.gz") == group_of("podgroup/train")


def test_anonymized_snapshot_decides_the_same_under_other_names(front: Front) -> None:
    run("snapshot", "-o", "hidden.json.gz", "--anonymize")
    snapshot = open_snapshot("hidden.json.gz")
    assert snapshot is not None
    reading = snapshot.read()
    [group], [workload] = reading.objects["PodGroup"], reading.objects["Workload"]
    assert "train" not in group.name
    assert group.workload_name == workload.name  # type: ignore[attr-defined]
    found = group_of(f"podgroup/{group.name}", "-n", group.namespace, "-f", "hidden.json.gz")
    plain = group_of("podgroup/train")
    same = ("outcome", "needed", "waiting")
    assert [found[key] for key in same] == [plain[key] for key in same]
    assert found["placements"][0]["fits"] == plain["placements"][0]["fits"] == 2  # type: ignore[index]


def test_server_without_groups_has_none(front: Front) -> None:
    front.unknown.add(SERVED)
    result = run("explain", "train-0", GATES)
    assert "cannot be read" not in result.stderr.replace("the pods of kube-system cannot", "")
    assert 'waiting for pods\'s pod group "train" to appear' in " ".join(result.stdout.split())
    [said] = run("explain", "podgroup/train", GATES, code=2).stderr.splitlines()[-1:]
    assert "there is no PodGroup default/train" in said


def test_groups_that_rbac_denies_are_named_with_the_consequence(front: Front) -> None:
    front.denied.add(f"{SERVED}/podgroups")
    said = run("place").stderr.splitlines()
    assert any(line.startswith("Warning: PodGroups cannot be read: pods of groups") for line in said)
