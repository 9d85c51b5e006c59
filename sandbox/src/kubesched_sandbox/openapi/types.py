"""Types of the field table as JSON schemas, for both versions of OpenAPI."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

from kubesched.admission.schemas.table import Definition, Field, Type, definition, definition_of, definition_of_kind
from kubesched.api.kinds import Object, Resource
from kubesched_sandbox.custom import custom_schema

Version = Literal[2, 3]

_META = "io.k8s.apimachinery.pkg.apis.meta.v1"
OBJECT_META, LIST_META, PATCH = f"{_META}.ObjectMeta", f"{_META}.ListMeta", f"{_META}.Patch"

_SCALARS: dict[str, Object] = {
    "string": {"type": "string"},
    "bytes": {"type": "string", "format": "byte"},
    "boolean": {"type": "boolean"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "double": {"type": "number", "format": "double"},
}
_QUANTITY, _INT_OR_STRING = (
    "io.k8s.apimachinery.pkg.api.resource.Quantity",
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
)
_NAMED_SCALARS = {
    "quantity": _QUANTITY,
    "intOrString": _INT_OR_STRING,
    "time": f"{_META}.Time",
    "microTime": f"{_META}.MicroTime",
}
_SPELLED: dict[Version, dict[str, Object]] = {
    2: {_QUANTITY: {"type": "string"}, _INT_OR_STRING: {"type": "string", "format": "int-or-string"}},
    3: {
        _QUANTITY: {"oneOf": [{"type": "string"}, {"type": "number"}]},
        _INT_OR_STRING: {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]},
    },
}
_FREE: dict[str, Object] = {
    PATCH: {"type": "object"},
    f"{_META}.Time": {"type": "string", "format": "date-time"},
    f"{_META}.MicroTime": {"type": "string", "format": "date-time"},
}


def kind_name(resource: Resource) -> str:
    """The name of the type of a resource's objects."""
    return name_of_kind(resource.group, resource.version, resource.kind)


def name_of_kind(group: str, version: str, kind: str) -> str:
    """The name of the type of a kind; for custom ones made up as Kubernetes does, com.example.v1.Widget."""
    known = definition_of_kind(group, version, kind)
    return known.name if known is not None else ".".join([*reversed(group.split(".")), version, kind])


def list_name(resource: Resource) -> str:
    return f"{kind_name(resource)}List"


def schemas_for(resources: Sequence[Resource], used: Iterable[str], version: Version) -> dict[str, Object]:
    """The schemas of all resources, of their lists, and of every type that those or the given names lead to."""
    schemas: dict[str, Object] = {}
    kinds = _kinds_of(resources)
    waiting = [*used, PATCH]
    for resource in resources:
        if definition_of(resource) is None:
            schemas[kind_name(resource)] = _custom(resource, version)
            waiting.append(OBJECT_META)
        if "list" in resource.verbs:
            schemas[list_name(resource)] = _list(resource, version)
            waiting += [LIST_META, kind_name(resource)]
    while waiting:
        name = waiting.pop()
        if name not in schemas:
            schemas[name], reached = _schema(name, kinds, version)
            waiting += reached
    return dict(sorted(schemas.items()))


def _kinds_of(resources: Sequence[Resource]) -> dict[str, Object]:
    return {
        kind_name(resource): {"group": resource.group, "version": resource.version, "kind": resource.kind}
        for resource in resources
    }


def _schema(name: str, kinds: dict[str, Object], version: Version) -> tuple[Object, list[str]]:
    plain = _FREE.get(name) or _SPELLED[version].get(name)
    if plain is not None:
        return plain, []
    known = definition(name)
    schema = _struct(known, version)
    if name in kinds:
        schema["x-kubernetes-group-version-kind"] = [kinds[name]]
    return schema, [inner for field in known.fields.values() for inner in _named_in(field.type)]


def _struct(known: Definition, version: Version) -> Object:
    required = [name for name, field in known.fields.items() if field.required]
    schema: Object = {"type": "object", "properties": {k: _property(f, version) for k, f in known.fields.items()}}
    if required:
        schema["required"] = required
    if known.atomic:
        schema["x-kubernetes-map-type"] = "atomic"
    return schema


def _property(field: Field, version: Version) -> Object:
    type_ = field.type
    schema = dict(_of_type(type_, version))
    if field.default is not None:
        schema["default"] = field.default
    if type_.shape == "list":
        kind = "map" if type_.keys else "set" if type_.is_set else "atomic"
        schema["x-kubernetes-list-type"] = kind
        if type_.keys:
            schema["x-kubernetes-list-map-keys"] = list(type_.keys)
    elif type_.shape == "map" and type_.atomic:
        schema["x-kubernetes-map-type"] = "atomic"
    strategies = {"merge": type_.merges, "retainKeys": type_.retains_keys, "replace": type_.replaces}
    chosen = [name for name, is_on in strategies.items() if is_on]
    if chosen:
        schema["x-kubernetes-patch-strategy"] = ",".join(chosen)
    if type_.merge_key:
        schema["x-kubernetes-patch-merge-key"] = type_.merge_key
    return schema


def _of_type(type_: Type, version: Version) -> Object:
    match type_.shape:
        case "struct":
            return reference(type_.name, version)
        case "list":
            return {"type": "array", "items": _of_type(type_.item, version)}
        case "map":
            return {"type": "object", "additionalProperties": _of_type(type_.item, version)}
        case "scalar":
            named = _NAMED_SCALARS.get(type_.name)
            return reference(named, version) if named is not None else _SCALARS[type_.name]
    return {"type": "object"}


def reference(name: str, version: Version) -> Object:
    """A reference to a named type, wrapped where facts may stand beside it."""
    if version == 2:
        return {"$ref": f"#/definitions/{name}"}
    return {"allOf": [{"$ref": f"#/components/schemas/{name}"}]}


def _named_in(type_: Type) -> list[str]:
    if type_.element is not None:
        return _named_in(type_.element)
    if type_.shape == "struct":
        return [type_.name]
    return [_NAMED_SCALARS[type_.name]] if type_.name in _NAMED_SCALARS else []


def _custom(resource: Resource, version: Version) -> Object:
    """As its definition says; of what its definition does not say, anything."""
    known = custom_schema(resource)
    said: Object = dict(known.schema) if known else {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    frame = {**_type_meta(), "metadata": reference(OBJECT_META, version)}
    return {
        **said,
        "properties": {**(said.get("properties") or {}), **frame},
        "x-kubernetes-group-version-kind": [_kinds_of([resource])[kind_name(resource)]],
    }


def _list(resource: Resource, version: Version) -> Object:
    kind = {"group": resource.group, "version": resource.version, "kind": f"{resource.kind}List"}
    items = {"type": "array", "items": reference(kind_name(resource), version)}
    return {
        "type": "object",
        "properties": {**_type_meta(), "metadata": reference(LIST_META, version), "items": items},
        "required": ["items"],
        "x-kubernetes-group-version-kind": [kind],
    }


def _type_meta() -> dict[str, Any]:
    return {"apiVersion": {"type": "string"}, "kind": {"type": "string"}}
