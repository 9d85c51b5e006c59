"""What extends an API server: definitions of custom resources, webhooks and policies, requests for certificates."""

from __future__ import annotations

from kubesched.admission import names
from kubesched.admission.reading import ensure_mapping, fill, mapping, name_of, sequence, text
from kubesched.admission.rules import Mistakes, Rules
from kubesched.api.kinds import Object, Resource


def _defaults(definition: Object) -> None:
    spec = ensure_mapping(definition, "spec")
    if spec.get("names") is not None:
        given = mapping(spec, "names")
        if kind := text(given, "kind"):
            fill(given, "singular", kind.lower())
            fill(given, "listKind", f"{kind}List")
    fill(spec, "conversion", {"strategy": "None"})


def _check(definition: Object, mistakes: Mistakes) -> None:
    spec = definition["spec"]
    group, given = text(spec, "group"), mapping(spec, "names")
    plural = text(given, "plural")
    if name_of(definition) != f"{plural}.{group}":
        mistakes.invalid("metadata.name", name_of(definition), 'must be spec.names.plural+"."+spec.group')
    if not group:
        mistakes.required("spec.group")
    elif words := names.subdomain(group):
        mistakes.invalid("spec.group", group, ",".join(words))
    elif "." not in group:
        mistakes.invalid("spec.group", group, "should be a domain with at least one dot")
    mistakes.chosen("spec.scope", text(spec, "scope"), ("Cluster", "Namespaced"))
    _check_versions(spec, mistakes)
    _check_names(given, mistakes)


def _check_versions(spec: Object, mistakes: Mistakes) -> None:
    versions, seen, stored = sequence(spec, "versions"), [], 0
    for i, version in enumerate(versions):
        where = f"spec.versions[{i}]"
        name = text(version, "name")
        if words := names.label_1035(name):
            mistakes.invalid(f"{where}.name", name, ",".join(words))
        seen.append(name)
        stored += version.get("storage") is True
        schema = mapping(version, "schema").get("openAPIV3Schema")
        if schema is None:
            mistakes.required(f"{where}.schema.openAPIV3Schema", "schemas are required")
        elif schema.get("type") != "object":
            field = (
                "spec.validation.openAPIV3Schema.type" if len(versions) == 1 else f"{where}.schema.openAPIV3Schema.type"
            )
            _check_root_type(schema, field, mistakes)
        _check_columns(sequence(version, "additionalPrinterColumns"), f"{where}.additionalPrinterColumns", mistakes)
    if len(set(seen)) != len(seen):
        mistakes.invalid("spec.versions", versions, "must contain unique version names")
    if stored != 1:
        mistakes.invalid("spec.versions", versions, "must have exactly one version marked as storage version")


def _check_root_type(schema: Object, field: str, mistakes: Mistakes) -> None:
    kind = text(schema, "type")
    if not kind:
        mistakes.required(field, "must not be empty at the root")
    else:
        mistakes.invalid(field, kind, "must be object at the root")


def _check_columns(columns: list[Object], where: str, mistakes: Mistakes) -> None:
    for i, column in enumerate(columns):
        for key in ("name", "type", "jsonPath"):
            if not text(column, key):
                mistakes.required(f"{where}[{i}].{key}" if key != "jsonPath" else f"{where}[{i}].JSONPath")


def _check_names(given: Object, mistakes: Mistakes) -> None:
    for key in ("plural", "singular", "kind", "listKind"):
        name = text(given, key)
        if not name:
            mistakes.required(f"spec.names.{key}")
        elif words := names.label_1035(name.lower()):
            mistakes.invalid(f"spec.names.{key}", name, ",".join(words))
    for i, name in enumerate(sequence(given, "shortNames")):
        if words := names.label_1035(name):
            mistakes.invalid(f"spec.names.shortNames[{i}]", name, ",".join(words))


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


def is_inert(resource: Resource, obj: Object) -> str:
    """The warning for an object of a kind that has no effect in a sandbox. Empty for other kinds."""
    words = _INERT.get(resource.kind, "") if resource.group.endswith(".k8s.io") else ""
    if resource.kind in WEBHOOKS and all(
        mapping(hook, "clientConfig").get("url") for hook in obj.get("webhooks") or ()
    ):
        return ""
    return words and f"in a sandbox, {words}"


def _approve(new: Object, old: Object, _: Mistakes) -> Object:
    conditions = mapping(new, "status").get("conditions") or []
    return {**old, "status": {**mapping(old, "status"), "conditions": conditions}}


SIGNING_REQUEST = Rules(immutable=("spec",), takes={"approval": _approve})
