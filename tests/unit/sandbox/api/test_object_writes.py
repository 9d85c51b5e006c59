from __future__ import annotations

from typing import Any

import pytest
from tests.sandbox_server import fresh_api, refused

from kubesched.api.kinds import CONFIG_MAPS, DEPLOYMENTS, NAMESPACES, NODES, PODS, SERVICE_ACCOUNTS, Resource
from kubesched_sandbox.api import Api, ApiEvent, PatchKind, bootstrap


def pod(name: str = "", **metadata: Any) -> dict[str, Any]:
    named = {"name": name, **metadata} if name else metadata
    return {"metadata": named, "spec": {"containers": [{"name": "main", "image": "nginx"}]}}


def config(name: str, **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, **metadata}, "data": {"a": "1"}}


def names(api: Api, resource: Resource = PODS, namespace: str | None = None, **selectors: str) -> list[str]:
    return [obj["metadata"]["name"] for obj in api.select(resource, namespace, **selectors)]


def test_a_new_object_is_named_and_stamped() -> None:
    api = fresh_api(clock=lambda: 1_700_000_000)
    made = api.create(PODS, "default", pod("web", uid="mine", generation=7, deletionTimestamp="now"))
    metadata = made["metadata"]
    assert metadata["creationTimestamp"] == "2023-11-14T22:13:20Z"
    assert metadata["uid"] not in ("", "mine")
    assert metadata["namespace"] == "default"
    assert "deletionTimestamp" not in metadata
    assert api.get(PODS, "default", "web") == made


def test_generated_names_end_in_letters_of_kubernetes() -> None:
    api = fresh_api()
    made = [api.create(PODS, "default", pod(generateName="web-")) for _ in range(50)]
    generated = {obj["metadata"]["name"] for obj in made}
    assert len(generated) == 50
    assert all(name[:4] == "web-" and len(name) == 9 for name in generated)
    assert set("".join(name[4:] for name in generated)) <= set("bcdfghjklmnpqrstvwxz2456789")


def test_the_same_seed_generates_the_same_names() -> None:
    first, second = (fresh_api(seed=3).create(PODS, "default", pod(generateName="x-")) for _ in range(2))
    assert first["metadata"]["name"] == second["metadata"]["name"]


def test_a_name_is_needed() -> None:
    with refused(422, "Invalid") as refusal:
        fresh_api().create(PODS, "default", pod())
    assert "name or generateName is required" in refusal.value.message


def test_an_object_can_be_created_only_once() -> None:
    api = fresh_api()
    api.create(CONFIG_MAPS, "default", config("a"))
    with refused(409, "AlreadyExists") as refusal:
        api.create(CONFIG_MAPS, "default", config("a"))
    assert refusal.value.message == 'configmaps "a" already exists'


def test_a_namespace_must_exist() -> None:
    with refused(404, "NotFound") as refusal:
        fresh_api().create(CONFIG_MAPS, "nowhere", config("a"))
    assert refusal.value.message == 'namespaces "nowhere" not found'


def test_an_update_from_an_old_state_is_a_conflict() -> None:
    api = fresh_api()
    old = api.create(CONFIG_MAPS, "default", config("a"))
    api.update(CONFIG_MAPS, "default", "a", {**old, "data": {"a": "2"}})
    with refused(409, "Conflict") as refusal:
        api.update(CONFIG_MAPS, "default", "a", {**old, "data": {"a": "3"}})
    assert refusal.value.message == (
        'Operation cannot be fulfilled on configmaps "a": the object has been modified; '
        "please apply your changes to the latest version and try again"
    )


def test_an_update_without_a_resource_version_is_unconditional() -> None:
    api = fresh_api()
    api.create(CONFIG_MAPS, "default", config("a"))
    new = api.update(CONFIG_MAPS, "default", "a", {"metadata": {"name": "a"}, "data": {"b": "2"}})
    assert new["data"] == {"b": "2"}


def test_an_update_that_changes_nothing_makes_no_revision() -> None:
    api = fresh_api()
    old = api.create(CONFIG_MAPS, "default", config("a"))
    revision = api.store.revision
    assert api.update(CONFIG_MAPS, "default", "a", old) == old
    assert api.store.revision == revision


def test_an_update_for_another_object_of_that_name_is_a_conflict() -> None:
    api = fresh_api()
    old = api.create(CONFIG_MAPS, "default", config("a"))
    api.delete(CONFIG_MAPS, "default", "a")
    api.create(CONFIG_MAPS, "default", config("a"))
    changed = {**old, "metadata": {"name": "a", "uid": old["metadata"]["uid"]}}
    with refused(409, "Conflict") as refusal:
        api.update(CONFIG_MAPS, "default", "a", changed)
    assert "Precondition failed: UID in precondition" in refusal.value.message


def test_what_the_server_says_of_an_object_cannot_be_changed() -> None:
    api = fresh_api()
    old = api.create(CONFIG_MAPS, "default", config("a"))
    metadata = {**old["metadata"], "creationTimestamp": "2001-01-01T00:00:00Z", "deletionTimestamp": "x"}
    new = api.update(CONFIG_MAPS, "default", "a", {**old, "metadata": metadata, "data": {}})
    assert new["metadata"]["creationTimestamp"] == old["metadata"]["creationTimestamp"]
    assert "deletionTimestamp" not in new["metadata"]


def test_status_and_spec_are_written_apart() -> None:
    api = fresh_api()
    old = api.create(PODS, "default", pod("web"))
    both = {**old, "status": {"phase": "Running"}, "metadata": {**old["metadata"], "labels": {"a": "b"}}}
    assert api.update(PODS, "default", "web", both)["status"]["phase"] == "Pending"
    now = api.update(
        PODS, "default", "web", {**api.get(PODS, "default", "web"), "status": both["status"]}, subresource="status"
    )
    assert now["status"]["phase"] == "Running"


