from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubesched.api.api_error import ApiError
from kubesched.api.kinds import DEPLOYMENTS, NODES, POD_DISRUPTION_BUDGETS, PODS, SERVICES, Resource
from kubesched_sandbox.patching import strategic_merge


def pod(**spec: Any) -> Any:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": spec}


def container(name: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, **fields}


def containers_after(live: list[Any], patch: dict[str, Any]) -> Any:
    return strategic_merge(PODS, pod(containers=live), {"spec": patch})["spec"]["containers"]


def failure(patch: Any, live: Any = None) -> ApiError:
    with pytest.raises(ApiError) as caught:
        strategic_merge(PODS, live or pod(containers=[container("a")]), patch)
    return caught.value


def test_containers_are_merged_by_name_and_others_stay() -> None:
    live = [container("a", image="a:1", tty=True), container("b", image="b:1")]
    patched = containers_after(live, {"containers": [{"name": "a", "image": "a:2", "tty": None}]})
    assert patched == [container("a", image="a:2"), container("b", image="b:1")]


def test_new_item_goes_before_what_the_patch_does_not_mention() -> None:
    patched = containers_after([container("a")], {"containers": [container("new", stdin=None)]})
    assert patched == [container("new"), container("a")]


def test_item_is_deleted_by_directive() -> None:
    live = [container("a"), container("b")]
    assert containers_after(live, {"containers": [{"name": "a", "$patch": "delete"}]}) == [container("b")]


def test_list_is_replaced_by_directive() -> None:
    patched = containers_after([container("a"), container("b")], {"containers": [{"$patch": "replace"}, {"name": "c"}]})
    assert patched == [container("c")]


def test_set_element_order_brings_known_items_into_order() -> None:
    live = [container("a"), container("injected"), container("b")]
    order = [{"name": "b"}, {"name": "a"}]
    patched = containers_after(live, {"$setElementOrder/containers": order, "containers": [container("a", image="x")]})
    assert patched == [container("injected"), container("b"), container("a", image="x")]


def test_order_alone_reorders_and_an_injected_item_keeps_its_place() -> None:
    live = [container("injected"), container("a"), container("b")]
    patched = containers_after(live, {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]})
    assert [item["name"] for item in patched] == ["injected", "b", "a"]


def test_order_that_lacks_an_item_of_the_patch_is_refused() -> None:
    error = failure({"spec": {"$setElementOrder/containers": [{"name": "b"}], "containers": [{"name": "a"}]}})
    assert error.code == 400
    assert "doesn't match $setElementOrder list" in error.message


def test_ports_with_the_same_number_are_not_folded() -> None:
    ports = [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}]
    service = {"spec": {"ports": ports}}
    patched = strategic_merge(SERVICES, service, {"spec": {"ports": [{"port": 53, "name": "dns"}]}})
    assert patched["spec"]["ports"] == [{"port": 53, "protocol": "UDP", "name": "dns"}, {"port": 53, "protocol": "TCP"}]


def test_finalizers_are_a_set_from_which_items_can_be_taken() -> None:
    live = {"metadata": {"finalizers": ["a", "b"]}}
    assert strategic_merge(PODS, live, {"metadata": {"finalizers": ["c", "a"]}})["metadata"]["finalizers"] == [
        "c",
        "a",
        "b",
    ]
    patch = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["b", "z"]}}
    assert strategic_merge(PODS, live, patch)["metadata"]["finalizers"] == ["a"]


def test_lists_without_a_merge_strategy_are_replaced() -> None:
    live = pod(tolerations=[{"key": "a"}, {"key": "b"}])
    patched = strategic_merge(PODS, live, {"spec": {"tolerations": [{"key": "c"}]}})
    assert patched["spec"]["tolerations"] == [{"key": "c"}]


