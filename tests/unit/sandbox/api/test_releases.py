"""A sandbox is of a release: which versions of kinds it serves, and the same objects in either of them."""

from __future__ import annotations

import pytest
from tests.sandbox_server import fresh_api

from kubesched.api.api_error import ApiError
from kubesched.api.kinds import POD_GROUPS, WORKLOADS, Object
from kubesched.api.release import V1_36, V1_37, Release
from kubesched_sandbox.api import Api
from kubesched_sandbox.store import Store

TEMPLATE = {"name": "t", "schedulingPolicy": {"gang": {"minCount": 2}}}


def served(release: Release) -> set[str]:
    kinds = ("DeviceTaintRule", "PodGroup", "Workload")
    return {f"{one.api_version}/{one.kind}" for one in Api(Store(), release=release).catalog.all() if one.kind in kinds}


def test_versions_are_those_of_the_release() -> None:
    assert served(V1_36) == {"scheduling.k8s.io/v1alpha2/PodGroup", "scheduling.k8s.io/v1alpha2/Workload"}
    assert served(V1_37) == {
        "resource.k8s.io/v1/DeviceTaintRule",
        "scheduling.k8s.io/v1beta1/PodGroup",
        "scheduling.k8s.io/v1beta1/Workload",
    }


def newer() -> tuple[Api, Object]:
    """An API of v1.37 with a group that was made from a template."""
    api = fresh_api(release=V1_37)
    workloads = api.catalog.lookup("scheduling.k8s.io", "v1beta1", "workloads")
    groups = api.catalog.lookup("scheduling.k8s.io", "v1beta1", "podgroups")
    assert workloads is not None
    assert groups is not None
    workload = api.create(workloads, "default", {"metadata": {"name": "w"}, "spec": {"podGroupTemplates": [TEMPLATE]}})
    owner = {"apiVersion": workload["apiVersion"], "kind": "Workload", "name": "w", "uid": workload["metadata"]["uid"]}
    spec = {
        "workloadRef": {"workloadName": "w", "templateName": "t"},
        "schedulingPolicy": TEMPLATE["schedulingPolicy"],
        "disruptionMode": {"all": {}},
    }
    made = api.create(groups, "default", {"metadata": {"name": "g", "ownerReferences": [owner]}, "spec": spec})
    assert made["spec"] == spec
    assert api.get(groups, "default", "g") == made
    return api, made


def test_a_group_of_the_newer_version_is_stored_in_the_older_one() -> None:
    api, made = newer()
    stored = api.get(POD_GROUPS, "default", "g")
    assert stored["apiVersion"] == POD_GROUPS.api_version
    assert stored["spec"]["disruptionMode"] == "PodGroup"
    reference = {"workloadName": "w", "podGroupTemplateName": "t"}
    assert stored["spec"]["podGroupTemplateRef"] == {"workload": reference}
    assert stored["metadata"]["ownerReferences"][0]["apiVersion"] == WORKLOADS.api_version
    assert made["metadata"]["ownerReferences"][0]["apiVersion"] == "scheduling.k8s.io/v1beta1"


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"workloadRef": {"workloadName": "x", "templateName": "t"}}, 'Workload "x" not found'),
        ({"workloadRef": {"workloadName": "w", "templateName": "x"}}, 'PodGroupTemplate "x" not found'),
        ({"disruptionMode": {}}, "must specify exactly one of: `all`, `single`"),
        ({"disruptionMode": "Pod"}, "disruptionMode"),
    ],
)
def test_what_is_wrong_with_a_group_of_the_newer_version_is_said(spec: Object, why: str) -> None:
    api, _ = newer()
    groups = api.catalog.lookup("scheduling.k8s.io", "v1beta1", "podgroups")
    assert groups is not None
    wrong = {"metadata": {"name": "h"}, "spec": {"schedulingPolicy": {"basic": {}}, **spec}}
    with pytest.raises(ApiError) as error:
        api.create(groups, "default", wrong)
    assert why in error.value.message