def test_dry_run_answers_and_stores_nothing() -> None:
    api = fresh_api()
    kept = api.create(CONFIG_MAPS, "default", config("a"))
    revision = api.store.revision
    assert api.create(CONFIG_MAPS, "default", config("b"), dry_run=True)["metadata"]["uid"]
    assert api.update(CONFIG_MAPS, "default", "a", {**kept, "data": {}}, dry_run=True).get("data") in ({}, None)
    api.patch(CONFIG_MAPS, "default", "a", {"data": {"x": "y"}}, dry_run=True)
    api.delete(CONFIG_MAPS, "default", "a", dry_run=True)
    assert api.store.revision == revision
    assert api.get(CONFIG_MAPS, "default", "a") == kept


@pytest.mark.parametrize(
    ("kind", "patch"),
    [
        (PatchKind.MERGE, {"metadata": {"labels": {"x": "y"}}}),
        (PatchKind.STRATEGIC, {"metadata": {"labels": {"x": "y"}}}),
        (PatchKind.JSON, [{"op": "add", "path": "/metadata/labels", "value": {"x": "y"}}]),
    ],
)
def test_every_patch_changes_what_it_says(kind: PatchKind, patch: Any) -> None:
    api = fresh_api()
    api.create(PODS, "default", pod("web"))
    assert api.patch(PODS, "default", "web", patch, kind=kind)["metadata"]["labels"] == {"x": "y"}


def test_an_apply_creates_what_is_not_there_and_keeps_what_others_own() -> None:
    api = fresh_api()
    applied = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": "1"}}
    made = api.patch(CONFIG_MAPS, "default", "a", applied, kind=PatchKind.APPLY, manager="me")
    assert made["metadata"]["managedFields"][0]["manager"] == "me"
    api.patch(CONFIG_MAPS, "default", "a", {"data": {"y": "2"}}, manager="you")
    again = {**applied, "data": {"z": "3"}}
    assert api.patch(CONFIG_MAPS, "default", "a", again, kind=PatchKind.APPLY, manager="me")["data"] == {
        "y": "2",
        "z": "3",
    }


def test_a_conflicting_apply_needs_force() -> None:
    api = fresh_api()
    applied = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": "1"}}
    api.patch(CONFIG_MAPS, "default", "a", applied, kind=PatchKind.APPLY, manager="me")
    mine = {**applied, "data": {"x": "2"}}
    with refused(409, "Conflict"):
        api.patch(CONFIG_MAPS, "default", "a", mine, kind=PatchKind.APPLY, manager="you")
    forced = api.patch(CONFIG_MAPS, "default", "a", mine, kind=PatchKind.APPLY, manager="you", force=True)
    assert forced["data"] == {"x": "2"}


def test_a_patch_may_insist_on_a_resource_version() -> None:
    api = fresh_api()
    api.create(CONFIG_MAPS, "default", config("a"))
    with refused(409, "Conflict"):
        api.patch(CONFIG_MAPS, "default", "a", {"metadata": {"resourceVersion": "1"}, "data": {"a": "2"}})


def test_subscribers_hear_of_what_is_there_and_of_what_comes() -> None:
    api, heard = fresh_api(), list[ApiEvent]()
    api.create(PODS, "default", pod("first"))
    stop = api.subscribe((PODS,), heard.append)
    api.create(PODS, "default", pod("second"))
    api.patch(PODS, "default", "second", {"metadata": {"labels": {"a": "b"}}})
    api.delete(PODS, "default", "second")
    stop()
    api.create(PODS, "default", pod("third"))
    told = [(event.type, event.object["metadata"]["name"]) for event in heard]
    assert told == [("ADDED", "first"), ("ADDED", "second"), ("MODIFIED", "second"), ("DELETED", "second")]
    assert heard[2].old == heard[1].object
    assert heard[3].object["metadata"]["resourceVersion"] == str(heard[3].revision)


def test_subscribers_may_leave_out_what_is_there() -> None:
    api, heard = fresh_api(), list[ApiEvent]()
    api.subscribe((NAMESPACES, NODES), heard.append, replay=False)
    api.create(NODES, "", {"metadata": {"name": "n"}})
    assert [event.resource for event in heard] == [NODES]


def test_every_namespace_gets_a_service_account() -> None:
    api = fresh_api()
    api.create(NAMESPACES, "", {"metadata": {"name": "shop"}})
    assert names(api, SERVICE_ACCOUNTS, "shop") == ["default"]


def test_a_second_bootstrap_changes_nothing() -> None:
    api = fresh_api()
    revision = api.store.revision
    bootstrap(api)
    assert api.store.revision == revision


def test_generation_counts_changes_of_the_spec() -> None:
    api = fresh_api()
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    made = api.create(DEPLOYMENTS, "default", {"metadata": {"name": "web"}, "spec": spec})
    assert made["metadata"]["generation"] == 1
    labelled = api.patch(DEPLOYMENTS, "default", "web", {"metadata": {"labels": labels}})
    assert labelled["metadata"]["generation"] == 1
    assert api.patch(DEPLOYMENTS, "default", "web", {"spec": {"replicas": 2}})["metadata"]["generation"] == 2


def test_names_come_in_order() -> None:
    api = fresh_api()
    for name in ("c", "a", "b"):
        api.create(CONFIG_MAPS, "kube-public", config(name))
    assert names(api, CONFIG_MAPS, "kube-public") == ["a", "b", "c"]
