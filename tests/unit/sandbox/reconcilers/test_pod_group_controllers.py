"""Jobs that make pod groups, groups that stay while pods need them, and what goes with what."""

from __future__ import annotations

from typing import Any

import pytest
from tests.living_sandbox import LivingSandbox, template
from tests.unit.sandbox.reconcilers.test_job_controller import job

from kubesched.api.api_error import ApiError
from kubesched.api.kinds import (
    CONFIG_MAPS,
    CORE_EVENTS,
    JOBS,
    POD_GROUPS,
    POD_GROUPS_BY_VERSION,
    PODS,
    WORKLOADS,
    Object,
)
from kubesched.api.release import V1_37
from kubesched.controllers.job_groups import TEMPLATE_NAME, group_name, workload_name
from kubesched.controllers.pod_templates import owner_reference

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


# -- as v1.37 has it --------------------------------------------------------------------------------------------------


def newer() -> LivingSandbox:
    return LivingSandbox(job_groups=True, release=V1_37)


def workload_for(kind: str, group: str, name: str, /, **template: Any) -> Object:
    """A Workload that somebody made."""
    reference = {"apiGroup": group, "kind": kind, "name": name}
    templates = [{"schedulingPolicy": {"basic": {}}, **template}]
    return {"metadata": {"name": "given"}, "spec": {"controllerRef": reference, "podGroupTemplates": templates}}


def test_any_job_without_an_owner_makes_a_group_that_is_no_gang() -> None:
    cluster = newer()
    cluster.create(JOBS, job(seconds=600, parallelism=2, completions=4))
    cluster.run(1)
    workload, group = gang_of(cluster)
    assert group["spec"]["schedulingPolicy"] == {"basic": {}}
    assert groups_named(cluster) == {group["metadata"]["name"]}
    messages = {event["message"] for event in cluster.api.select(CORE_EVENTS, "default")}
    made = {f"Created {each['kind']} {each['metadata']['name']} for Job work" for each in (workload, group)}
    assert made <= messages


def test_indexed_job_of_v1_37_is_no_gang_unless_it_says_so() -> None:
    cluster = newer()
    cluster.create(JOBS, job(seconds=600, **GANG))
    cluster.run(1)
    assert gang_of(cluster)[1]["spec"]["schedulingPolicy"] == {"basic": {}}


def test_group_is_as_the_job_says() -> None:
    cluster = newer()
    topology = {"topology": [{"key": "rack"}]}
    said = {"schedulingPolicy": {"gang": {}}, "schedulingConstraints": topology, "disruptionMode": {"all": {}}}
    cluster.create(JOBS, job(seconds=600, parallelism=3, completions=3, scheduling=said))
    cluster.run(1)
    _, group = gang_of(cluster)
    shown = cluster.get(POD_GROUPS_BY_VERSION[0], group["metadata"]["name"])["spec"]
    assert shown.items() >= {**said, "schedulingPolicy": {"gang": {"minCount": 3}}}.items()


def test_gang_of_a_job_is_resized_with_it() -> None:
    cluster = newer()
    cluster.create(JOBS, job(seconds=600, **GANG, scheduling={"schedulingPolicy": {"gang": {}}}))
    cluster.run(1)
    cluster.api.patch(JOBS, "default", "work", {"spec": {"parallelism": 2, "completions": 2}})
    cluster.run(1)
    workload, group = gang_of(cluster)
    for spec in (group["spec"], workload["spec"]["podGroupTemplates"][0]):
        assert spec["schedulingPolicy"] == {"gang": {"minCount": 2}}


def test_gang_larger_than_the_parallelism_is_refused() -> None:
    with pytest.raises(ApiError, match=r"must not be greater than parallelism \(3\)"):
        newer().create(JOBS, job(**GANG, scheduling={"schedulingPolicy": {"gang": {"minCount": 4}}}))


def test_how_a_job_is_grouped_does_not_change() -> None:
    cluster = newer()
    cluster.create(JOBS, job(**GANG, scheduling={"schedulingPolicy": {"gang": {}}}))
    other: Object = {"schedulingPolicy": {"gang": None, "basic": {}}}
    with pytest.raises(ApiError, match=r"spec\.scheduling"):
        cluster.api.patch(JOBS, "default", "work", {"spec": {"scheduling": other}})


def test_workload_that_somebody_else_made_does_not_count_in_v1_37() -> None:
    cluster = newer()
    cluster.create(WORKLOADS, workload_for("Job", "batch", "work", name="mine"))
    cluster.create(JOBS, job(seconds=600, **GANG))
    cluster.run(1)
    assert len(cluster.api.select(WORKLOADS, "default")) == 2
    [group] = cluster.api.select(POD_GROUPS, "default")
    assert groups_named(cluster) == {group["metadata"]["name"]}


@pytest.mark.parametrize("annotations", [{}, {TEMPLATE_NAME: "workers"}], ids=["not delegated", "delegated"])
def test_job_with_an_owner_makes_a_group_only_of_the_template_that_its_owner_names(annotations: dict[str, str]) -> None:
    cluster = newer()
    owner = cluster.create(CONFIG_MAPS, {"metadata": {"name": "train"}})
    gang = {"gang": {"minCount": 2}}
    cluster.create(WORKLOADS, workload_for("ConfigMap", "", "train", name="workers", schedulingPolicy=gang))
    metadata = {"name": "work", "annotations": annotations, "ownerReferences": [owner_reference(CONFIG_MAPS, owner)]}
    cluster.create(JOBS, {**job(seconds=600, **GANG), "metadata": metadata})
    cluster.run(1)
    groups = cluster.api.select(POD_GROUPS, "default")
    assert [each["spec"]["schedulingPolicy"] for each in groups] == ([gang] if annotations else [])
    assert [[one["kind"] for one in each["metadata"]["ownerReferences"]] for each in groups] == [["Job"]] * len(groups)
    assert groups_named(cluster) == ({each["metadata"]["name"] for each in groups} or {""})


def test_v1_36_does_not_know_how_a_job_wants_to_be_grouped() -> None:
    cluster = LivingSandbox(job_groups=True)
    said: Object = {"schedulingPolicy": {"gang": {}}}
    assert "scheduling" not in cluster.create(JOBS, job(parallelism=3, completions=3, scheduling=said))["spec"]
    cluster.run(1)
    assert cluster.api.select(WORKLOADS, "default") == []


# -- in both ----------------------------------------------------------------------------------------------------------


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
