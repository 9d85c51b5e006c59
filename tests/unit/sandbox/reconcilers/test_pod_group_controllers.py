"""Jobs that make pod groups, groups that stay while pods need them, and what goes with what."""

from __future__ import annotations

from typing import Any

import pytest
from tests.living_sandbox import LivingSandbox, template
from tests.unit.sandbox.reconcilers.test_job_controller import job

from kubesched.api.api_error import ApiError
from kubesched.api.kinds import CORE_EVENTS, JOBS, POD_GROUPS, PODS, WORKLOADS, Object
from kubesched.controllers.jobs import group_name, workload_name

GANG: dict[str, Any] = {"completionMode": "Indexed", "parallelism": 3, "completions": 3}


def gang_of(cluster: LivingSandbox) -> tuple[Object, Object]:
    [workload], [group] = cluster.api.select(WORKLOADS, "default"), cluster.api.select(POD_GROUPS, "default")
    return workload, group


def groups_named(cluster: LivingSandbox) -> set[str]:
    return {(pod["spec"].get("schedulingGroup") or {}).get("podGroupName", "") for pod in cluster.pods()}


def test_indexed_job_makes_a_workload_a_group_and_pods_that_name_it() -> None:
    cluster = LivingSandbox(job_groups=True)
    cluster.create(JOBS, job(seconds=600, **GANG))
    cluster.run(1)
    work, (workload, group) = cluster.get(JOBS, "work"), gang_of(cluster)
    assert workload["metadata"]["name"] == workload_name(work)
    assert workload["spec"]["controllerRef"] == {"apiGroup": "batch", "kind": "Job", "name": "work"}
    assert group["metadata"]["name"] == group_name(workload["metadata"]["name"], "work-pgt-0")
    assert group["spec"]["schedulingPolicy"] == {"gang": {"minCount": 3}}
    owners = [(owner["kind"], owner.get("controller", False)) for owner in group["metadata"]["ownerReferences"]]
    assert owners == [("Job", True), ("Workload", False)]
    assert groups_named(cluster) == {group["metadata"]["name"]}
    assert len(cluster.pods()) == 3
    messages = [event["message"] for event in cluster.api.select(CORE_EVENTS, "default")]
    assert f"Created Workload {workload['metadata']['name']} for Job work" in messages


@pytest.mark.parametrize(
    "spec",
    [
        {"parallelism": 3, "completions": 3},
        {**GANG, "completions": 4},
        {**GANG, "parallelism": 1, "completions": 1},
        {**GANG, "template": template("work", restartPolicy="Never", schedulingGroup={"podGroupName": "mine"})},
    ],
    ids=["not indexed", "not all at once", "one pod", "grouped already"],
)
def test_other_jobs_make_no_group(spec: Object) -> None:
    cluster = LivingSandbox(job_groups=True)
    cluster.create(JOBS, {**job(), "spec": {**job()["spec"], **spec}})
    cluster.run(1)
    assert cluster.pods()
    assert cluster.api.select(WORKLOADS, "default") == []


def test_without_the_gate_no_job_makes_a_group() -> None:
    cluster = LivingSandbox()
    cluster.create(JOBS, job(**GANG))
    cluster.run(1)
    assert groups_named(cluster) == {""}
    assert cluster.api.select(POD_GROUPS, "default") == []


def test_job_with_a_workload_that_somebody_else_made_is_left_alone() -> None:
    cluster = LivingSandbox(job_groups=True)
    templates = [{"name": "mine", "schedulingPolicy": {"basic": {}}}]
    reference = {"apiGroup": "batch", "kind": "Job", "name": "work"}
    spec = {"controllerRef": reference, "podGroupTemplates": templates}
    cluster.create(WORKLOADS, {"metadata": {"name": "mine"}, "spec": spec})
    cluster.create(JOBS, job(seconds=600, **GANG))
    cluster.run(1)
    assert groups_named(cluster) == {""}
    assert [each["metadata"]["name"] for each in cluster.api.select(WORKLOADS, "default")] == ["mine"]


def test_pods_that_are_made_anew_join_the_same_group() -> None:
    cluster = LivingSandbox(job_groups=True)
    cluster.create(JOBS, job(seconds=600, **GANG))
    cluster.run(1)
    cluster.api.delete(PODS, "default", cluster.pods()[0]["metadata"]["name"], grace=0)
    cluster.run(60)
    _, group = gang_of(cluster)
    assert len(cluster.pods()) == 3
    assert groups_named(cluster) == {group["metadata"]["name"]}


def test_parallelism_of_a_gang_does_not_change() -> None:
    cluster = LivingSandbox(job_groups=True)
    cluster.create(JOBS, job(seconds=600, **GANG))
    cluster.run(1)
    _, group = gang_of(cluster)
    with pytest.raises(ApiError) as refused:
        cluster.api.patch(JOBS, "default", "work", {"spec": {"parallelism": 2, "completions": 2}})
    why = f'cannot change parallelism for a Job referencing gang-scheduled PodGroup "{group["metadata"]["name"]}"'
    assert (refused.value.reason, why in refused.value.message) == ("Forbidden", True)


def test_workload_and_group_go_with_their_job_and_the_group_after_its_pods() -> None:
    cluster = LivingSandbox(job_groups=True)
    cluster.create(JOBS, job(seconds=600, **GANG))
    cluster.run(1)
    cluster.api.delete(JOBS, "default", "work", propagation="Background")
    cluster.run(60)
    assert [cluster.api.select(each, "default") for each in (PODS, POD_GROUPS, WORKLOADS)] == [[], [], []]


def test_group_in_use_stays_until_its_last_pod_is_gone() -> None:
    cluster = LivingSandbox()
    cluster.create(POD_GROUPS, {"metadata": {"name": "g"}, "spec": {"schedulingPolicy": {"basic": {}}}})
    member = {**template("w")["spec"], "schedulingGroup": {"podGroupName": "g"}}
    for name in ("a", "b"):
        cluster.create(PODS, {"metadata": {"name": name}, "spec": member})
    cluster.run(1)
    cluster.api.delete(POD_GROUPS, "default", "g")
    cluster.run(1)
    assert cluster.get(POD_GROUPS, "g")["metadata"]["deletionTimestamp"]
    cluster.api.delete(PODS, "default", "a", grace=0)
    cluster.run(1)
    assert len(cluster.api.select(POD_GROUPS, "default")) == 1
    cluster.api.delete(PODS, "default", "b", grace=0)
    cluster.run(1)
    assert cluster.api.select(POD_GROUPS, "default") == []


def test_group_of_pods_that_have_ended_goes_at_once() -> None:
    cluster = LivingSandbox(job_groups=True)
    cluster.create(JOBS, job(seconds=5, **GANG))
    cluster.run(30)
    _, group = gang_of(cluster)
    cluster.api.delete(POD_GROUPS, "default", group["metadata"]["name"])
    cluster.run(1)
    assert cluster.api.select(POD_GROUPS, "default") == []
    assert {pod["status"]["phase"] for pod in cluster.pods()} == {"Succeeded"}
