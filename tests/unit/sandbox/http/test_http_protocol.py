from __future__ import annotations

from typing import Any

import pytest
import yaml
from tests.sandbox_server import fresh_api
from tests.unit.sandbox.http.asking import CONFIG_MAPS, PODS, Asking, config, pod, with_server
from yarl import URL

from kubesched.api import kinds

MERGE = {"Content-Type": "application/merge-patch+json"}


def test_an_object_lives_from_creation_to_deletion() -> None:
    async def test(ask: Asking) -> None:
        made = await ask("POST", PODS, pod("web"))
        assert made.status == 201
        assert made.json["kind"] == "Pod"
        assert (await ask("GET", f"{PODS}/web")).raw == made.raw
        labelled = await ask("PATCH", f"{PODS}/web", {"metadata": {"labels": {"a": "b"}}}, headers=MERGE)
        assert labelled.json["metadata"]["labels"] == {"a": "b"}
        again = await ask("PUT", f"{PODS}/web", {**labelled.json, "metadata": {"name": "web", "labels": {"a": "c"}}})
        assert again.json["metadata"]["labels"] == {"a": "c"}
        assert (await ask("POST", PODS, pod("web"))).reason == "AlreadyExists"
        gone = await ask("DELETE", f"{PODS}/web")
        assert (gone.status, gone.json["kind"]) == (200, "Pod")
        assert (await ask("GET", f"{PODS}/web")).status == 404

    with_server(test)


def test_deleting_most_kinds_answers_with_a_status() -> None:
    async def test(ask: Asking) -> None:
        made = await ask("POST", CONFIG_MAPS, config("a"))
        gone = (await ask("DELETE", f"{CONFIG_MAPS}/a")).json
        assert (gone["kind"], gone["status"]) == ("Status", "Success")
        assert gone["details"] == {"name": "a", "kind": "configmaps", "uid": made.json["metadata"]["uid"]}

    with_server(test)


def test_a_pod_is_bound_by_its_subresource_and_by_the_collection_of_bindings() -> None:
    async def test(ask: Asking) -> None:
        for name in ("one", "two"):
            await ask("POST", PODS, pod(name))
        target = {"kind": "Node", "name": "n"}
        first = await ask("POST", f"{PODS}/one/binding", {"metadata": {"name": "one"}, "target": target})
        assert (first.status, first.json["status"]) == (201, "Success")
        path = "/api/v1/namespaces/default/bindings"
        assert (await ask("POST", path, {"metadata": {"name": "two"}, "target": target})).status == 201
        for name in ("one", "two"):
            assert (await ask("GET", f"{PODS}/{name}")).json["spec"]["nodeName"] == "n"
        again = await ask("POST", f"{PODS}/one/binding", {"metadata": {"name": "one"}, "target": target})
        assert (again.status, again.reason) == (409, "Conflict")

    with_server(test)


def test_a_collection_is_deleted_by_selector() -> None:
    async def test(ask: Asking) -> None:
        for name in ("a", "b", "c"):
            await ask("POST", CONFIG_MAPS, config(name, labels={"go": str(name != "b").lower()}))
        answer = await ask("DELETE", f"{CONFIG_MAPS}?labelSelector=go%3Dtrue")
        assert answer.names == ["a", "c"]
        assert (await ask("GET", CONFIG_MAPS)).names == ["b"]

    with_server(test)


def test_a_scale_is_read_written_and_patched() -> None:
    async def test(ask: Asking) -> None:
        path = "/apis/apps/v1/namespaces/default/deployments"
        template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}}
        spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
        await ask("POST", path, {"metadata": {"name": "web"}, "spec": spec})
        scale = (await ask("GET", f"{path}/web/scale")).json
        assert scale["spec"]["replicas"] == 1
        assert (await ask("PUT", f"{path}/web/scale", {**scale, "spec": {"replicas": 3}})).json["spec"]["replicas"] == 3
        patched = await ask("PATCH", f"{path}/web/scale", {"spec": {"replicas": 5}}, headers=MERGE)
        assert patched.json["spec"]["replicas"] == 5
        assert (await ask("GET", f"{path}/web")).json["spec"]["replicas"] == 5

    with_server(test)