def test_conditions_of_a_node_are_merged_by_type() -> None:
    live = {"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "ok"}, {"type": "Disk"}]}}
    patch = {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}
    conditions = strategic_merge(NODES, live, patch)["status"]["conditions"]
    assert conditions == [{"type": "Ready", "status": "False", "reason": "ok"}, {"type": "Disk"}]


def test_retain_keys_clears_the_fields_it_does_not_name() -> None:
    live = {"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}}
    patch = {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}
    assert strategic_merge(DEPLOYMENTS, live, patch)["spec"]["strategy"] == {"type": "Recreate"}


def test_retain_keys_must_name_what_the_patch_sets() -> None:
    error = failure({"spec": {"$retainKeys": ["nodeName"], "hostname": "x"}})
    assert (error.code, error.message) == (400, "invalid patch format of retainKeys")


def test_map_is_replaced_or_emptied_by_directive() -> None:
    live = pod(nodeSelector={"a": "1"}, hostname="x")
    replaced = strategic_merge(PODS, live, {"spec": {"nodeSelector": {"$patch": "replace", "b": "2"}}})
    assert replaced["spec"]["nodeSelector"] == {"b": "2"}
    emptied = strategic_merge(PODS, live, {"spec": {"nodeSelector": {"$patch": "delete"}}})
    assert emptied["spec"]["nodeSelector"] == {}


def test_struct_with_the_replace_strategy_is_replaced() -> None:
    live = {"spec": {"selector": {"matchLabels": {"a": "1"}}}}
    patch = {"spec": {"selector": {"matchLabels": {"b": "2"}}}}
    assert strategic_merge(POD_DISRUPTION_BUDGETS, live, patch)["spec"]["selector"] == {"matchLabels": {"b": "2"}}


def test_value_that_meets_nothing_loses_its_directives_and_nulls() -> None:
    patch = {"spec": {"volumes": [{"name": "v", "$retainKeys": ["name"], "emptyDir": None}, {"$patch": "replace"}]}}
    assert strategic_merge(PODS, pod(), patch)["spec"]["volumes"] == [{"name": "v"}]


def test_item_without_its_merge_key_is_refused() -> None:
    error = failure({"spec": {"containers": [{"image": "x", "tty": True}]}})
    assert error.message == "map: map[image:x tty:true] does not contain declared merge key: name"


def test_unknown_directive_is_refused() -> None:
    assert failure({"$patch": "frob"}).message == "unknown patch type: frob in map: map[$patch:frob]"


def test_patch_that_is_no_object_is_a_bad_request() -> None:
    assert failure([]).code == 400


def test_custom_resources_cannot_be_merged_strategically() -> None:
    with pytest.raises(ApiError) as caught:
        strategic_merge(Resource("example.com", "v1", "widgets", "Widget"), {}, {})
    assert caught.value.code == 415
    assert "application/merge-patch+json" in caught.value.message


names = st.sampled_from("abcde")
images = st.sampled_from(["x", "y", "z"])
containers = st.lists(
    st.builds(lambda name, image: container(name, image=image), names, images),
    max_size=4,
    unique_by=lambda item: item["name"],
)
labels = st.dictionaries(names, images, max_size=3)


def difference(old: Any, new: Any) -> Any:
    """A patch as kubectl apply would make it from one pod to another."""
    items = {item["name"]: item for item in old["spec"]["containers"]}
    kept = {item["name"] for item in new["spec"]["containers"]}
    changed = [item for item in new["spec"]["containers"] if items.get(item["name"]) != item]
    gone = [{"name": name, "$patch": "delete"} for name in items if name not in kept]
    order = [{"name": item["name"]} for item in new["spec"]["containers"]]
    old_labels, new_labels = old["metadata"]["labels"], new["metadata"]["labels"]
    return {
        "metadata": {"labels": {**dict.fromkeys(old_labels.keys() - new_labels.keys()), **new_labels}},
        "spec": {"$setElementOrder/containers": order, "containers": [*changed, *gone]},
    }


def labelled(items: Any, marks: Any) -> Any:
    return {"metadata": {"name": "web", "labels": marks}, "spec": {"containers": items}}


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(containers, labels, containers, labels)
def test_difference_of_two_pods_leads_from_one_to_the_other(
    old_items: Any, old_labels: Any, new_items: Any, new_labels: Any
) -> None:
    old, new = labelled(old_items, old_labels), labelled(new_items, new_labels)
    before = copy.deepcopy(old)
    assert strategic_merge(PODS, old, difference(old, new)) == new
    assert old == before


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(containers, containers)
def test_merging_twice_is_merging_once(live: Any, patch: Any) -> None:
    once = strategic_merge(PODS, pod(containers=live), {"spec": {"containers": patch}})
    assert strategic_merge(PODS, once, {"spec": {"containers": patch}}) == once
