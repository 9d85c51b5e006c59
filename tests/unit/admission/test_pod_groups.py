"""PodGroups and Workloads: what is filled in, what is refused, and what stays as it is."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from tests.unit.admission.cluster import Cluster, refused
from tests.unit.admission.examples import example

from kubesched.admission import admit_create, admit_update
from kubesched.api.api_error import ApiError
from kubesched.api.kinds import POD_GROUPS, PODS, PRIORITY_CLASSES, WORKLOADS, Object

EMPTY = Cluster()


def group(**spec: Any) -> Object:
    made = copy.deepcopy(example(POD_GROUPS))
    made["spec"].update(spec)
    return made


def created(cluster: Cluster = EMPTY, **spec: Any) -> Object:
    return admit_create(POD_GROUPS, group(**spec), cluster)


def of_template(workload: str, template: str) -> dict[str, Any]:
    return {"podGroupTemplateRef": {"workload": {"workloadName": workload, "podGroupTemplateName": template}}}


def test_groups_are_disrupted_pod_by_pod_unless_they_say_otherwise() -> None:
    assert created()["spec"]["disruptionMode"] == "Pod"
    [template] = admit_create(WORKLOADS, example(WORKLOADS), EMPTY)["spec"]["podGroupTemplates"]
    assert "disruptionMode" not in template


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"schedulingPolicy": {}}, "spec.schedulingPolicy"),
        ({"schedulingPolicy": {"gang": {"minCount": 1}, "basic": {}}}, "spec.schedulingPolicy"),
        ({"schedulingPolicy": {"gang": {"minCount": 0}}}, "spec.schedulingPolicy.gang.minCount"),
        ({"schedulingConstraints": {"topology": [{"key": "a"}, {"key": "b"}]}}, "spec.schedulingConstraints.topology"),
        ({"disruptionMode": "Never"}, "spec.disruptionMode"),
        ({"priority": 1_000_000_001}, "spec.priority"),
        ({"resourceClaims": [{"name": f"c{i}", "resourceClaimName": "c"} for i in range(5)]}, "spec.resourceClaims"),
    ],
)
def test_what_a_group_cannot_be_is_refused(spec: dict[str, Any], field: str) -> None:
    assert [wrong for wrong, _ in refused(lambda: created(**spec))] == [field]


def test_a_group_does_not_change() -> None:
    old = created()
    new = copy.deepcopy(old)
    new["spec"]["schedulingPolicy"]["gang"]["minCount"] = 5
    assert [field for field, _ in refused(lambda: admit_update(POD_GROUPS, old, new, "", EMPTY))] == ["spec"]


def test_the_priority_of_a_group_is_that_of_its_class() -> None:
    cluster = EMPTY.having(PRIORITY_CLASSES, {"metadata": {"name": "high"}, "value": 7})
    assert created(cluster, priorityClassName="high")["spec"]["priority"] == 7
    with pytest.raises(ApiError, match=r"priority set in the pod group \(8\) must match the priority computed \(7\)"):
        created(cluster, priorityClassName="high", priority=8)
    with pytest.raises(ApiError, match="no PriorityClass with name low was found"):
        created(cluster, priorityClassName="low")


def test_a_group_of_a_template_needs_its_workload() -> None:
    workload = admit_create(WORKLOADS, example(WORKLOADS), EMPTY)
    name, namespace = workload["metadata"]["name"], workload["metadata"]["namespace"]
    cluster = EMPTY.having(WORKLOADS, workload)
    made = group(**of_template(name, "workers"))
    made["metadata"]["namespace"] = namespace
    assert admit_create(POD_GROUPS, made, cluster)
    with pytest.raises(ApiError, match=f'PodGroup rejected: Workload "{name}" not found'):
        admit_create(POD_GROUPS, made, EMPTY)
    other = copy.deepcopy(made)
    other["spec"] |= of_template(name, "others")
    with pytest.raises(ApiError, match=f'PodGroupTemplate "others" not found in Workload "{name}"'):
        admit_create(POD_GROUPS, other, cluster)
    leaving = copy.deepcopy(workload)
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    with pytest.raises(ApiError, match="is being deleted"):
        admit_create(POD_GROUPS, made, EMPTY.having(WORKLOADS, leaving))


def test_workload_has_templates_with_names_of_their_own() -> None:
    workload = copy.deepcopy(example(WORKLOADS))
    workload["spec"]["podGroupTemplates"] *= 2
    assert [field for field, _ in refused(lambda: admit_create(WORKLOADS, workload, EMPTY))] == [
        "spec.podGroupTemplates[1].name"
    ]


def test_pod_that_names_no_group_in_its_scheduling_group_is_refused() -> None:
    pod = copy.deepcopy(example(PODS))
    pod["spec"]["schedulingGroup"] = {}
    [(field, message)] = refused(lambda: admit_create(PODS, pod, EMPTY))
    assert field == "spec.schedulingGroup"
    assert "must specify one of: `podGroupName`" in message