@pytest.mark.parametrize(
    ("method", "path", "code", "reason"),
    [
        ("GET", "/api/v1/unknown", 404, "NotFound"),
        ("GET", "/apis/x.io/v1/things", 404, "NotFound"),
        ("GET", "/nothing/here", 404, "NotFound"),
        ("GET", f"{PODS}/absent", 404, "NotFound"),
        ("GET", f"{PODS}/absent/unknown", 404, "NotFound"),
        ("POST", "/api/v1/pods", 405, "MethodNotAllowed"),
        ("PUT", PODS, 405, "MethodNotAllowed"),
        ("GET", f"{PODS}/absent/binding", 405, "MethodNotAllowed"),
        ("GET", "/apis/authentication.k8s.io/v1/tokenreviews", 405, "MethodNotAllowed"),
        ("GET", f"{PODS}?labelSelector=a%3Db%3Dc", 400, "BadRequest"),
        ("GET", f"{PODS}?fieldSelector=spec.x%3D1", 400, "BadRequest"),
        ("GET", f"{PODS}?limit=x", 400, "BadRequest"),
        ("GET", f"{PODS}?limit=-1", 422, "Invalid"),
        ("GET", f"{PODS}?resourceVersion=abc", 400, "BadRequest"),
        ("GET", f"{PODS}?resourceVersionMatch=Exact", 422, "Invalid"),
        ("GET", f"{PODS}?continue=%2Anonsense", 400, "BadRequest"),
        ("GET", f"{PODS}?watch=maybe", 400, "BadRequest"),
        ("GET", f"{PODS}?watch=true&sendInitialEvents=true", 422, "Invalid"),
        ("DELETE", f"{PODS}?dryRun=Some", 400, "BadRequest"),
        ("GET", "/api/v1/namespaces/default/pods/%00", 400, "BadRequest"),
        ("GET", "/api/v1/namespaces/default/pods/%ff", 400, "BadRequest"),
    ],
)
def test_what_cannot_be_done_is_told_as_a_status(method: str, path: str, code: int, reason: str) -> None:
    async def test(ask: Asking) -> None:
        answer = await ask(method, URL(path, encoded=True))
        assert (answer.status, answer.reason, answer.json["code"]) == (code, reason, code)

    with_server(test)


@pytest.mark.parametrize(
    ("body", "content_type", "code", "reason"),
    [
        (b"{nonsense", "application/json", 400, "BadRequest"),
        (b"", "application/json", 400, "BadRequest"),
        (b"[]", "application/json", 400, "BadRequest"),
        (b"null", "application/json", 400, "BadRequest"),
        (b'"text"', "application/json", 400, "BadRequest"),
        (b'{"metadata":[]}', "application/json", 400, "BadRequest"),
        (b'{"metadata":{"name":"\xff"}}', "application/json", 400, "BadRequest"),
        (b'{"metadata":{"name":"a\\u0000b"}}', "application/json", 422, "Invalid"),
        (b'{"metadata":{"name":"\\ud800"}}', "application/json", 400, "BadRequest"),
        (b'{"a":' * 5000 + b"1" + b"}" * 5000, "application/json", 400, "BadRequest"),
        (b"[" * 100_000, "application/json", 400, "BadRequest"),
        (b'{"kind":"Pod"}', "application/json", 400, "BadRequest"),
        (b'{"apiVersion":"v2"}', "application/json", 400, "BadRequest"),
        (b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{}}', "application/json", 422, "Invalid"),
        (b"a: [", "application/yaml", 400, "BadRequest"),
        (b"", "application/yaml", 400, "BadRequest"),
        (b"{}", "text/plain", 415, "UnsupportedMediaType"),
        (b"{}", "application/vnd.kubernetes.protobuf", 400, "BadRequest"),
        (b"k8s\x00\xff\xff", "application/vnd.kubernetes.protobuf", 400, "BadRequest"),
        (b"{" + b" " * (3 * 1024 * 1024) + b"}", "application/json", 413, "RequestEntityTooLarge"),
    ],
)
def test_what_cannot_be_read_is_told_as_a_status(body: bytes, content_type: str, code: int, reason: str) -> None:
    async def test(ask: Asking) -> None:
        answer = await ask("POST", CONFIG_MAPS, body, headers={"Content-Type": content_type})
        assert (answer.status, answer.reason) == (code, reason), answer.raw[:300]

    with_server(test)


