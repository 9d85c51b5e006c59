from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubesched_sandbox.patching.owners import from_fields_v1, spelled, to_fields_v1

CONTAINERS = ("f:spec", "f:containers")
WEB = (*CONTAINERS, 'k:{"name":"web"}')

steps = st.sampled_from(["f:a", "f:b", 'k:{"name":"x"}', 'k:{"name":"x","port":1}', 'v:"s"', "v:3", "i:0"])
paths = st.lists(steps, min_size=1, max_size=4).map(tuple)


def test_item_that_is_owned_with_its_fields_has_a_dot() -> None:
    tree = to_fields_v1({WEB, (*WEB, "f:image")})
    assert tree == {"f:spec": {"f:containers": {'k:{"name":"web"}': {".": {}, "f:image": {}}}}}


def test_container_that_is_only_on_the_way_has_no_dot() -> None:
    assert to_fields_v1({("f:spec", "f:replicas")}) == {"f:spec": {"f:replicas": {}}}


def test_keys_are_the_same_in_any_order() -> None:
    one = from_fields_v1({'k:{"port":1,"name":"x"}': {}})
    assert one == from_fields_v1({'k:{"name": "x", "port": 1}': {}})


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (("f:spec", "f:replicas"), ".spec.replicas"),
        ((*WEB, "f:image"), '.spec.containers[name="web"].image'),
        (("f:ports", 'k:{"protocol":"TCP","containerPort":80}'), '.ports[containerPort=80,protocol="TCP"]'),
        (("f:metadata", "f:finalizers", 'v:"x/y"'), '.metadata.finalizers[="x/y"]'),
        (("f:list", "i:2"), ".list[2]"),
        (("f:labels", "f:a:b"), ".labels.a:b"),
    ],
)
def test_paths_are_told_as_kubernetes_tells_them(path: tuple[str, ...], text: str) -> None:
    assert spelled(path) == text


@pytest.mark.parametrize("tree", [{"spec": {}}, {"f:spec": []}, {"x:spec": {}}, {"k:{": {}}])
def test_tree_that_is_none_is_refused(tree: Any) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        from_fields_v1(tree)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.frozensets(paths, max_size=12))
def test_reading_what_was_written_gives_the_same_set(fields: frozenset[tuple[str, ...]]) -> None:
    assert from_fields_v1(to_fields_v1(fields)) == fields
