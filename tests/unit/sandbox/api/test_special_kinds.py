from __future__ import annotations

from typing import Any

import pytest
from tests.sandbox_server import fresh_api, refused

from kubesched.admission import REVIEWS
from kubesched.api.kinds import (
    CORE_EVENTS,
    CUSTOM_RESOURCE_DEFINITIONS,
    EVENTS,
    LEASES,
    REPLICA_SETS,
    Object,
    Resource,
)
from kubesched_sandbox.api import Api, PatchKind
from kubesched_sandbox.api.tokens import ADMIN, Tokens, review
from kubesched_sandbox.store import Store


def definition(*versions: str, scope: str = "Namespaced", **subresources: Any) -> Object:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    common = {"served": True, "subresources": subresources, "schema": schema}
    listed = [{"name": name, "storage": name == versions[0], **common} for name in versions]
    names = {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"]}
    spec = {"group": "x.io", "names": names, "scope": scope, "versions": listed}
    return {"metadata": {"name": "widgets.x.io"}, "spec": spec}


def with_widgets(*versions: str, **options: Any) -> tuple[Api, Resource]:
    api = fresh_api()
    api.create(CUSTOM_RESOURCE_DEFINITIONS, "", definition(*versions, **options))
    widgets = api.catalog.lookup("x.io", versions[0], "widgets")
    assert widgets is not None
    return api, widgets


def test_a_definition_is_served_at_once() -> None:
    api, widgets = with_widgets("v1", status={})
    status = api.get(CUSTOM_RESOURCE_DEFINITIONS, "", "widgets.x.io")["status"]
    assert {entry["type"]: entry["status"] for entry in status["conditions"]} == {
        "NamesAccepted": "True",
        "Established": "True",
    }
    assert status["acceptedNames"]["listKind"] == "WidgetList"
    assert (widgets.singular, widgets.short_names, widgets.subresources) == ("widget", ("wd",), ("status",))
    api.create(widgets, "default", {"metadata": {"name": "w"}, "anything": [1, {"goes": True}]})
    assert api.get(widgets, "default", "w")["anything"] == [1, {"goes": True}]


def test_every_version_of_a_custom_resource_shows_the_same_objects() -> None:
    api, first = with_widgets("v1", "v2")
    second = api.catalog.lookup("x.io", "v2", "widgets")
    assert second is not None
    api.create(second, "default", {"metadata": {"name": "w"}})
    assert api.get(first, "default", "w")["apiVersion"] == "x.io/v1"
    assert api.get(second, "default", "w")["apiVersion"] == "x.io/v2"


def test_a_definition_takes_its_objects_along() -> None:
    api, widgets = with_widgets("v1")
    api.create(widgets, "default", {"metadata": {"name": "w"}})
    api.delete(CUSTOM_RESOURCE_DEFINITIONS, "", "widgets.x.io")
    assert api.catalog.lookup("x.io", "v1", "widgets") is None
    api.create(CUSTOM_RESOURCE_DEFINITIONS, "", definition("v1"))
    assert api.select(widgets) == []


def test_an_equal_definition_changes_nothing() -> None:
    now = 1_700_000_000.0
    api = fresh_api(clock=lambda: now)
    made = api.create(CUSTOM_RESOURCE_DEFINITIONS, "", definition("v1"))
    now += 60
    assert api.update(CUSTOM_RESOURCE_DEFINITIONS, "", "widgets.x.io", made) == made


def test_a_definition_does_not_take_the_place_of_what_is_built_in() -> None:
    api = fresh_api()
    mine = definition("v1")
    mine["metadata"]["name"] = "leases.coordination.k8s.io"
    mine["metadata"]["annotations"] = {"api-approved.kubernetes.io": "unapproved, a test"}
    mine["spec"] |= {"group": "coordination.k8s.io", "names": {"plural": "leases", "kind": "Lease"}}
    api.create(LEASES, "default", {"metadata": {"name": "held"}, "spec": {}})
    api.create(CUSTOM_RESOURCE_DEFINITIONS, "", mine)
    api.delete(CUSTOM_RESOURCE_DEFINITIONS, "", "leases.coordination.k8s.io")
    assert api.catalog.lookup("coordination.k8s.io", "v1", "leases") is LEASES
    assert api.find(LEASES, "default", "held") is not None


def test_definitions_are_served_again_after_a_restart() -> None:
    store = Store()
    fresh_api(store).create(CUSTOM_RESOURCE_DEFINITIONS, "", definition("v1"))
    assert fresh_api(store).catalog.lookup("x.io", "v1", "widgets") is not None


@pytest.mark.parametrize("field", ["group", "names", "versions"])
def test_a_definition_that_cannot_be_served_is_invalid(field: str) -> None:
    lacking = definition("v1")
    del lacking["spec"][field]
    with refused(422, "Invalid"):
        fresh_api().create(CUSTOM_RESOURCE_DEFINITIONS, "", lacking)


def test_custom_resources_are_scaled_by_the_paths_of_their_definition() -> None:
    paths = {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size", "labelSelectorPath": ".status.sel"}
    api, widgets = with_widgets("v1", scale=paths)
    status = {"size": 1, "sel": "a=b"}
    api.create(widgets, "default", {"metadata": {"name": "w"}, "spec": {"size": 3}, "status": status})
    scale = api.scale(widgets, "default", "w")
    assert (scale["spec"], scale["status"]) == ({"replicas": 3}, {"replicas": 1, "selector": "a=b"})
    api.update_scale(widgets, "default", "w", {**scale, "spec": {"replicas": 5}})
    assert api.get(widgets, "default", "w")["spec"] == {"size": 5}


def with_replica_set() -> Api:
    api = fresh_api()
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}}
    selector = {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "c", "operator": "DoesNotExist"}]}
    spec = {"replicas": 2, "selector": selector, "template": template}
    api.create(REPLICA_SETS, "default", {"metadata": {"name": "rs"}, "spec": spec})
    return api


