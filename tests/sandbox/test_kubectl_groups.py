"""Pod groups as kubectl shows them: tables, descriptions, explanations, and what a Job makes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import yaml
from tests.running_sandbox import KUBECTL, Sandbox, running_sandbox

from kubesched.config.features import POD_GROUP_GATES, Features
from kubesched_sandbox.http import kubeconfig, write_kubeconfig

WAIT = "--timeout=100s"
CONTAINER = {"name": "main", "image": "train", "resources": {"requests": {"cpu": "1"}}}


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    if KUBECTL is None:
        pytest.skip("there is no kubectl on this PATH")
    home = tmp_path_factory.mktemp("groups")
    with running_sandbox(features=Features.of(dict.fromkeys(POD_GROUP_GATES, True))) as cluster:
        cluster.home, cluster.kubeconfig = home, home / "config"
        write_kubeconfig(cluster.kubeconfig, kubeconfig(cluster.server.url))
        yield cluster


def apply(sandbox: Sandbox, *documents: dict[str, object]) -> None:
    sandbox.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(documents))


def job(name: str, pods: int, cpu: str = "1", **annotations: str) -> dict[str, object]:
    container = {**CONTAINER, "resources": {"requests": {"cpu": cpu}}}
    pod = {"metadata": {"annotations": annotations}, "spec": {"restartPolicy": "Never", "containers": [container]}}
    spec = {"completionMode": "Indexed", "parallelism": pods, "completions": pods, "template": pod}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}


def cells(sandbox: Sandbox, kind: str, job_name: str) -> tuple[list[str], list[str]]:
    """The header, and the row of what that Job made."""
    header, *rows = sandbox.kubectl("get", kind, "-o", "wide").splitlines()
    [row] = [row.split() for row in rows if row.startswith(f"{job_name}-")]
    return header.split(), row


def test_job_makes_a_workload_and_a_gang_that_is_scheduled(sandbox: Sandbox) -> None:
    apply(sandbox, job("train", 3, **{"kubesched.io/duration": "1h"}))
    sandbox.kubectl("wait", "--for=condition=Ready", "pods", "-l", "job-name=train", WAIT)
    header, workload = cells(sandbox, "workloads", "train")
    assert header == ["NAME", "AGE"]
    header, group = cells(sandbox, "podgroups", "train")
    assert header == ["NAME", "POLICY", "WORKLOAD", "STATUS", "AGE"]
    assert group[1:4] == ["Gang", workload[0], "Scheduled"]
    described = sandbox.kubectl("describe", "podgroup", group[0])
    assert "Min Count:  3" in described
    assert "PodGroupScheduled" in described
    assert f"Workload Name:            {workload[0]}" in described
    described = sandbox.kubectl("describe", "workload", workload[0])
    assert "train-pgt-0" in described
    assert "WorkloadCreated" in sandbox.kubectl("describe", "job", "train")


def test_gang_that_does_not_fit_says_so(sandbox: Sandbox) -> None:
    apply(sandbox, job("large", 3, cpu="1k"))
    sandbox.kubectl("wait", "--for=create", "pods", "-l", "job-name=large", WAIT)
    _, group = cells(sandbox, "podgroups", "large")
    sandbox.kubectl("wait", "--for=condition=PodGroupScheduled=false", f"podgroup/{group[0]}", WAIT)
    assert cells(sandbox, "podgroups", "large")[1][3] == "Unschedulable"
    assert "pod group is unschedulable" in sandbox.kubectl("describe", "podgroup", group[0])
    sandbox.kubectl("delete", "job", "large", "--wait=false")
    sandbox.kubectl("wait", "--for=delete", f"podgroup/{group[0]}", WAIT)


def test_group_in_use_is_not_removed_before_its_pods(sandbox: Sandbox) -> None:
    group = {"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", "metadata": {"name": "held"}}
    pod = {"schedulingGroup": {"podGroupName": "held"}, "containers": [CONTAINER]}
    apply(
        sandbox,
        {**group, "spec": {"schedulingPolicy": {"basic": {}}}},
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "member"}, "spec": pod},
    )
    sandbox.kubectl("wait", "--for=condition=Ready", "pod/member", WAIT)
    sandbox.kubectl("delete", "podgroup", "held", "--wait=false")
    assert "held" in sandbox.kubectl("get", "podgroups", "-o", "name")
    sandbox.kubectl("delete", "pod", "member", WAIT)
    sandbox.kubectl("wait", "--for=delete", "podgroup/held", WAIT)


def test_fields_of_groups_are_explained(sandbox: Sandbox) -> None:
    told = sandbox.kubectl("explain", "podgroups.spec.schedulingPolicy")
    assert "gang" in told
    assert "basic" in told
    assert "podGroupTemplates" in sandbox.kubectl("explain", "workloads.spec")
    shown = sandbox.kubectl("api-resources", "--api-group=scheduling.k8s.io")
    assert {line.split()[0] for line in shown.splitlines()[1:]} == {"podgroups", "priorityclasses", "workloads"}


def test_mistakes_in_groups_are_refused(sandbox: Sandbox) -> None:
    group = {"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", "metadata": {"name": "wrong"}}
    wrong = yaml.safe_dump({**group, "spec": {"schedulingPolicy": {"gang": {"minCount": 0}}}})
    said = sandbox.kubectl("apply", "-f", "-", stdin=wrong, fails=True)
    assert "spec.schedulingPolicy.gang.minCount" in said
    other = yaml.safe_dump({**group, "apiVersion": "scheduling.k8s.io/v1beta1", "spec": {}})
    assert 'no matches for kind "PodGroup" in version "scheduling.k8s.io/v1beta1"' in sandbox.kubectl(
        "apply", "-f", "-", stdin=other, fails=True
    )
