from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubesched.api.api_error import ApiError
from kubesched.api.json_patch import json_patch
from kubesched.api.kinds import CONFIG_MAPS, DEPLOYMENTS, PODS, SERVICES, Resource
from kubesched_sandbox.patching import apply, track

NOW, LATER = "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"
WIDGETS = Resource("example.com", "v1", "widgets", "Widget")
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def config(resource: Resource = DEPLOYMENTS, **parts: Any) -> Any:
    metadata = {"name": "web", "namespace": "shop", **parts.pop("metadata", {})}
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, **parts}


def deployment(replicas: int | None = None, *containers: Any, **metadata: Any) -> Any:
    spec: dict[str, Any] = {} if replicas is None else {"replicas": replicas}
    if containers:
        spec["template"] = {"spec": {"containers": list(containers)}}
    return config(spec=spec, metadata=metadata)


def applied(
    live: Any,
    wanted: Any,
    manager: str = "alice",
    *,
    force: bool = False,
    resource: Resource = DEPLOYMENTS,
    subresource: str = "",
    now: str = NOW,
) -> Any:
    return apply(resource, live, wanted, manager=manager, force=force, now=now, subresource=subresource)


def refused(live: Any, wanted: Any, manager: str = "bob", resource: Resource = DEPLOYMENTS) -> ApiError:
    with pytest.raises(ApiError) as caught:
        applied(live, wanted, manager, resource=resource)
    return caught.value


def entries(obj: Any) -> dict[tuple[str, str], Any]:
    listed = obj["metadata"].get("managedFields", [])
    return {(entry["manager"], entry["operation"]): entry["fieldsV1"] for entry in listed}


def managers(obj: Any) -> set[str]:
    return {manager for manager, _ in entries(obj)}


def test_first_apply_creates_the_object_and_owns_what_it_says() -> None:
    made = applied(None, deployment(3, {"name": "web", "image": "nginx"}, labels={"app": "web"}))
    assert made["spec"]["replicas"] == 3
    (entry,) = made["metadata"]["managedFields"]
    assert (entry["manager"], entry["operation"], entry["apiVersion"]) == ("alice", "Apply", "apps/v1")
    assert (entry["time"], entry["fieldsType"]) == (NOW, "FieldsV1")
    containers: Any = {"f:containers": {'k:{"name":"web"}': {".": {}, "f:image": {}, "f:name": {}}}}
    assert entry["fieldsV1"] == {
        "f:metadata": {"f:labels": {"f:app": {}}},
        "f:spec": {"f:replicas": {}, "f:template": {"f:spec": containers}},
    }


def test_field_that_is_no_longer_applied_is_removed() -> None:
    live = applied(None, deployment(3, labels={"app": "web", "tier": "front"}))
    after = applied(live, deployment(None, labels={"app": "web"}))
    assert after["metadata"]["labels"] == {"app": "web"}
    assert "replicas" not in after.get("spec", {})


def test_field_that_another_manager_applied_too_stays() -> None:
    live = applied(applied(None, deployment(3)), deployment(3), "bob")
    after = applied(live, config())
    assert after["spec"]["replicas"] == 3
    assert managers(after) == {"bob"}


def test_defaults_that_nobody_owns_survive_an_apply() -> None:
    live = applied(None, deployment(3))
    live = {**live, "spec": {**live["spec"], "revisionHistoryLimit": 10}}
    assert applied(live, deployment(4))["spec"] == {"replicas": 4, "revisionHistoryLimit": 10}


def test_changing_what_another_manager_applied_is_a_conflict() -> None:
    error = refused(applied(None, deployment(3)), deployment(4))
    assert (error.code, error.reason) == (409, "Conflict")
    assert error.message == 'Apply failed with 1 conflict: conflict with "alice": .spec.replicas'
    assert error.details["causes"] == [
        {"reason": "FieldManagerConflict", "message": 'conflict with "alice"', "field": ".spec.replicas"}
    ]


