"""Ingresses and network policies: kept as they are, with what a server fills in."""

from __future__ import annotations

from kubesched.admission.mistakes import Mistakes
from kubesched.admission.reading import fill, filled, mapping, sequence, text
from kubesched.admission.rules import Rules
from kubesched.admission.selectors import check_optional_selector
from kubesched.api.kinds import Object

_PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")


def _check_ingress(ingress: Object, mistakes: Mistakes) -> None:
    spec = mapping(ingress, "spec")
    rules = sequence(spec, "rules")
    if not rules and spec.get("defaultBackend") is None:
        mistakes.invalid("spec", spec, "either `defaultBackend` or `rules` must be specified")
    for i, rule in enumerate(rules):
        for j, path in enumerate(sequence(mapping(rule, "http"), "paths")):
            where = f"spec.rules[{i}].http.paths[{j}]"
            if path.get("pathType") is None:
                mistakes.required(f"{where}.pathType", "pathType must be specified")
            else:
                mistakes.one_of(f"{where}.pathType", text(path, "pathType"), _PATH_TYPES)


def _fill_policy(policy: Object) -> None:
    spec = filled(policy, "spec")
    filled(spec, "podSelector")
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", *(["Egress"] if sequence(spec, "egress") else [])]
    for key in ("ingress", "egress"):
        for rule in sequence(spec, key):
            for port in sequence(rule, "ports"):
                fill(port, "protocol", "TCP")


def _check_policy(policy: Object, mistakes: Mistakes) -> None:
    check_optional_selector(policy["spec"], "podSelector", "spec", mistakes)
    for i, kind in enumerate(sequence(policy["spec"], "policyTypes")):
        mistakes.one_of(f"spec.policyTypes[{i}]", kind, ("Egress", "Ingress"))


INGRESS = Rules(check=_check_ingress, new_status=lambda _: {"loadBalancer": {}}, counts_generations=True)
POLICY = Rules(defaults=_fill_policy, check=_check_policy, counts_generations=True)
