from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubesched.api.api_error import ApiError
from kubesched.api.json_patch import json_patch, same_json

scalars = st.none() | st.booleans() | st.integers(-5, 5) | st.text("ab/~", max_size=3)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab/~", max_size=2), inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(st.text("ab/~", max_size=2), values, max_size=4)


def pointer(*tokens: str) -> str:
    return "".join("/" + token.replace("~", "~0").replace("/", "~1") for token in tokens)


def why(caught: pytest.ExceptionInfo[ApiError]) -> str:
    return str(caught.value.details["causes"][0]["message"])


@pytest.mark.parametrize(
    ("document", "operation", "expected"),
    [
        ({"a": 1}, {"op": "add", "path": "/b", "value": 2}, {"a": 1, "b": 2}),
        ({"a": [1, 3]}, {"op": "add", "path": "/a/1", "value": 2}, {"a": [1, 2, 3]}),
        ({"a": [1]}, {"op": "add", "path": "/a/-", "value": 2}, {"a": [1, 2]}),
        ({"a": 1, "b": 2}, {"op": "remove", "path": "/b"}, {"a": 1}),
        ({"a": [1, 2]}, {"op": "remove", "path": "/a/0"}, {"a": [2]}),
        ({"a": {"b": 1}}, {"op": "replace", "path": "/a/b", "value": None}, {"a": {"b": None}}),
        ({"a": 1}, {"op": "replace", "path": "", "value": {"b": 2}}, {"b": 2}),
        ({"a": {"b": 1}}, {"op": "move", "from": "/a/b", "path": "/c"}, {"a": {}, "c": 1}),
        ({"a": [1, 2, 3]}, {"op": "move", "from": "/a/0", "path": "/a/2"}, {"a": [2, 3, 1]}),
        ({"a": {"b": 1}}, {"op": "copy", "from": "/a", "path": "/c"}, {"a": {"b": 1}, "c": {"b": 1}}),
        ({"a/b": 1, "m~n": 2}, {"op": "remove", "path": "/a~1b"}, {"m~n": 2}),
        ({"a": 1}, {"op": "test", "path": "/a", "value": 1}, {"a": 1}),
        ({"a": 1}, {"op": "test", "path": "/missing", "value": None}, {"a": 1}),
    ],
)
def test_operation_does_what_the_rfc_says(document: Any, operation: Any, expected: Any) -> None:
    before = copy.deepcopy(document)
    assert json_patch(document, [operation]) == expected
    assert document == before


@pytest.mark.parametrize(
    ("operation", "words"),
    [
        ({"op": "test", "path": "/a", "value": True}, "testing value /a failed: test failed"),
        (
            {"op": "remove", "path": "/z"},
            "error in remove for path: '/z': Unable to remove nonexistent key: z: missing value",
        ),
        (
            {"op": "replace", "path": "/z", "value": 1},
            "replace operation does not apply: doc is missing key: /z: missing value",
        ),
        (
            {"op": "add", "path": "/y/z", "value": 1},
            'add operation does not apply: doc is missing path: "/y/z": missing value',
        ),
        ({"op": "add", "path": "/l/9", "value": 1}, "Unable to access invalid index: 9: invalid index referenced"),
        ({"op": "add", "path": "/l/01", "value": 1}, "Unable to access invalid index: 01: invalid index referenced"),
        ({"op": "frob", "path": "/a"}, "Unexpected kind: frob"),
        ({"op": "move", "from": "/l", "path": "/l/0"}, "move operation does not apply: /l/0 is inside of /l"),
    ],
)
def test_operation_that_does_not_apply_is_invalid_and_says_why(operation: Any, words: str) -> None:
    with pytest.raises(ApiError) as caught:
        json_patch({"a": 1, "l": [0]}, [operation])
    assert (caught.value.code, caught.value.reason, why(caught)) == (422, "Invalid", words)


@pytest.mark.parametrize("patch", [{}, "x", [{"path": "/a"}], [{"op": 1, "path": "/a"}], [7]])
def test_patch_that_is_no_list_of_operations_is_a_bad_request(patch: Any) -> None:
    with pytest.raises(ApiError) as caught:
        json_patch({}, patch)
    assert caught.value.code == 400


def test_too_many_operations_are_refused() -> None:
    with pytest.raises(ApiError) as caught:
        json_patch({}, [{"op": "test", "path": "/a", "value": None}] * 10_001)
    assert caught.value.code == 413


def test_patch_that_leaves_no_object_is_invalid() -> None:
    with pytest.raises(ApiError):
        json_patch({}, [{"op": "replace", "path": "", "value": [1]}])


def test_true_is_not_one() -> None:
    assert same_json({"a": [1, 2.0]}, {"a": [1.0, 2]})
    assert not same_json({"a": [True]}, {"a": [1]})


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(objects, st.text("ab/~", min_size=1, max_size=2), values)
def test_what_was_added_is_found_and_removing_it_takes_it_back(document: Any, key: str, value: Any) -> None:
    path = pointer(key)
    added = json_patch(document, [{"op": "add", "path": path, "value": value}])
    assert json_patch(added, [{"op": "test", "path": path, "value": value}]) is added
    rest = {name: kept for name, kept in document.items() if name != key}
    assert json_patch(added, [{"op": "remove", "path": path}]) == rest


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(objects.filter(bool), st.data())
def test_moving_is_copying_and_removing(document: Any, data: st.DataObject) -> None:
    source = pointer(data.draw(st.sampled_from(sorted(document))))
    target = pointer("elsewhere")
    moved = json_patch(document, [{"op": "move", "from": source, "path": target}])
    copied = [{"op": "copy", "from": source, "path": target}, {"op": "remove", "path": source}]
    assert same_json(moved, json_patch(document, copied))


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(objects, objects)
def test_patch_is_all_or_nothing(document: Any, other: Any) -> None:
    before = copy.deepcopy(document)
    impossible = [
        {"op": "add", "path": "/new", "value": other},
        {"op": "add", "path": "/new/deep", "value": 1},
        {"op": "test", "path": "/new", "value": "never"},
    ]
    with pytest.raises(ApiError):
        json_patch(document, impossible)
    assert document == before
