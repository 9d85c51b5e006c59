from __future__ import annotations

from typing import Any

import pytest
from tools.field_table import field_text

from kubesched.admission.schemas.table import Field, Type, parse_field

POD_SPEC = "io.k8s.api.core.v1.PodSpec"
CONTAINER = "io.k8s.api.core.v1.Container"
STRING = Type("scalar", "string")


def reference(name: str) -> dict[str, Any]:
    return {"allOf": [{"$ref": f"#/components/schemas/{name}"}], "default": {}, "description": "words"}


@pytest.mark.parametrize(
    ("prop", "required", "field"),
    [
        ({"type": "string", "description": "words"}, True, Field(STRING, required=True)),
        ({"type": "string", "default": "a b"}, False, Field(STRING, default="a b")),
        ({"type": "integer", "format": "int32"}, False, Field(Type("scalar", "int32"))),
        (reference(POD_SPEC), False, Field(Type("struct", POD_SPEC))),
        (
            {"$ref": "#/definitions/io.k8s.apimachinery.pkg.api.resource.Quantity"},
            False,
            Field(Type("scalar", "quantity")),
        ),
        (reference("io.k8s.apimachinery.pkg.runtime.RawExtension"), False, Field(Type("any"))),
        (
            {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
            False,
            Field(Type("list", element=STRING, is_set=True)),
        ),
        ({"type": "array", "items": {"type": "string"}}, False, Field(Type("list", element=STRING, atomic=True))),
        (
            {
                "type": "array",
                "items": reference(CONTAINER),
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name", "port"],
                "x-kubernetes-patch-strategy": "merge,retainKeys",
                "x-kubernetes-patch-merge-key": "name",
            },
            True,
            Field(
                Type(
                    "list",
                    element=Type("struct", CONTAINER),
                    keys=("name", "port"),
                    merge_key="name",
                    merges=True,
                    retains_keys=True,
                ),
                required=True,
            ),
        ),
        (
            {"type": "object", "additionalProperties": {"type": "string"}, "x-kubernetes-map-type": "atomic"},
            False,
            Field(Type("map", element=STRING, atomic=True)),
        ),
    ],
)
def test_what_the_tool_writes_is_what_the_table_reads(prop: Any, required: bool, field: Field) -> None:
    assert parse_field(field_text(prop, required)) == field


def test_descriptions_are_left_behind() -> None:
    assert "words" not in field_text({"type": "string", "description": "words"}, required=False)