def test_conflict_with_an_update_names_the_version_it_used() -> None:
    live = track(DEPLOYMENTS, None, deployment(3), manager="kubectl-client-side-apply", now=NOW)
    assert refused(live, deployment(4)).message == (
        'Apply failed with 1 conflict: conflict with "kubectl-client-side-apply" using apps/v1: .spec.replicas'
    )


def test_several_conflicts_are_listed_by_manager() -> None:
    live = applied(None, deployment(3, {"name": "web", "image": "nginx"}))
    live = applied(live, config(metadata={"labels": {"app": "web"}}), "carol")
    error = refused(live, deployment(4, {"name": "web", "image": "httpd"}, labels={"app": "shop"}))
    assert error.message == (
        'Apply failed with 3 conflicts: conflicts with "alice":\n'
        "- .spec.replicas\n"
        '- .spec.template.spec.containers[name="web"].image\n'
        'conflicts with "carol":\n'
        "- .metadata.labels.app"
    )


def test_conflict_with_a_subresource_says_so() -> None:
    live = applied(None, deployment(3))
    scaled = {**live, "spec": {**live["spec"], "replicas": 5}}
    live = track(DEPLOYMENTS, live, scaled, manager="hpa", subresource="scale", now=LATER)
    told = refused(live, deployment(3), "alice").message
    assert told.endswith('conflict with "hpa" with subresource "scale" using apps/v1: .spec.replicas')


def test_force_takes_the_field_over() -> None:
    after = applied(applied(None, deployment(3)), deployment(4), "bob", force=True)
    assert after["spec"]["replicas"] == 4
    assert managers(after) == {"bob"}


def test_equal_values_are_shared_without_a_conflict() -> None:
    after = applied(applied(None, deployment(3)), deployment(3), "bob")
    assert entries(after)["alice", "Apply"] == entries(after)["bob", "Apply"] == {"f:spec": {"f:replicas": {}}}


def test_containers_of_two_managers_live_side_by_side() -> None:
    live = applied(None, deployment(None, {"name": "web", "image": "nginx"}))
    both = applied(live, deployment(None, {"name": "sidecar", "image": "envoy"}), "mesh")
    names = [container["name"] for container in both["spec"]["template"]["spec"]["containers"]]
    assert names == ["web", "sidecar"]
    left = applied(both, config(spec={"replicas": 1}), "mesh")
    assert [container["name"] for container in left["spec"]["template"]["spec"]["containers"]] == ["web"]