def test_the_scale_of_a_workload_shows_its_replicas_and_selector() -> None:
    api = with_replica_set()
    scale = api.scale(REPLICA_SETS, "default", "rs")
    assert scale["kind"] == "Scale"
    assert scale["spec"] == {"replicas": 2}
    assert scale["status"] == {"replicas": 0, "selector": "a=b,!c"}


def test_a_workload_is_scaled_by_update_and_by_patch() -> None:
    api = with_replica_set()
    scale = api.scale(REPLICA_SETS, "default", "rs")
    api.update_scale(REPLICA_SETS, "default", "rs", {**scale, "spec": {"replicas": 4}})
    assert api.get(REPLICA_SETS, "default", "rs")["spec"]["replicas"] == 4
    patch = {"spec": {"replicas": 0}}
    assert api.patch_scale(REPLICA_SETS, "default", "rs", patch, kind=PatchKind.MERGE)["spec"] in ({}, {"replicas": 0})
    assert api.get(REPLICA_SETS, "default", "rs")["spec"]["replicas"] == 0


def test_a_scale_from_an_old_state_or_below_zero_is_refused() -> None:
    api = with_replica_set()
    scale = api.scale(REPLICA_SETS, "default", "rs")
    api.patch(REPLICA_SETS, "default", "rs", {"metadata": {"labels": {"x": "y"}}})
    with refused(409, "Conflict"):
        api.update_scale(REPLICA_SETS, "default", "rs", scale)
    with refused(422, "Invalid"):
        api.update_scale(REPLICA_SETS, "default", "rs", {"spec": {"replicas": -1}})


def test_events_of_both_groups_are_the_same_events() -> None:
    api = fresh_api()
    newer = {
        "metadata": {"name": "e"},
        "regarding": {"kind": "Pod", "name": "p", "namespace": "default"},
        "note": "placed",
        "reason": "Scheduled",
        "type": "Normal",
        "action": "Binding",
        "eventTime": "2023-11-14T22:13:20.000000Z",
        "reportingController": "kubesched",
        "reportingInstance": "kubesched-1",
    }
    made = api.create(EVENTS, "default", newer)
    assert made["apiVersion"] == "events.k8s.io/v1"
    older = api.get(CORE_EVENTS, "default", "e")
    assert older["apiVersion"] == "v1"
    assert (older["involvedObject"]["name"], older["message"]) == ("p", "placed")
    assert older["reportingComponent"] == "kubesched"
    assert api.get(EVENTS, "default", "e")["note"] == "placed"
    assert len(api.select(EVENTS, fields="regarding.name=p")) == 1


def reviews(kind: str) -> Resource:
    return next(resource for resource in REVIEWS if resource.kind == kind)


def test_nobody_without_a_token_may_do_anything_where_one_is_asked_for() -> None:
    about = {"nonResourceAttributes": {"path": "/metrics", "verb": "get"}}
    for secret, user, allowed in (
        ("s", "system:anonymous", False),
        ("s", "jane", True),
        (None, "system:anonymous", True),
    ):
        asked = {"spec": {"user": user, **about}}
        answer = review(reviews("SubjectAccessReview"), asked, ADMIN, Tokens(fresh_api(), secret))
        assert answer["status"]["allowed"] is allowed


def test_everything_is_allowed_to_everybody() -> None:
    tokens = Tokens(fresh_api())
    attributes = {"resourceAttributes": {"verb": "delete", "resource": "nodes"}}
    for kind in ("SelfSubjectAccessReview", "SubjectAccessReview", "LocalSubjectAccessReview"):
        assert review(reviews(kind), {"spec": attributes}, ADMIN, tokens)["status"]["allowed"] is True
    assert review(reviews("SelfSubjectReview"), {}, ADMIN, tokens)["status"]["userInfo"]["username"] == ADMIN.name
    with refused(422, "Invalid"):
        review(reviews("SelfSubjectAccessReview"), {}, ADMIN, tokens)
