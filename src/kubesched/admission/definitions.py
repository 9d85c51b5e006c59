"""Objects by which an API server is extended or asked for certificates: definitions of custom resources, webhooks."""

from __future__ import annotations

from kubesched.admission import names
from kubesched.admission.reading import ensure_mapping, fill, mapping, name_of, sequence, text
from kubesched.admission.rules import Mistakes, Rules
from kubesched.api.kinds import Object, Resource


def _defaults(definition: Object) -> None:
    spec = ensure_mapping(definition, "spec")
    if spec.get("names") is not None:
        resource_names = mapping(spec, "names")
        if kind := text(resource_names, "kind"):
            fill(resource_names, "singular", kind.lower())
            fill(resource_names, "listKind", f"{kind}List")
    fill(spec, "conversion", {"strategy": "None"})


def _check(definition: Object, mistakes: Mistakes) -> None:
    spec = definition["spec"]
    group, resource_names = text(spec, "group"), mapping(spec, "names")
    if name_of(definition) != f"{text(resource_names, 'plural')}.{group}":
        mistakes.invalid("metadata.name", name_of(definition), 'must be spec.names.plural+"."+spec.group')
    if not group:
        mistakes.required("spec.group")
    elif reasons := names.subdomain(group):
        mistakes.invalid("spec.group", group, ",".join(reasons))
    elif "." not in group:
        mistakes.invalid("spec.group", group, "should be a domain with at least one dot")
    mistakes.required_one_of("spec.scope", text(spec, "scope"), ("Cluster", "Namespaced"))
    _check_versions(spec, mistakes)
    _check_names(resource_names, mistakes)


def _check_versions(spec: Object, mistakes: Mistakes) -> None:
    versions = sequence(spec, "versions")
    for i, version in enumerate(versions):
        where = f"spec.versions[{i}]"
        name = text(version, "name")
        if reasons := names.label_1035(name):
            mistakes.invalid(f"{where}.name", name, ",".join(reasons))
        schema, field = mapping(version, "schema").get("openAPIV3Schema"), f"{where}.schema.openAPIV3Schema"
        if schema is None:
            mistakes.required(field)
        elif (root_type := text(schema, "type")) != "object":
            # An API server moves the schema of an only version to spec.validation, and names that field.
            field = "spec.validation.openAPIV3Schema.type" if len(versions) == 1 else f"{field}.type"
            if root_type:
                mistakes.invalid(field, root_type, "must be object at the root")
            else:
                mistakes.required(field, "must not be empty at the root")
        _check_columns(sequence(version, "additionalPrinterColumns"), f"{where}.additionalPrinterColumns", mistakes)
    if len({text(version, "name") for version in versions}) != len(versions):
        mistakes.invalid("spec.versions", versions, "must contain unique version names")
    if sum(version.get("storage") is True for version in versions) != 1:
        mistakes.invalid("spec.versions", versions, "must have exactly one version marked as storage version")


_COLUMN_FIELDS = (
    ("name", "name", ""),
    ("type", "type", "must be one of boolean,date,integer,number,string"),
    ("jsonPath", "JSONPath", ""),
)
"""Fields that a column must have: as clients write them, as an API server names them, and what it says of them."""


def _check_columns(columns: list[Object], where: str, mistakes: Mistakes) -> None:
    for i, column in enumerate(columns):
        for key, field, why in _COLUMN_FIELDS:
            mistakes.not_empty(f"{where}[{i}].{field}", text(column, key), why)


def _check_names(resource_names: Object, mistakes: Mistakes) -> None:
    for key in ("plural", "singular", "kind", "listKind"):
        name = text(resource_names, key)
        if not name:
            mistakes.required(f"spec.names.{key}")
        elif reasons := names.label_1035(name.lower() if key in ("kind", "listKind") else name):
            prefix = "may have mixed case, but should otherwise match: " if key in ("kind", "listKind") else ""
            mistakes.invalid(f"spec.names.{key}", name, prefix + ",".join(reasons))
    for i, name in enumerate(sequence(resource_names, "shortNames")):
        if reasons := names.label_1035(name):
            mistakes.invalid(f"spec.names.shortNames[{i}]", name, ",".join(reasons))


RULES = Rules(
    defaults=_defaults,
    check=_check,
    immutable=("spec.group", "spec.scope", "spec.names.kind", "spec.names.plural"),
    counts_generations=True,
)


WEBHOOKS = frozenset(("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"))
POLICIES = frozenset(
    (
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
    )
)
_INERT = {
    **dict.fromkeys(WEBHOOKS, "webhooks of a Service that selects pods are never called: nothing runs in them"),
    **dict.fromkeys(POLICIES, "admission policies are stored, and never asked"),
    "APIService": "API services are stored, and no request is passed on to them",
    "NetworkPolicy": "network policies are stored; hollow pods have no network",
    "CertificateSigningRequest": "requests are stored and can be approved; nothing signs them",
}


def inert_warning(resource: Resource, obj: Object) -> str:
    """The warning for an object of a kind that has no effect in a sandbox. Empty for other kinds."""
    webhooks = sequence(obj, "webhooks")
    if resource.kind in WEBHOOKS and all(mapping(webhook, "clientConfig").get("url") for webhook in webhooks):
        return ""
    effect = _INERT.get(resource.kind) if resource.group.endswith(".k8s.io") else None
    return f"in a sandbox, {effect}" if effect else ""


def _approve(new: Object, old: Object, _: Mistakes) -> Object:
    conditions = sequence(mapping(new, "status"), "conditions")
    return {**old, "status": {**mapping(old, "status"), "conditions": conditions}}


SIGNING_REQUEST = Rules(immutable=("spec",), subresource_writes={"approval": _approve})
