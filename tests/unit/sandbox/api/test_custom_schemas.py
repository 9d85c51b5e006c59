"""Custom resources are pruned, filled in and checked by the schemas of their definitions, in Kubernetes' words."""

from __future__ import annotations

from typing import Any

import pytest

from kubesched.api.api_error import ApiError
from kubesched.api.kinds import CUSTOM_RESOURCE_DEFINITIONS, Object, Resource
from kubesched_sandbox.api import Api, bootstrap
from kubesched_sandbox.store import Store

SPEC: Object = {
    "type": "object",
    "required": ["size"],
    "x-kubernetes-validations": [
        {"rule": "!has(self.minimum) || self.minimum <= self.size", "message": "minimum may not exceed size"},
        {"rule": "self.color == oldSelf.color", "message": "color is immutable", "fieldPath": ".color"},
    ],
    "properties": {
        "size": {"type": "integer", "minimum": 1, "maximum": 10},
        "minimum": {"type": "integer"},
        "color": {"type": "string", "enum": ["red", "green"], "default": "red"},
        "name": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 5},
        "port": {"x-kubernetes-int-or-string": True},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "parts": {
            "type": "array",
            "maxItems": 2,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["id"],
            "items": {
                "type": "object",
                "required": ["id"],
                "properties": {
                    "id": {"type": "integer"},
                    "weight": {
                        "type": "integer",
                        "default": 1,
                        "x-kubernetes-validations": [
                            {"rule": "self > 0", "messageExpression": "'weight ' + string(self) + ' is not positive'"}
                        ],
                    },
                },
            },
        },
    },
}


def definition(spec: Object = SPEC, **version: Any) -> Object:
    schema = {"type": "object", "properties": {"spec": spec, "status": {"type": "object", "nullable": True}}}
    whole = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}, **version}
    names = {"plural": "widgets", "kind": "Widget"}
    return {
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "names": names, "scope": "Namespaced", "versions": [whole]},
    }


def served(**version: Any) -> tuple[Api, Resource]:
    api = Api(Store())
    bootstrap(api)
    api.create(CUSTOM_RESOURCE_DEFINITIONS, "", definition(**version))
    resource = api.catalog.lookup("example.com", "v1", "widgets")
    assert resource is not None
    return api, resource


def widget(**spec: Any) -> Object:
    return {"metadata": {"name": "one"}, "spec": {"size": 3, **spec}}


def refusal(**spec: Any) -> str:
    api, resource = served()
    with pytest.raises(ApiError) as refused:
        api.create(resource, "default", widget(**spec))
    assert refused.value.code == 422
    return refused.value.message.removeprefix('Widget.example.com "one" is invalid: ')


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"size": 300}, "spec.size: Invalid value: 300: spec.size in body should be less than or equal to 10"),
        ({"size": 0}, "spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1"),
        (
            {"size": "three"},
            'spec.size: Invalid value: "string": spec.size in body must be of type integer: "string"',
        ),
        ({"color": "blue"}, 'spec.color: Unsupported value: "blue": supported values: "red", "green"'),
        ({"name": "ABC"}, "spec.name: Invalid value: \"ABC\": spec.name in body should match '^[a-z]+$'"),
        ({"name": "abcdef"}, "spec.name: Too long: may not be more than 5 bytes"),
        (
            {"labels": {"a": 1}},
            'spec.labels.a: Invalid value: "integer": spec.labels.a in body must be of type string: "integer"',
        ),
        (
            {"port": 1.5},
            'spec.port: Invalid value: "number": spec.port in body must be of type integer,string: "number"',
        ),
        ({"parts": [{"id": 1}, {"id": 2}, {"id": 3}]}, "spec.parts: Too many: 3: must have at most 2 items"),
        ({"parts": [{"id": 1}, {"id": 1}]}, 'spec.parts[1]: Duplicate value: {"id":1}'),
        ({"parts": [{}]}, "spec.parts[0].id: Required value"),
        ({"minimum": 5}, "spec: Invalid value: minimum may not exceed size"),
        ({"parts": [{"id": 1, "weight": 0}]}, "spec.parts[0].weight: Invalid value: 0: weight 0 is not positive"),
    ],
)
def test_what_a_schema_refuses_is_refused_in_the_words_of_an_api_server(spec: Object, words: str) -> None:
    found = refusal(**spec)
    assert words in found