def test_ports_without_a_protocol_are_tcp_ports() -> None:
    ports = [{"port": 53, "protocol": "UDP"}, {"port": 53}]
    live = applied(None, config(SERVICES, spec={"ports": ports}), resource=SERVICES)
    spelled_out = [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP", "name": "dns"}]
    after = applied(live, config(SERVICES, spec={"ports": spelled_out}), resource=SERVICES)
    assert after["spec"]["ports"] == spelled_out


def test_applied_order_of_items_wins_and_foreign_items_stay() -> None:
    live = applied(None, deployment(None, *({"name": name} for name in "abc")))
    live = applied(live, deployment(None, {"name": "x"}), "mesh")
    after = applied(live, deployment(None, *({"name": name} for name in "cab")))
    names = [container["name"] for container in after["spec"]["template"]["spec"]["containers"]]
    assert [name for name in names if name != "x"] == ["c", "a", "b"]
    assert "x" in names


def test_atomic_list_is_replaced_as_a_whole() -> None:
    live = applied(None, config(PODS, spec={"tolerations": [{"key": "a"}, {"key": "b"}]}), resource=PODS)
    after = applied(live, config(PODS, spec={"tolerations": [{"key": "c"}]}), resource=PODS)
    assert after["spec"]["tolerations"] == [{"key": "c"}]
    error = refused(live, config(PODS, spec={"tolerations": [{"key": "c"}]}), resource=PODS)
    assert error.message.endswith(".spec.tolerations")


def test_items_of_a_set_have_owners_of_their_own() -> None:
    live = applied(None, config(metadata={"finalizers": ["a/a"]}))
    both = applied(live, config(metadata={"finalizers": ["b/b"]}), "bob")
    assert both["metadata"]["finalizers"] == ["a/a", "b/b"]
    assert applied(both, config(), "bob")["metadata"]["finalizers"] == ["a/a"]


def test_custom_resources_have_separate_fields_and_atomic_lists() -> None:
    live = applied(None, config(WIDGETS, spec={"size": 1, "list": [{"a": 1}]}), resource=WIDGETS)
    both = applied(live, config(WIDGETS, spec={"colour": "red"}), "bob", resource=WIDGETS)
    assert both["spec"] == {"size": 1, "list": [{"a": 1}], "colour": "red"}
    error = refused(both, config(WIDGETS, spec={"list": [{"a": 1}, {"b": 2}]}), "bob", WIDGETS)
    assert error.message.endswith('conflict with "alice": .spec.list')


def test_status_is_applied_through_its_subresource_only() -> None:
    live = applied(None, {**deployment(3), "status": {"replicas": 9}})
    assert "status" not in live
    wanted = {**deployment(7), "status": {"replicas": 3}}
    after = applied(live, wanted, "controller", subresource="status")
    assert (after["spec"]["replicas"], after["status"]) == (3, {"replicas": 3})
    entry = next(entry for entry in after["metadata"]["managedFields"] if entry["manager"] == "controller")
    assert (entry["subresource"], entry["fieldsV1"]) == ("status", {"f:status": {"f:replicas": {}}})
    assert applied(after, deployment(4))["status"] == {"replicas": 3}


def test_what_was_there_before_the_first_apply_belongs_to_nobody_in_particular() -> None:
    live = {**deployment(3, labels={"app": "web"}), "status": {"replicas": 3}}
    assert refused(live, deployment(4)).message.endswith(
        'conflict with "before-first-apply" using apps/v1: .spec.replicas'
    )
    after = applied(live, deployment(4), force=True)
    assert managers(after) == {"alice", "before-first-apply"}
    assert "f:replicas" not in entries(after)["before-first-apply", "Update"].get("f:spec", {})
    assert applied(after, deployment())["metadata"]["labels"] == {"app": "web"}


def client_side_applied(replicas: int, **metadata: Any) -> Any:
    wanted = deployment(replicas, {"name": "web", "image": "nginx"}, **metadata)
    text = f'{{"apiVersion":"apps/v1","kind":"Deployment","spec":{{"replicas":{replicas}}}}}\n'
    wanted["metadata"]["annotations"] = {LAST_APPLIED: text}
    return wanted


@pytest.mark.parametrize("tracked", [True, False])
def test_kubectl_takes_over_what_it_applied_on_the_client_side(tracked: bool) -> None:
    live = client_side_applied(3)
    if tracked:
        live = track(DEPLOYMENTS, None, live, manager="kubectl-client-side-apply", now=NOW)
    after = applied(live, deployment(4, {"name": "web", "image": "nginx"}), "kubectl")
    assert after["spec"]["replicas"] == 4
    assert '"replicas":4' in after["metadata"]["annotations"][LAST_APPLIED]


def test_kubectl_does_not_take_over_what_somebody_changed_since() -> None:
    live = track(DEPLOYMENTS, None, client_side_applied(3), manager="kubectl-client-side-apply", now=NOW)
    scaled = {**live, "spec": {**live["spec"], "replicas": 5}}
    live = track(DEPLOYMENTS, live, scaled, manager="hpa", now=LATER)
    error = refused(live, deployment(4, {"name": "web", "image": "nginx"}), "kubectl")
    assert error.message.endswith('conflict with "hpa" using apps/v1: .spec.replicas')


def test_owner_can_be_renamed_by_a_patch_of_managed_fields_as_kubectl_does_it() -> None:
    live = track(DEPLOYMENTS, None, client_side_applied(3), manager="kubectl-client-side-apply", now=NOW)
    (entry,) = live["metadata"]["managedFields"]
    moved = {**entry, "manager": "kubectl", "operation": "Apply"}
    patched = json_patch(live, [{"op": "replace", "path": "/metadata/managedFields", "value": [moved]}])
    after = track(DEPLOYMENTS, live, patched, manager="kubectl", now=LATER)
    assert after["metadata"]["managedFields"] == [moved]
    assert "replicas" not in applied(after, deployment(None, {"name": "web"}), "kubectl")["spec"]


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        (
            {**deployment(3), "apiVersion": "apps/v2"},
            "Incorrect version specified in apply patch. Specified patch version: apps/v2, expected: apps/v1",
        ),
        (config(metadata={"managedFields": []}), "metadata.managedFields must be nil"),
        (
            config(spec={"foo": 1}),
            "failed to create typed patch object (shop/web; apps/v1, Kind=Deployment): "
            ".spec.foo: field not declared in schema",
        ),
        (
            deployment(None, {"name": "a"}, {"name": "a"}),
            "failed to create typed patch object (shop/web; apps/v1, Kind=Deployment): "
            '.spec.template.spec.containers: duplicate entries for key [name="a"]',
        ),
        ([], "error decoding YAML: an object is expected"),
    ],
)
def test_configuration_that_cannot_be_applied_is_a_bad_request(wanted: Any, words: str) -> None:
    error = refused(None, wanted)
    assert (error.code, error.message) == (400, words)