def test_a_patch_of_an_unknown_kind_names_those_that_there_are() -> None:
    async def test(ask: Asking) -> None:
        await ask("POST", CONFIG_MAPS, config("a"))
        answer = await ask("PATCH", f"{CONFIG_MAPS}/a", {}, headers={"Content-Type": "application/json"})
        assert (answer.status, answer.reason) == (415, "UnsupportedMediaType")
        assert "application/merge-patch+json" in answer.json["message"]

    with_server(test)


def test_unknown_fields_are_refused_warned_of_or_ignored() -> None:
    async def test(ask: Asking) -> None:
        strange = {**pod("web"), "spec": {**pod("web")["spec"], "colour": "red"}}
        strict = await ask("POST", f"{PODS}?fieldValidation=Strict", strange)
        assert (strict.status, strict.reason) == (400, "BadRequest")
        assert 'unknown field "spec.colour"' in strict.json["message"]
        ignored = await ask("POST", f"{PODS}?fieldValidation=Ignore&dryRun=All", strange)
        assert (ignored.status, ignored.headers.get("Warning")) == (201, None)
        warned = await ask("POST", f"{PODS}?dryRun=All", strange)
        assert warned.headers["Warning"] == r'299 - "unknown field \"spec.colour\""'
        twice = b'{"metadata":{"name":"x"},"data":{"a":"1","a":"2"}}'
        assert (await ask("POST", f"{CONFIG_MAPS}?fieldValidation=Strict", twice)).status == 400
        assert (await ask("POST", f"{PODS}?fieldValidation=Loud", strange)).status == 400

    with_server(test)


def test_yaml_is_read_and_written() -> None:
    async def test(ask: Asking) -> None:
        body = b"metadata:\n  name: a\ndata:\n  day: '2001-01-01'\n"
        made = await ask("POST", CONFIG_MAPS, body, headers={"Content-Type": "application/yaml"})
        assert made.status == 201
        shown = await ask("GET", f"{CONFIG_MAPS}/a", headers={"Accept": "application/yaml"})
        assert yaml.safe_load(shown.raw)["data"] == {"day": "2001-01-01"}
        assert b"\n  " in (await ask("GET", f"{CONFIG_MAPS}/a?pretty=true")).raw

    with_server(test)


@pytest.mark.parametrize(
    ("accept", "status"),
    [
        ("application/vnd.kubernetes.protobuf,application/json", 200),
        ("application/vnd.kubernetes.protobuf, */*;q=0.1", 200),
        ("image/png", 406),
        ("*/*", 200),
        (";;;q=x", 406),
    ],
)
def test_an_answer_is_json_where_the_client_can_read_it(accept: str, status: int) -> None:
    async def test(ask: Asking) -> None:
        answer = await ask("GET", CONFIG_MAPS, headers={"Accept": accept})
        assert answer.status == status
        assert answer.headers["Content-Type"] == "application/json"

    with_server(test)


def test_objects_are_shown_as_tables_and_as_metadata() -> None:
    async def test(ask: Asking) -> None:
        await ask("POST", PODS, pod("web"))
        table = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}
        for path in (PODS, f"{PODS}/web"):
            shown = (await ask("GET", path, headers=table)).json
            assert shown["kind"] == "Table"
            assert shown["rows"][0]["cells"][0] == "web"
        assert "object" not in (await ask("GET", f"{PODS}?includeObject=None", headers=table)).json["rows"][0]
        partial = {"Accept": "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"}
        shown = (await ask("GET", PODS, headers=partial)).json
        assert shown["kind"] == "PartialObjectMetadataList"
        assert set(shown["items"][0]) == {"kind", "apiVersion", "metadata"}

    with_server(test)


