"""Write the field table of the sandbox from the OpenAPI documents of Kubernetes releases.

    python tools/field_table.py v1.37.0 1.36/api/openapi-spec/v3 1.37/api/openapi-spec/v3 > src/.../schemas/fields.json

Each source is a directory of OpenAPI v3 documents, or one swagger.json (v2), the oldest release first: a type has the
fields that it has in any of them, as the newest has them. Only facts are read: names of
types and fields, types, which fields are required, scalar defaults, and how lists and maps merge. No descriptions.
The grammar of a field is told in kubesched/admission/schemas/table.py, which reads the result.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from kubesched.admission import NEWER, SERVED

Schema = dict[str, Any]

ALSO = (
    ("", "v1", "Binding"),
    ("policy", "v1", "Eviction"),
    ("autoscaling", "v1", "Scale"),
    ("authentication.k8s.io", "v1", "TokenRequest"),
    ("", "v1", "DeleteOptions"),
    ("", "v1", "Status"),
)
"""Kinds that are sent or answered without being a resource."""

ROOTS = ("io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta",)

SPELLED = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": "quantity",
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": "intOrString",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Time": "time",
    "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime": "microTime",
}
"""Types with a spelling of their own in JSON."""

SCALARS = {
    ("string", None): "string",
    ("string", "byte"): "bytes",
    ("string", "date-time"): "time",
    ("boolean", None): "boolean",
    ("integer", "int32"): "int32",
    ("integer", "int64"): "int64",
    ("integer", None): "int64",
    ("number", "double"): "double",
    ("number", None): "double",
}

FACTS = {
    "x-kubernetes-list-type": "listType",
    "x-kubernetes-list-map-keys": "keys",
    "x-kubernetes-map-type": "mapType",
    "x-kubernetes-patch-strategy": "strategy",
    "x-kubernetes-patch-merge-key": "mergeKey",
}


def main(release: str, *sources: str) -> None:
    schemas: dict[str, Schema] = {}
    for source in sources:
        for name, schema in _read(Path(source)).items():
            properties = {**schemas.get(name, {}).get("properties", {}), **schema.get("properties", {})}
            schemas[name] = {**schema, "properties": properties} if properties else schema
    wanted = [(resource.group, resource.version, resource.kind) for resource in (*SERVED, *NEWER)]
    kinds = {kind: _named(kind, schemas) for kind in (*wanted, *ALSO)}
    types = _reachable([*kinds.values(), *ROOTS], schemas)
    lines = [f"{json.dumps(name)}: {json.dumps(_definition(schemas[name]), sort_keys=True)}" for name in sorted(types)]
    named = [f"{json.dumps('/'.join(kind))}: {json.dumps(name)}" for kind, name in sorted(kinds.items())]
    sys.stdout.write(f'{{"release": {json.dumps(release)},\n"kinds": {{\n')
    sys.stdout.write(",\n".join(named) + '\n},\n"types": {\n' + ",\n".join(lines) + "\n}}\n")


def _read(source: Path) -> dict[str, Schema]:
    files = sorted(source.glob("*.json")) if source.is_dir() else [source]
    schemas: dict[str, Schema] = {}
    for file in files:
        document = json.loads(file.read_text())
        schemas.update(document.get("definitions") or document.get("components", {}).get("schemas", {}))
    return schemas


def _named(kind: tuple[str, str, str], schemas: dict[str, Schema]) -> str:
    wanted = dict(zip(("group", "version", "kind"), kind))
    # Types of all groups, like DeleteOptions, list every group: the exact name decides between namesakes.
    names = [name for name, schema in schemas.items() if wanted in schema.get("x-kubernetes-group-version-kind", [])]
    if not names:
        raise SystemExit(f"no schema for {'/'.join(kind)}")
    return min(names)


def _reachable(roots: list[str], schemas: dict[str, Schema]) -> set[str]:
    seen: set[str] = set()
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        if name not in seen and name not in SPELLED and "properties" in schemas[name]:
            seen.add(name)
            waiting.extend(_references(schemas[name]))
    return seen


def _references(node: Any) -> list[str]:
    if isinstance(node, list):
        return [name for item in node for name in _references(item)]
    if not isinstance(node, dict):
        return []
    own = [node["$ref"].rpartition("/")[2]] if isinstance(node.get("$ref"), str) else []
    return own + [name for item in node.values() for name in _references(item)]


def _definition(schema: Schema) -> Schema:
    required = set(schema.get("required", []))
    fields = {name: field_text(prop, name in required) for name, prop in schema["properties"].items()}
    return {"fields": fields} | ({"atomic": True} if schema.get("x-kubernetes-map-type") == "atomic" else {})


def field_text(prop: Schema, required: bool) -> str:
    """One field as the table spells it."""
    text = _type(prop) + ("!" if required else "")
    for key, fact in FACTS.items():
        value = prop.get(key)
        if value and not text.startswith("bytes"):
            text += f" {fact}={','.join(value) if isinstance(value, list) else value}"
    default = prop.get("default")
    return text + (f" default={json.dumps(default)}" if isinstance(default, str | int) and default else "")


def _type(prop: Schema) -> str:
    (reference,) = [*_own_references(prop), None][:1]
    if reference is not None:
        return SPELLED.get(reference) or (reference if reference not in OPEN else "any")
    if prop.get("type") == "array":
        return f"[{_type(prop['items'])}]"
    if prop.get("type") == "object":
        values = prop.get("additionalProperties")
        return f"{{{_type(values)}}}" if values else "any"
    return SCALARS[prop.get("type", ""), prop.get("format")] if "type" in prop else "any"


def _own_references(prop: Schema) -> list[str]:
    return [part["$ref"].rpartition("/")[2] for part in (prop, *prop.get("allOf", [])) if "$ref" in part]


OPEN = {
    "io.k8s.api.scheduling.v1alpha2.BasicSchedulingPolicy",
    "io.k8s.api.scheduling.v1alpha3.WorkloadPodGroupAllDisruptionMode",
    "io.k8s.api.scheduling.v1alpha3.WorkloadPodGroupBasicSchedulingPolicy",
    "io.k8s.api.scheduling.v1alpha3.WorkloadPodGroupSingleDisruptionMode",
    "io.k8s.api.scheduling.v1beta1.AllCompositeDisruptionMode",
    "io.k8s.api.scheduling.v1beta1.CompositeBasicSchedulingPolicy",
    "io.k8s.api.scheduling.v1beta1.SingleCompositeDisruptionMode",
    "io.k8s.api.scheduling.v1beta1.AllDisruptionMode",
    "io.k8s.api.scheduling.v1beta1.BasicSchedulingPolicy",
    "io.k8s.api.scheduling.v1beta1.SingleDisruptionMode",
    "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1",
    "io.k8s.apimachinery.pkg.runtime.RawExtension",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceSubresourceStatus",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrArray",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrBool",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrStringArray",
}
"""Types without fields: anything may be inside."""


if __name__ == "__main__":
    main(*sys.argv[1:])