def test_a_field_that_is_required_is_asked_for() -> None:
    api, resource = served()
    with pytest.raises(ApiError, match=r"spec\.size: Required value"):
        api.create(resource, "default", {"metadata": {"name": "one"}, "spec": {}})


def test_defaults_are_filled_in_and_unknown_fields_are_left_out() -> None:
    api, resource = served()
    made = api.create(
        resource, "default", widget(typo=1, free={"any": {"thing": 1}}, parts=[{"id": 1, "typo": 2}], color=None)
    )
    assert made["spec"] == {
        "size": 3,
        "color": "red",
        "free": {"any": {"thing": 1}},
        "parts": [{"id": 1, "weight": 1}],
    }


def test_rules_about_changes_are_asked_only_when_something_changes() -> None:
    api, resource = served()
    api.create(resource, "default", widget(color="green"))
    assert api.patch(resource, "default", "one", {"spec": {"size": 4}})["spec"]["size"] == 4
    with pytest.raises(ApiError, match=r"spec\.color: Invalid value: color is immutable"):
        api.patch(resource, "default", "one", {"spec": {"color": "red"}})


def test_what_was_wrong_before_a_definition_became_stricter_may_stay() -> None:
    api, resource = served()
    api.create(resource, "default", widget(size=9))
    stricter = {**SPEC, "properties": {**SPEC["properties"], "size": {"type": "integer", "maximum": 5}}}
    api.patch(CUSTOM_RESOURCE_DEFINITIONS, "", "widgets.example.com", {"spec": definition(stricter)["spec"]})
    now = api.catalog.lookup("example.com", "v1", "widgets")
    assert now is not None
    assert api.patch(now, "default", "one", {"spec": {"name": "abc"}})["spec"]["name"] == "abc"
    with pytest.raises(ApiError, match="less than or equal to 5"):
        api.patch(now, "default", "one", {"spec": {"size": 8}})


def test_selectable_fields_select() -> None:
    api, resource = served(selectableFields=[{"jsonPath": ".spec.color"}])
    for name, color in (("a", "red"), ("b", "green")):
        api.create(resource, "default", {"metadata": {"name": name}, "spec": {"size": 1, "color": color}})
    found = api.select(resource, fields="spec.color=green")
    assert [each["metadata"]["name"] for each in found] == ["b"]
    with pytest.raises(ApiError, match=r"field label not supported: spec\.size"):
        api.select(resource, fields="spec.size=1")


def test_a_definition_whose_rule_is_no_cel_is_refused() -> None:
    api = Api(Store())
    bootstrap(api)
    broken = {**SPEC, "x-kubernetes-validations": [{"rule": "self.size >"}]}
    with pytest.raises(ApiError) as refused:
        api.create(CUSTOM_RESOURCE_DEFINITIONS, "", definition(broken))
    place = "spec.versions[0].schema.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule"
    assert f"{place}: Invalid value" in refused.value.message
    assert "compilation failed" in refused.value.message


@pytest.mark.parametrize(
    ("name", "written"), [("namespace", "__namespace__"), ("a-b", "a__dash__b"), ("a.b", "a__dot__b")]
)
def test_fields_whose_names_are_no_identifiers_have_escaped_names_in_rules(name: str, written: str) -> None:
    api = Api(Store())
    bootstrap(api)
    rules = [{"rule": f"self.{written} == 'x'", "message": "must be x"}]
    spec = {"type": "object", "properties": {name: {"type": "string"}}, "x-kubernetes-validations": rules}
    api.create(CUSTOM_RESOURCE_DEFINITIONS, "", definition(spec))
    resource = api.catalog.lookup("example.com", "v1", "widgets")
    assert resource is not None
    api.create(resource, "default", {"metadata": {"name": "good"}, "spec": {name: "x"}})
    with pytest.raises(ApiError, match="must be x"):
        api.create(resource, "default", {"metadata": {"name": "bad"}, "spec": {name: "y"}})
