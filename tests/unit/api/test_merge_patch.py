"""Merge patches: what becomes of an object, and which patch makes one of another."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kubesched.api.merge_patch import apply_merge_patch, patch_between

OBJECTS = st.recursive(
    st.dictionaries(st.sampled_from("abc"), st.integers(0, 2) | st.lists(st.integers(0, 1), max_size=2), max_size=3),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=5,
)


@given(OBJECTS, OBJECTS)
def test_a_patch_between_two_objects_makes_one_of_the_other(before: dict[str, Any], after: dict[str, Any]) -> None:
    assert apply_merge_patch(before, patch_between(before, after)) == after


def test_a_patch_says_nothing_of_what_is_the_same() -> None:
    before = {"same": [1], "inner": {"kept": 1, "gone": 2}}
    assert patch_between(before, {"same": [1], "inner": {"kept": 1, "new": 3}}) == {"inner": {"gone": None, "new": 3}}
    assert patch_between(before, before) == {}
