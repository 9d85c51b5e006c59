from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kubesched.admission import SERVED
from kubesched.api.api_error import ApiError
from kubesched.api.kinds import DEPLOYMENTS, Resource
from kubesched_sandbox.openapi import openapi_v2, openapi_v3, openapi_v3_index

WIDGETS = Resource("example.com", "v1", "widgets", "Widget")
EVERYTHING = (*SERVED, WIDGETS)
VERSIONS = sorted({(resource.group, resource.version) for resource in EVERYTHING})

DEPLOYMENT = "io.k8s.api.apps.v1.Deployment"


def references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for value in node.values():
            yield from references(value)
    elif isinstance(node, list):
        for value in node:
            yield from references(value)


def resolve(document: Any, reference: str) -> Any:
    node = document
    for step in reference.removeprefix("#/").split("/"):
        node = node[step]
    return node


def operations(document: Any) -> list[Any]:
    return [operation for path in document["paths"].values() for operation in path.values()]


def documents() -> list[Any]:
    return [openapi_v2(EVERYTHING), *(openapi_v3(group, version, EVERYTHING) for group, version in VERSIONS)]


@pytest.mark.parametrize("document", documents())
def test_every_reference_leads_somewhere(document: Any) -> None:
    for reference in set(references(document)):
        assert isinstance(resolve(document, reference), dict)


@pytest.mark.parametrize("document", documents())
def test_operation_ids_are_unique(document: Any) -> None:
    ids = [operation["operationId"] for operation in operations(document)]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("document", documents())
def test_writes_offer_field_validation_so_that_kubectl_leaves_it_to_the_server(document: Any) -> None:
    writes = [op for op in operations(document) if op["x-kubernetes-action"] in ("post", "put", "patch")]
    assert writes
    for operation in writes:
        assert "fieldValidation" in [parameter["name"] for parameter in operation["parameters"]]


@pytest.mark.parametrize(("group", "version"), VERSIONS)
def test_every_kind_has_a_schema_that_says_so(group: str, version: str) -> None:
    schemas = openapi_v3(group, version, EVERYTHING)["components"]["schemas"].values()
    named = [kind for schema in schemas for kind in schema.get("x-kubernetes-group-version-kind", [])]
    for resource in EVERYTHING:
        if (resource.group, resource.version) == (group, version):
            assert named.count({"group": group, "version": version, "kind": resource.kind}) == 1


def test_paths_are_those_of_the_api() -> None:
    paths = openapi_v3("apps", "v1", SERVED)["paths"]
    assert set(paths["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]) == {"get", "put", "patch", "delete"}
    assert set(paths["/apis/apps/v1/namespaces/{namespace}/deployments"]) == {"get", "post", "delete"}
    assert set(paths["/apis/apps/v1/deployments"]) == {"get"}
    scale = paths["/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale"]["get"]
    assert scale["x-kubernetes-group-version-kind"] == {"group": "autoscaling", "version": "v1", "kind": "Scale"}


def test_cluster_wide_resources_have_no_namespace_in_their_paths() -> None:
    paths = openapi_v3("", "v1", SERVED)["paths"]
    assert "/api/v1/nodes/{name}" in paths
    assert "/api/v1/namespaces/{namespace}/nodes" not in paths


def test_merge_facts_are_told() -> None:
    containers = openapi_v2(SERVED)["definitions"]["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"]
    assert containers["x-kubernetes-patch-strategy"] == "merge"
    assert containers["x-kubernetes-patch-merge-key"] == "name"
    assert (containers["x-kubernetes-list-type"], containers["x-kubernetes-list-map-keys"]) == ("map", ["name"])
    schemas = openapi_v3("", "v1", SERVED)["components"]["schemas"]
    assert schemas["io.k8s.api.core.v1.PodSpec"]["properties"]["volumes"]["x-kubernetes-patch-strategy"] == (
        "merge,retainKeys"
    )


def test_custom_resources_are_not_offered_strategic_merge() -> None:
    path = "/apis/example.com/v1/namespaces/{namespace}/widgets/{name}"
    patch = openapi_v3("example.com", "v1", EVERYTHING)["paths"][path]["patch"]
    assert "application/merge-patch+json" in patch["requestBody"]["content"]
    assert "application/strategic-merge-patch+json" not in patch["requestBody"]["content"]
    path = "/apis/apps/v1/namespaces/{namespace}/deployments/{name}"
    patch = openapi_v3("apps", "v1", EVERYTHING)["paths"][path]["patch"]
    assert "application/strategic-merge-patch+json" in patch["requestBody"]["content"]


def test_index_points_to_a_document_for_every_group_and_version() -> None:
    paths = openapi_v3_index(EVERYTHING)["paths"]
    assert set(paths) == {f"apis/{group}/{version}" if group else f"api/{version}" for group, version in VERSIONS}
    assert paths["api/v1"]["serverRelativeURL"].startswith("/openapi/v3/api/v1?hash=")


def test_hash_changes_with_what_is_served() -> None:
    before = openapi_v3_index([DEPLOYMENTS, WIDGETS])["paths"]
    gadgets = Resource("example.com", "v1", "gadgets", "Gadget")
    after = openapi_v3_index([DEPLOYMENTS, WIDGETS, gadgets])["paths"]
    assert before["apis/apps/v1"] == after["apis/apps/v1"]
    assert before["apis/example.com/v1"] != after["apis/example.com/v1"]


def test_unknown_version_is_not_found() -> None:
    with pytest.raises(ApiError) as caught:
        openapi_v3("apps", "v2", SERVED)
    assert caught.value.code == 404
