"""Groups that Jobs make: the same objects from the real Job controller and from those of sandboxes and simulations."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from bench.peer.control_plane import ADMIN, ASSETS, ControlPlane, MissingBinaryError, binary
from click.testing import CliRunner
from tests.control_plane.conftest import StartKubesched
from tests.control_plane.group_plane import API, FLAG, GATES, POD_GROUPS, RELEASE, WORKLOADS
from tests.control_plane.real_cluster import RealCluster
from tests.control_plane.test_real_pod_groups import condition
from tests.integration.live_cluster import wait_until

from kubesched.admission.policy import PROTECTION
from kubesched.api.kinds import JOBS, PODS, Object
from kubesched.cli.main import main
from kubesched.controllers.job_groups import pod_group_of, workload_for, workload_of
from kubesched_sandbox.api.group_versions import newer_group, newer_workload

AS_GANG: Object = {"scheduling": {"schedulingPolicy": {"gang": {}}}} if RELEASE.job_scheduling else {}
CONTROLLERS = ("job-controller", "garbage-collector-controller", "podgroup-protection-controller")
POD = {
    "restartPolicy": "Never",
    "terminationGracePeriodSeconds": 0,
    "containers": [{"name": "main", "image": "train", "resources": {"requests": {"cpu": "1"}}}],
}


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    if not os.environ.get(ASSETS):
        pytest.skip(f"{ASSETS} is not set")
    try:
        binary("kube-controller-manager")
    except MissingBinaryError as error:
        pytest.skip(str(error))
    gates = {**GATES, "WorkloadWithJob": True}
    with ControlPlane(
        tmp_path_factory.mktemp("job-groups"), gates=gates, served=(API,), controllers=CONTROLLERS
    ) as plane:
        yield plane


@pytest.fixture
def cluster(plane: ControlPlane) -> Iterator[RealCluster]:
    cluster = RealCluster(plane)
    yield cluster
    for job in cluster.list(JOBS):
        delete(cluster, job["metadata"]["name"])
    cluster.clear()


def delete(cluster: RealCluster, job: str) -> None:
    """With all that it owns."""
    cluster.ask("DELETE", JOBS.path_of(namespace="default", name=job), {"propagationPolicy": "Background"})
    kinds = (PODS, POD_GROUPS, WORKLOADS)
    wait_until(lambda: not any(cluster.list(each) for each in kinds), "nothing left", within=60)


def made(cluster: RealCluster, count: int) -> tuple[Object, Object, list[Object]]:
    """The Workload, the PodGroup and the pods of the only Job, once they are there."""
    wait_until(lambda: len(cluster.list(PODS)) == count, "pods", within=60)
    [workload], [group] = cluster.list(WORKLOADS), cluster.list(POD_GROUPS)
    return workload, group, cluster.list(PODS)


def named_and_owned(obj: Object) -> tuple[str, list[Object]]:
    return obj["metadata"]["name"], obj["metadata"]["ownerReferences"]


def ours(job: Object, uid: str) -> tuple[Object, Object]:
    """What the sandbox would make, as it shows it in this release; the uid of the Workload is the server's."""
    workload = workload_for(job) if RELEASE.job_scheduling else workload_of(job, {"gang": {"minCount": 3}})
    group = pod_group_of(job, {**workload, "metadata": {**workload["metadata"], "uid": uid}})
    return (newer_workload(workload), newer_group(group)) if RELEASE.job_scheduling else (workload, group)


def test_job_makes_what_ours_would_make(cluster: RealCluster) -> None:
    spec = {"completionMode": "Indexed", "parallelism": 3, "completions": 3, "template": {"spec": POD}, **AS_GANG}
    cluster.create("batch/v1", "Job", "train", spec=spec)
    workload, group, pods = made(cluster, 3)
    job = cluster.get(JOBS, "train")
    our_workload, our_group = ours(job, workload["metadata"]["uid"])
    assert named_and_owned(workload) == named_and_owned(our_workload)
    assert workload["spec"]["controllerRef"] == our_workload["spec"]["controllerRef"]
    [template], [our_template] = (each["spec"]["podGroupTemplates"] for each in (workload, our_workload))
    assert {key: value for key, value in template.items() if value is not None} == our_template
    assert named_and_owned(group) == named_and_owned(our_group)
    assert group["spec"].items() >= our_group["spec"].items()
    assert group["metadata"]["finalizers"] == [PROTECTION]
    for pod in pods:
        assert pod["spec"]["schedulingGroup"] == {"podGroupName": group["metadata"]["name"]}
        assert [owner["kind"] for owner in pod["metadata"]["ownerReferences"]] == ["Job"]


def test_all_of_it_goes_with_the_job(cluster: RealCluster) -> None:
    spec = {"completionMode": "Indexed", "parallelism": 2, "completions": 2, "template": {"spec": POD}}
    cluster.create("batch/v1", "Job", "short", spec=spec)
    made(cluster, 2)
    delete(cluster, "short")


def test_gang_of_a_job_is_scheduled_and_explained(
    cluster: RealCluster, plane: ControlPlane, start_kubesched: StartKubesched, tmp_path: Path
) -> None:
    cluster.add_node("n0", cpu="2")
    start_kubesched(FLAG)
    spec = {"completionMode": "Indexed", "parallelism": 3, "completions": 3, "template": {"spec": POD}, **AS_GANG}
    cluster.create("batch/v1", "Job", "train", spec=spec)
    _, group, _ = made(cluster, 3)
    name = group["metadata"]["name"]
    assert condition(cluster, name)[0] == "False"
    file = str(plane.kubeconfig(ADMIN))
    for source in (("--kubeconfig", file), ("-f", str(tmp_path / "cluster.json.gz"))):
        run("snapshot", "--kubeconfig", file, "-o", str(tmp_path / "cluster.json.gz"))
        found = json.loads(run("explain", f"podgroup/{name}", *source, FLAG, "-o", "json"))["podGroup"]
        assert (found["needed"], found["waiting"], found["placements"][0]["fits"]) == (3, 3, 2)
    cluster.add_node("n1", cpu="1")
    assert len(cluster.wait_all_bound()) == 3


def run(*arguments: str) -> str:
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    return result.stdout