names = st.sampled_from("abcd")
values = st.sampled_from(["1", "2", "3"])
configurations = st.builds(
    lambda labels, data, replicas, containers: (
        {"metadata": {"labels": labels}, "replicas": replicas, "containers": containers, "data": data}
    ),
    st.dictionaries(names, values, max_size=3),
    st.dictionaries(names, values, max_size=3),
    st.none() | st.integers(0, 3),
    st.lists(
        st.builds(lambda name, image: {"name": name, "image": image}, names, values), unique_by=lambda c: c["name"]
    ),
)


def as_deployment(drawn: Any) -> Any:
    return deployment(drawn["replicas"], *drawn["containers"], labels=drawn["metadata"]["labels"])


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(configurations)
def test_applying_twice_changes_nothing(drawn: Any) -> None:
    once = applied(None, as_deployment(drawn))
    before = copy.deepcopy(once)
    assert applied(once, as_deployment(drawn), now=LATER) == once
    assert once == before


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(configurations, configurations)
def test_sole_manager_gets_exactly_what_it_applies(first: Any, second: Any) -> None:
    after = applied(applied(None, as_deployment(first)), as_deployment(second), now=LATER)
    fresh = applied(None, as_deployment(second))
    assert after["metadata"].get("labels", {}) == fresh["metadata"].get("labels", {})
    assert _containers(after) == _containers(fresh)
    assert after.get("spec", {}).get("replicas") == fresh.get("spec", {}).get("replicas")


def _containers(obj: Any) -> Any:
    return obj.get("spec", {}).get("template", {}).get("spec", {}).get("containers", [])


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(names, values), st.dictionaries(names, values))
def test_managers_of_different_keys_never_conflict(first: dict[str, str], second: dict[str, str]) -> None:
    ours = config(CONFIG_MAPS, data={f"a-{key}": value for key, value in first.items()})
    theirs = config(CONFIG_MAPS, data={f"b-{key}": value for key, value in second.items()})
    live = applied(applied(None, ours, resource=CONFIG_MAPS), theirs, "bob", resource=CONFIG_MAPS)
    assert live.get("data", {}) == {**ours["data"], **theirs["data"]}
    left = applied(live, config(CONFIG_MAPS), "bob", resource=CONFIG_MAPS)
    assert left.get("data", {}) == ours["data"]


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(configurations, configurations)
def test_force_always_wins_and_leaves_the_other_only_what_both_want(first: Any, second: Any) -> None:
    live = applied(applied(None, as_deployment(first)), as_deployment(second), "bob", force=True)
    again = applied(live, as_deployment(second), "bob", now=LATER)
    assert again == live
    for container in second["containers"]:
        assert container in _containers(live)