def test_configuration_of_the_scheduler_inside_is_shown_where_there_is_one() -> None:
    shown = {"kind": "KubeSchedulerConfiguration", "profiles": [{"schedulerName": "mine"}]}

    async def with_scheduler(ask: Asking) -> None:
        assert (await ask("GET", "/configz")).json == {"componentconfig": shown}

    async def without(ask: Asking) -> None:
        assert (await ask("GET", "/configz")).status == 404

    with_server(with_scheduler, scheduler_configuration=shown)
    with_server(without)


def test_discovery_health_and_version_answer() -> None:
    async def test(ask: Asking) -> None:
        assert (await ask("GET", "/version")).json["gitVersion"] == "v1.36.4"
        for path in ("/healthz", "/livez", "/readyz", "/readyz/ping"):
            assert (await ask("GET", path)).raw == b"ok"
        assert b"[+]ping ok" in (await ask("GET", "/readyz?verbose")).raw
        assert (await ask("GET", "/api")).json["kind"] == "APIVersions"
        assert (await ask("GET", "/apis")).json["kind"] == "APIGroupList"
        assert (await ask("GET", "/apis/apps")).json["name"] == "apps"
        assert (await ask("GET", "/api/v1")).json["kind"] == "APIResourceList"
        accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
        aggregated = await ask("GET", "/apis", headers={"Accept": accept})
        assert aggregated.json["kind"] == "APIGroupDiscoveryList"
        assert "as=APIGroupDiscoveryList" in aggregated.headers["Content-Type"]
        assert (await ask("GET", "/openapi/v2")).json["swagger"] == "2.0"
        paths = (await ask("GET", "/openapi/v3")).json["paths"]
        assert (await ask("GET", paths["apis/apps/v1"]["serverRelativeURL"])).status == 200
        assert (await ask("POST", "/version")).status == 405

    with_server(test)


def test_a_custom_resource_is_discovered_as_soon_as_it_is_defined() -> None:
    async def test(ask: Asking) -> None:
        assert (await ask("GET", "/apis/x.io/v1")).status == 404
        schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
        versions = [{"name": "v1", "served": True, "storage": True, "schema": schema}]
        spec: dict[str, Any] = {"group": "x.io", "scope": "Cluster", "versions": versions}
        spec["names"] = {"plural": "widgets", "kind": "Widget"}
        made = await ask(
            "POST",
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
            {"metadata": {"name": "widgets.x.io"}, "spec": spec},
        )
        assert made.status == 201
        assert (await ask("GET", "/apis/x.io/v1")).json["resources"][0]["name"] == "widgets"
        assert (await ask("POST", "/apis/x.io/v1/widgets", {"metadata": {"name": "w"}, "any": 1})).status == 201

    with_server(test)


def test_a_large_list_is_compressed_for_who_asks() -> None:
    api = fresh_api()
    for n in range(200):
        api.create(kinds.CONFIG_MAPS, "default", {"metadata": {"name": f"c{n}"}, "data": {"filler": "x" * 1000}})

    async def test(ask: Asking) -> None:
        async with ask.session.get(CONFIG_MAPS, headers={"Accept-Encoding": "gzip"}) as response:
            assert response.headers["Content-Encoding"] == "gzip"
            assert len((await response.json())["items"]) == 200
        plain = await ask("GET", CONFIG_MAPS, headers={"Accept-Encoding": "identity"})
        assert "Content-Encoding" not in plain.headers

    with_server(test, api)


def test_a_service_account_gets_a_token_that_the_server_knows() -> None:
    async def test(ask: Asking) -> None:
        path = "/api/v1/namespaces/default/serviceaccounts/default/token"
        token = (await ask("POST", path, {"spec": {}})).json["status"]["token"]
        who = await ask(
            "POST",
            "/apis/authentication.k8s.io/v1/selfsubjectreviews",
            {},
            headers={"Authorization": f"Bearer {token}"},
        )
        assert who.json["status"]["userInfo"]["username"] == "system:serviceaccount:default:default"

    with_server(test)
