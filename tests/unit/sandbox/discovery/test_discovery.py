from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubesched.admission import SERVED
from kubesched.api.api_error import ApiError
from kubesched.api.kinds import Resource
from kubesched_sandbox.discovery import aggregated, api_group, api_group_list, api_resource_list, api_versions

WIDGETS = Resource(
    "example.com", "v1beta1", "widgets", "Widget", True, ("wd",), ("all", "toys"), subresources=("scale", "status")
)


def entries(group: str, version: str, resources: tuple[Resource, ...] = SERVED) -> dict[str, Any]:
    return {entry["name"]: entry for entry in api_resource_list(group, version, resources)["resources"]}


def test_core_group_is_v1_and_is_not_among_the_named_groups() -> None:
    assert api_versions()["versions"] == ["v1"]
    assert "" not in [group["name"] for group in api_group_list(SERVED)["groups"]]


def test_every_named_group_is_listed_once_with_a_preferred_version() -> None:
    groups = {group["name"]: group for group in api_group_list(SERVED)["groups"]}
    assert {"apps", "batch", "resource.k8s.io", "apiextensions.k8s.io"} <= groups.keys()
    assert groups["apps"]["preferredVersion"] == {"groupVersion": "apps/v1", "version": "v1"}


def test_versions_are_ordered_by_stability_then_number() -> None:
    made = [Resource("example.com", version, "widgets", "Widget") for version in ("v1alpha1", "v1beta2", "v2", "v1")]
    made.append(Resource("example.com", "v1beta10", "widgets", "Widget"))
    made.append(Resource("example.com", "foo", "widgets", "Widget"))
    versions = [version["version"] for version in api_group("example.com", made)["versions"]]
    assert versions == ["v2", "v1", "v1beta10", "v1beta2", "v1alpha1", "foo"]


@pytest.mark.parametrize("group", ["", "nowhere.example.com"])
def test_unknown_group_is_not_found(group: str) -> None:
    with pytest.raises(ApiError) as caught:
        api_group(group, SERVED)
    assert caught.value.code == 404


def test_unknown_version_of_a_known_group_is_not_found() -> None:
    with pytest.raises(ApiError) as caught:
        api_resource_list("apps", "v1beta1", SERVED)
    assert caught.value.code == 404


def test_pods_are_described_with_short_names_and_categories() -> None:
    pods = entries("", "v1")["pods"]
    assert (pods["kind"], pods["namespaced"], pods["shortNames"], pods["categories"]) == ("Pod", True, ["po"], ["all"])
    assert "deletecollection" in pods["verbs"]


@pytest.mark.parametrize(
    ("group", "name", "kind", "where", "verbs"),
    [
        ("", "pods/binding", "Binding", None, ["create"]),
        ("", "pods/eviction", "Eviction", ("policy", "v1"), ["create"]),
        ("", "pods/status", "Pod", None, ["get", "patch", "update"]),
        ("", "serviceaccounts/token", "TokenRequest", ("authentication.k8s.io", "v1"), ["create"]),
        ("", "replicationcontrollers/scale", "Scale", ("autoscaling", "v1"), ["get", "patch", "update"]),
        ("apps", "deployments/scale", "Scale", ("autoscaling", "v1"), ["get", "patch", "update"]),
    ],
)
def test_subresource_speaks_its_own_kind(
    group: str, name: str, kind: str, where: tuple[str, str] | None, verbs: list[str]
) -> None:
    entry = entries(group, "v1")[name]
    assert (entry["kind"], entry["verbs"], entry["singularName"]) == (kind, verbs, "")
    assert (("group" in entry) and (entry["group"], entry["version"])) == (where or False)


def test_custom_resource_is_discovered_like_any_other() -> None:
    found = entries("example.com", "v1beta1", (*SERVED, WIDGETS))
    assert found["widgets"]["categories"] == ["all", "toys"]
    assert found["widgets/scale"]["kind"] == "Scale"


def test_core_document_leaves_out_the_api_version_and_others_carry_it() -> None:
    assert "apiVersion" not in api_resource_list("", "v1", SERVED)
    assert api_resource_list("apps", "v1", SERVED)["apiVersion"] == "v1"


def test_aggregated_documents_split_core_from_the_rest() -> None:
    assert len(aggregated(True, SERVED)["items"]) == 1
    names = [item["metadata"]["name"] for item in aggregated(False, SERVED)["items"]]
    assert names == [group["name"] for group in api_group_list(SERVED)["groups"]]


def test_aggregated_versions_differ_in_name_only() -> None:
    newer, older = aggregated(False, SERVED), aggregated(False, SERVED, v2=False)
    assert (newer.pop("apiVersion"), older.pop("apiVersion")) == (
        "apidiscovery.k8s.io/v2",
        "apidiscovery.k8s.io/v2beta1",
    )
    assert newer == older


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sets(st.sampled_from(SERVED), min_size=1))
def test_both_forms_tell_the_same(chosen: set[Resource]) -> None:
    resources = [resource for resource in SERVED if resource in chosen]
    told = set()
    for core in (True, False):
        for item in aggregated(core, resources)["items"]:
            group = item["metadata"].get("name", "")
            for version in item["versions"]:
                for entry in version["resources"]:
                    told.add((group, version["version"], entry["resource"], entry["responseKind"]["kind"]))
                    for below in entry.get("subresources", []):
                        name = f"{entry['resource']}/{below['subresource']}"
                        told.add((group, version["version"], name, below["responseKind"]["kind"]))
    listed = set()
    for group, version in {(resource.group, resource.version) for resource in resources}:
        for entry in api_resource_list(group, version, resources)["resources"]:
            listed.add((group, version, entry["name"], entry["kind"]))
    assert told == listed
