from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubesched.api.kinds import CONFIG_MAPS, DEPLOYMENTS, PODS
from kubesched_sandbox.patching import apply, track
from kubesched_sandbox.patching.owners import from_fields_v1

NOW, LATER = "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"


def config_map(**data: str) -> Any:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": data}


def applied(**data: str) -> Any:
    return apply(CONFIG_MAPS, None, config_map(**data), manager="alice", force=False, now=NOW)


def updated(live: Any, manager: str = "bob", *, now: str = LATER, **data: str) -> Any:
    return track(CONFIG_MAPS, live, {**live, "data": data}, manager=manager, now=now)


def entries(obj: Any) -> dict[str, Any]:
    return {entry["manager"]: entry for entry in obj["metadata"].get("managedFields", [])}


def test_objects_that_were_never_applied_pass_untouched() -> None:
    old, new = config_map(a="1"), config_map(a="2")
    assert track(CONFIG_MAPS, old, new, manager="kubectl-edit", now=NOW) is new
    assert track(CONFIG_MAPS, None, new, manager="controller", now=NOW) is new


def test_what_kubectl_creates_is_tracked_from_the_start() -> None:
    made = track(CONFIG_MAPS, None, config_map(a="1"), manager="kubectl-create", now=NOW)
    assert made["metadata"]["managedFields"] == [
        {
            "manager": "kubectl-create",
            "operation": "Update",
            "apiVersion": "v1",
            "time": NOW,
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:data": {".": {}, "f:a": {}}},
        }
    ]


def test_update_owns_what_it_changes_and_takes_it_from_others() -> None:
    live = updated(applied(a="1", b="1"), a="2", b="1")
    owners = entries(live)
    assert owners["alice"]["fieldsV1"] == {"f:data": {"f:b": {}}}
    assert (owners["bob"]["operation"], owners["bob"]["fieldsV1"]) == ("Update", {"f:data": {"f:a": {}}})


def test_removing_a_field_takes_it_from_everybody() -> None:
    live = updated(applied(a="1", b="1"), b="1")
    assert entries(live).keys() == {"alice"}
    assert entries(live)["alice"]["fieldsV1"] == {"f:data": {"f:b": {}}}


def test_update_that_changes_nothing_leaves_everything_as_it_is() -> None:
    live = applied(a="1")
    assert updated(live, a="1") == live


def test_clients_that_do_not_send_managed_fields_do_not_lose_them() -> None:
    live = applied(a="1")
    assert entries(track(CONFIG_MAPS, live, config_map(a="1", c="3"), manager="bob", now=LATER)).keys() == {
        "alice",
        "bob",
    }


@pytest.mark.parametrize("given_entries", [[], [{}]])
def test_managed_fields_can_be_reset(given_entries: list[Any]) -> None:
    live = applied(a="1")
    asked = {**live, "metadata": {**live["metadata"], "managedFields": given_entries}}
    assert "managedFields" not in track(CONFIG_MAPS, live, asked, manager="bob", now=LATER)["metadata"]


def test_rubbish_in_managed_fields_is_ignored() -> None:
    live = applied(a="1")
    asked = {**live, "metadata": {**live["metadata"], "managedFields": [{"operation": "Frob"}]}}
    assert track(CONFIG_MAPS, live, asked, manager="bob", now=LATER) == live


def test_subresources_cannot_set_managed_fields_and_are_owners_of_their_own() -> None:
    wanted = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {"replicas": 1}}
    live = apply(DEPLOYMENTS, None, wanted, manager="alice", force=False, now=NOW)
    new = {**live, "metadata": {**live["metadata"], "managedFields": []}, "status": {"replicas": 1}}
    after = track(DEPLOYMENTS, live, new, manager="controller", subresource="status", now=LATER)
    owner = entries(after)["controller"]
    assert (owner["subresource"], owner["fieldsV1"]) == ("status", {"f:status": {".": {}, "f:replicas": {}}})
    assert "alice" in entries(after)


def test_conditions_are_owned_one_by_one() -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": {"hostname": "x"}}
    live = apply(PODS, None, pod, manager="alice", force=False, now=NOW)
    new = {**live, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    after = track(PODS, live, new, manager="kubelet", subresource="status", now=LATER)
    conditions = entries(after)["kubelet"]["fieldsV1"]["f:status"]["f:conditions"]
    assert conditions == {".": {}, 'k:{"type":"Ready"}': {".": {}, "f:status": {}, "f:type": {}}}


def test_old_updates_are_folded_into_one_entry() -> None:
    live = applied(z="0")
    data = {"z": "0"}
    for number in range(14):
        data[f"k{number}"] = "x"
        live = updated(live, f"writer-{number:02}", now=f"2026-01-01T01:{number:02}:00Z", **data)
    owners = entries(live)
    updates = [entry for entry in owners.values() if entry["operation"] == "Update"]
    assert len(updates) == 10
    folded = owners["ancient-changes"]["fieldsV1"]["f:data"]
    assert {"f:k0", "f:k1", "f:k2", "f:k3", "f:k4"} == folded.keys()


data = st.dictionaries(st.sampled_from("abc"), st.sampled_from("12"), max_size=3)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data, st.lists(st.tuples(st.sampled_from(["x", "y", "z"]), data), max_size=6))
def test_everything_that_is_there_has_an_owner_and_nobody_owns_what_is_not_there(
    first: dict[str, str], writes: list[tuple[str, dict[str, str]]]
) -> None:
    live = apply(CONFIG_MAPS, None, config_map(k="k", **first), manager="alice", force=False, now=NOW)
    for manager, keys in writes:
        live = updated(live, manager, k="k", **keys)
    owned = frozenset[Any]().union(*(from_fields_v1(entry["fieldsV1"]) for entry in entries(live).values()))
    assert {path[1] for path in owned if len(path) == 2} == {f"f:{key}" for key in live["data"]}
