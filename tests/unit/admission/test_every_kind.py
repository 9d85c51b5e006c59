"""What holds for every kind: examples pass, nothing but an ApiError comes out whatever goes in."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.admission.cluster import Cluster, refused
from tests.unit.admission.examples import ROCKETS, example

from kubesched.admission import REVIEWS, SERVED, admit_create, admit_update, deletion_grace
from kubesched.api.api_error import ApiError
from kubesched.api.kinds import PODS, Object, Resource

EMPTY = Cluster()
STORED = [resource for resource in (*SERVED, ROCKETS) if resource not in REVIEWS]
json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=5,
)


def answer(attempt: Callable[[], Object]) -> Object | int:
    """What a client gets: an object, or the code of an error."""
    try:
        return attempt()
    except ApiError as error:
        return error.code


def by_name(resource: Resource) -> str:
    return resource.qualified


@pytest.mark.parametrize("resource", STORED, ids=by_name)
def test_example_is_admitted_as_it_is(resource: Resource) -> None:
    asked = example(resource)
    made = admit_create(resource, asked, EMPTY)
    assert made["metadata"]["name"] == asked["metadata"]["name"]
    assert made is not asked


@pytest.mark.parametrize("resource", STORED, ids=by_name)
def test_writing_an_object_back_changes_nothing(resource: Resource) -> None:
    made = admit_create(resource, example(resource), EMPTY)
    assert admit_update(resource, made, copy.deepcopy(made), "", EMPTY) == made


@pytest.mark.parametrize("resource", STORED, ids=by_name)
def test_labels_may_change_and_are_no_new_generation(resource: Resource) -> None:
    made = admit_create(resource, example(resource), EMPTY)
    new = copy.deepcopy(made)
    new["metadata"]["labels"]["color"] = "blue"
    assert admit_update(resource, made, new, "", EMPTY) == new


@pytest.mark.parametrize("resource", STORED, ids=by_name)
def test_bad_label_is_refused(resource: Resource) -> None:
    bad = example(resource)
    bad["metadata"]["labels"] = {"a/b/c": "ok"}
    told = dict(refused(lambda: admit_create(resource, bad, EMPTY)))
    assert told["metadata.labels"].startswith(
        'Invalid value: "a/b/c": a valid label key must consist of alphanumeric characters'
    )


@st.composite
def mutated(draw: st.DrawFn) -> tuple[Resource, Object]:
    """An example in which something, somewhere, was replaced by any JSON."""
    resource = draw(st.sampled_from(STORED))
    obj = copy.deepcopy(example(resource))
    for _ in range(draw(st.integers(1, 3))):
        place: Any = obj
        while True:
            keys = sorted(place) if isinstance(place, dict) else list(range(len(place)))
            if not keys:
                break
            key = draw(st.sampled_from(keys))
            if not isinstance(place[key], dict | list) or draw(st.integers(0, 4)) == 0:
                place[key] = draw(json)
                break
            place = place[key]
    return resource, obj


@settings(max_examples=400, deadline=None)
@given(mutated())
def test_create_admits_or_refuses_whatever_is_sent(sent: tuple[Resource, Object]) -> None:
    resource, obj = sent
    made = answer(lambda: admit_create(resource, obj, EMPTY))
    if isinstance(made, dict):
        assert admit_update(resource, made, copy.deepcopy(made), "", EMPTY) == made
    else:
        assert made in (400, 403, 422)


@settings(max_examples=400, deadline=None)
@given(mutated(), st.sampled_from(["", "status", "resize", "ephemeralcontainers", "finalize", "scale"]))
def test_update_admits_or_refuses_whatever_is_sent(sent: tuple[Resource, Object], subresource: str) -> None:
    resource, obj = sent
    old = admit_create(resource, example(resource), EMPTY)
    made = answer(lambda: admit_update(resource, old, obj, subresource, EMPTY))
    if isinstance(made, dict):
        assert made["metadata"]["name"] == old["metadata"]["name"]
    else:
        assert made in (400, 403, 422)


@given(st.dictionaries(st.sampled_from(["metadata", "spec", "status", "data"]), json))
def test_any_json_is_admitted_or_refused(obj: Object) -> None:
    for resource in STORED:
        made = answer(partial(admit_create, resource, obj, EMPTY))
        assert isinstance(made, dict) or made in (400, 403, 422)


def test_label_or_annotation_that_is_null_is_empty_as_go_reads_it() -> None:
    metadata = {"name": "web", "namespace": "default", "labels": {"app": None}, "annotations": {"note": None}}
    admit_create(ROCKETS, {"metadata": metadata}, EMPTY)


def test_nesting_without_end_is_refused() -> None:
    deep: Object = {}
    for _ in range(10_000):
        deep = {"a": deep}
    with pytest.raises(ApiError, match="exceeded max depth"):
        admit_create(ROCKETS, deep, EMPTY)


def test_only_pods_are_given_time_to_end() -> None:
    assert all(deletion_grace(kind, example(kind), None) == 0 for kind in STORED if kind != PODS)


def test_spec_of_a_custom_resource_counts_generations_and_its_status_does_not() -> None:
    asked = {**example(ROCKETS), "spec": {"stage": 1, "note": None}, "status": {"flying": True}}
    made = admit_create(ROCKETS, asked, EMPTY)
    assert "status" not in made
    assert made["spec"] == {"stage": 1, "note": None}
    flying = admit_update(ROCKETS, made, {**made, "spec": {}, "status": {"flying": True}}, "status", EMPTY)
    assert (flying["spec"], flying["status"]) == (made["spec"], {"flying": True})
    assert flying["metadata"]["generation"] == 1
    assert admit_update(ROCKETS, made, {**made, "spec": {"stage": 2}}, "", EMPTY)["metadata"]["generation"] == 2


def test_custom_resource_without_a_status_subresource_is_written_as_a_whole() -> None:
    plain = Resource("example.com", "v1", "rockets", "Rocket", subresources=())
    asked = {**example(plain), "status": {"flying": True}}
    assert admit_create(plain, asked, EMPTY)["status"] == {"flying": True}
