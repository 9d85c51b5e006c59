"""Objects that only plugins know are found in manifests by the resource that plugins name."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kubesched.api.custom import CustomObject, custom_kind
from kubesched.simulate.manifests import ManifestError, Manifests, loads

RACKS = "racks.v1.example.com"
RACK = {"apiVersion": "example.com/v1", "kind": "Rack", "metadata": {"name": "first"}, "spec": {"height": 42}}


def definition(plural: str = "racks", kind: str = "Rack", scope: str = "Cluster") -> dict[str, Any]:
    spec = {"group": "example.com", "names": {"plural": plural, "kind": kind}, "scope": scope}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "spec": spec}


def read(*objects: dict[str, Any], custom: tuple[str, ...] = (RACKS,)) -> Manifests:
    return loads("\n---\n".join(map(json.dumps, objects)), source="f.yaml", custom=custom)


def customs(manifests: Manifests) -> list[CustomObject]:
    return [obj for obj in manifests.objects if isinstance(obj, CustomObject)]


def test_object_of_a_resource_that_is_waited_for_is_read_whole() -> None:
    found = read(RACK)
    [rack] = customs(found)
    assert type(rack) is custom_kind(RACKS)
    assert rack.content == RACK
    assert found.skipped == {}


def test_objects_that_nobody_waits_for_are_counted_as_skipped() -> None:
    shelf = {"apiVersion": "example.com/v1", "kind": "Shelf", "metadata": {"name": "s"}}
    older = {**RACK, "apiVersion": "example.com/v1alpha1"}
    found = read(shelf, older, RACK, definition("shelves", "Shelf"))
    assert [rack.name for rack in customs(found)] == ["first"]
    assert found.skipped == {"CustomResourceDefinition": 1, "Rack": 1, "Shelf": 1}
    assert read(RACK, definition(), custom=()).skipped == {"CustomResourceDefinition": 1, "Rack": 1}


@pytest.mark.parametrize(("kind", "plural"), [("Rack", "racks"), ("Policy", "policies"), ("Bus", "buses")])
def test_kind_without_a_definition_has_the_usual_plural(kind: str, plural: str) -> None:
    assert customs(read({**RACK, "kind": kind}, custom=(f"{plural}.v1.example.com",)))


def test_definition_tells_the_plural_wherever_it_stands() -> None:
    ox = {**RACK, "kind": "Ox"}
    with pytest.raises(ManifestError, match=r'unknown kind "Ox" in example\.com/v1'):
        read(ox, custom=("oxen.v1.example.com",))
    found = read(ox, definition("oxen", "Ox"), custom=("oxen.v1.example.com",))
    assert len(customs(found)) == 1
    assert found.skipped == {}


def test_definition_tells_whether_objects_have_a_namespace() -> None:
    [rack] = customs(read(RACK, definition(scope="Namespaced")))
    assert rack.key == "default/first"
    assert rack.content["metadata"] == {"name": "first", "namespace": "default"}
    stray = {**RACK, "metadata": {"name": "first", "namespace": "shop"}}
    assert [rack.key for rack in customs(read(stray, definition(scope="Cluster")))] == ["first"]
    assert [rack.key for rack in customs(read(stray))] == ["shop/first"]


def test_resource_of_the_core_group_is_read_too() -> None:
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "shop"}}
    assert [obj.key for obj in customs(read(settings, custom=("configmaps.v1.",)))] == ["shop/c"]


def test_items_of_a_list_need_not_say_what_they_are() -> None:
    item = {"metadata": {"name": "first"}}
    [rack] = customs(read({"apiVersion": "example.com/v1", "kind": "RackList", "items": [item]}))
    assert rack.content == {**item, "apiVersion": "example.com/v1", "kind": "Rack"}


@pytest.mark.parametrize(
    ("metadata", "problem"),
    [
        ({"name": "first", "labels": 3}, "f.yaml: document 1 (Rack first): metadata.labels: expected a mapping, got 3"),
        ({}, "f.yaml: document 1 (Rack): metadata.name: Required value: name or generateName is required"),
        ([], "f.yaml: document 1 (Rack): metadata.name: Required value: name or generateName is required"),
        ("first", 'f.yaml: document 1 (Rack): metadata: expected a mapping, got "first"'),
    ],
)
def test_mistakes_in_metadata_are_named(metadata: Any, problem: str) -> None:
    with pytest.raises(ManifestError) as caught:
        read({**RACK, "metadata": metadata})
    assert caught.value.lines == [problem]


def test_same_object_twice_is_a_mistake() -> None:
    with pytest.raises(ManifestError, match=r"document 2 \(Rack first\): the same object is in f.yaml: document 1"):
        read(RACK, RACK)


def test_definition_that_defines_nothing_is_skipped() -> None:
    broken = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "spec": {"names": 3}}
    assert read(broken).skipped == {"CustomResourceDefinition": 1}
