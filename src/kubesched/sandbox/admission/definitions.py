"""Definitions of custom resources."""

from __future__ import annotations

from kubesched.api.kinds import Object
from kubesched.sandbox.admission import names
from kubesched.sandbox.admission.faults import Faults
from kubesched.sandbox.admission.metadata import name_of
from kubesched.sandbox.admission.reading import fill, flag, mapping, optional_mapping, records, text, texts
from kubesched.sandbox.admission.rules import Rules
from kubesched.sandbox.admission.workloads import spec_to_fill


def _defaults(definition: Object) -> None:
    spec = spec_to_fill(definition)
    if spec.get("names") is not None:
        given = mapping(spec, "names", "spec")
        if kind := text(given, "kind", "spec.names"):
            fill(given, "singular", kind.lower())
            fill(given, "listKind", f"{kind}List")
    fill(spec, "conversion", {"strategy": "None"})
    for version in records(spec, "versions", "spec"):
        for column in records(version, "additionalPrinterColumns", "spec.versions"):
            fill(column, "priority", 0)


def _check(definition: Object, faults: Faults) -> None:
    spec = definition["spec"]
    group, given = text(spec, "group", "spec"), mapping(spec, "names", "spec")
    plural = text(given, "plural", "spec.names")
    if name_of(definition) != f"{plural}.{group}":
        faults.invalid("metadata.name", name_of(definition), 'must be spec.names.plural+"."+spec.group')
    if not group:
        faults.required("spec.group")
    elif told := names.subdomain(group):
        faults.invalid("spec.group", group, ",".join(told))
    elif "." not in group:
        faults.invalid("spec.group", group, "should be a domain with at least one dot")
    _check_scope(text(spec, "scope", "spec"), faults)
    _check_versions(spec, faults)
    _check_names(given, faults)


def _check_scope(scope: str, faults: Faults) -> None:
    if not scope:
        faults.required("spec.scope")
    elif scope not in ("Cluster", "Namespaced"):
        faults.unsupported("spec.scope", scope, ("Cluster", "Namespaced"))


def _check_versions(spec: Object, faults: Faults) -> None:
    versions, seen, stored = records(spec, "versions", "spec"), [], 0
    for i, version in enumerate(versions):
        where = f"spec.versions[{i}]"
        name = text(version, "name", where)
        if told := names.label_1035(name):
            faults.invalid(f"{where}.name", name, ",".join(told))
        seen.append(name)
        stored += flag(version, "storage", where) is True
        flag(version, "served", where)
        schema = optional_mapping(mapping(version, "schema", where), "openAPIV3Schema", f"{where}.schema")
        if schema is None:
            faults.required(f"{where}.schema.openAPIV3Schema", "schemas are required")
        elif schema.get("type") != "object":
            field = (
                "spec.validation.openAPIV3Schema.type" if len(versions) == 1 else f"{where}.schema.openAPIV3Schema.type"
            )
            _check_root_type(schema, field, faults)
        _check_columns(records(version, "additionalPrinterColumns", where), f"{where}.additionalPrinterColumns", faults)
    if len(set(seen)) != len(seen):
        faults.invalid("spec.versions", versions, "must contain unique version names")
    if stored != 1:
        faults.invalid("spec.versions", versions, "must have exactly one version marked as storage version")


def _check_root_type(schema: Object, field: str, faults: Faults) -> None:
    kind = text(schema, "type", field)
    if not kind:
        faults.required(field, "must not be empty at the root")
    else:
        faults.invalid(field, kind, "must be object at the root")


def _check_columns(columns: list[Object], where: str, faults: Faults) -> None:
    for i, column in enumerate(columns):
        for key in ("name", "type", "jsonPath"):
            if not text(column, key, f"{where}[{i}]"):
                faults.required(f"{where}[{i}].{key}" if key != "jsonPath" else f"{where}[{i}].JSONPath")


def _check_names(given: Object, faults: Faults) -> None:
    for key in ("plural", "singular", "kind", "listKind"):
        name = text(given, key, "spec.names")
        if not name:
            faults.required(f"spec.names.{key}")
        elif told := names.label_1035(name.lower()):
            faults.invalid(f"spec.names.{key}", name, ",".join(told))
    for i, name in enumerate(texts(given, "shortNames", "spec.names")):
        if told := names.label_1035(name):
            faults.invalid(f"spec.names.shortNames[{i}]", name, ",".join(told))
    texts(given, "categories", "spec.names")


def _check_update(new: Object, old: Object, faults: Faults) -> None:
    spec, before = new["spec"], mapping(old, "spec", "")
    faults.immutable("spec.group", spec.get("group"), before.get("group"))
    faults.immutable("spec.scope", spec.get("scope"), before.get("scope"))
    old_names = mapping(before, "names", "spec")
    for key in ("kind", "plural"):
        faults.immutable(f"spec.names.{key}", mapping(spec, "names", "spec").get(key), old_names.get(key))


RULES = Rules(
    defaults=_defaults,
    check=_check,
    check_update=_check_update,
    counts_generations=True,
)
