from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubesched.api.api_error import ApiError
from kubesched.api.merge_patch import merge_patch

leaves = st.booleans() | st.integers(-5, 5) | st.text("ab", max_size=2)
with_nulls = st.recursive(
    leaves | st.none(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abcd"), inner, max_size=3),
    max_leaves=8,
)
without_nulls = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abcd"), inner, max_size=3),
    max_leaves=8,
)
documents = st.dictionaries(st.sampled_from("abcd"), without_nulls, max_size=4)
patches = st.dictionaries(st.sampled_from("abcd"), with_nulls, max_size=4)


def difference(old: Any, new: Any) -> Any:
    """The merge patch from one document to another."""
    gone = {key: None for key in old if key not in new}
    changed = {}
    for key, value in new.items():
        if key not in old or not isinstance(value, dict) or not isinstance(old[key], dict):
            if key not in old or old[key] != value or type(old[key]) is not type(value):
                changed[key] = value
        elif old[key] != value:
            changed[key] = difference(old[key], value)
    return {**gone, **changed}


@pytest.mark.parametrize(
    ("document", "patch", "expected"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_examples_of_the_rfc(document: Any, patch: Any, expected: Any) -> None:
    before = copy.deepcopy(document)
    assert merge_patch(document, patch) == expected
    assert document == before


@pytest.mark.parametrize(
    ("patch", "kind"), [([], "array"), ("x", "string"), (1, "number"), (True, "bool"), (None, "null")]
)
def test_patch_that_is_no_object_is_a_bad_request(patch: Any, kind: str) -> None:
    with pytest.raises(ApiError) as caught:
        merge_patch({}, patch)
    assert caught.value.code == 400
    assert f"cannot unmarshal {kind} into Go value" in caught.value.message


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(documents, patches)
def test_merging_twice_is_merging_once(document: Any, patch: Any) -> None:
    once = merge_patch(document, patch)
    assert merge_patch(once, patch) == once


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(documents, documents)
def test_difference_of_two_documents_leads_from_one_to_the_other(old: Any, new: Any) -> None:
    assert merge_patch(old, difference(old, new)) == new


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(documents)
def test_empty_patch_changes_nothing(document: Any) -> None:
    assert merge_patch(document, {}) == document
