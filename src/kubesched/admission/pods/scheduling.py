"""Where pods may go: tolerations, affinity, spread constraints, gates."""

from __future__ import annotations

from collections.abc import Mapping

from kubesched.admission import names
from kubesched.admission.reading import mapping, sequence, text
from kubesched.admission.rules import NOT_POSITIVE, Mistakes
from kubesched.admission.selectors import (
    check_key,
    check_label_selector,
    check_node_selector,
    check_node_term,
    check_optional_selector,
)
from kubesched.api.kinds import Object
from kubesched.api.selectors import parse_int64

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_POD_AFFINITIES = ("podAffinity", "podAntiAffinity")
_TOLERATION_SECONDS = 300
_NODE_TROUBLE = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def tolerate_node_trouble(spec: Object) -> None:
    """Add the default tolerations for nodes that are not ready or unreachable, for 300 seconds."""
    tolerations = sequence(spec, "tolerations")
    added = [
        {"effect": "NoExecute", "key": key, "operator": "Exists", "tolerationSeconds": _TOLERATION_SECONDS}
        for key in _NODE_TROUBLE
        if not any(
            toleration.get("key") in (key, None, "") and toleration.get("effect") in ("NoExecute", None, "")
            for toleration in tolerations
        )
    ]
    if added:
        spec["tolerations"] = [*tolerations, *added]


def check_tolerations(tolerations: list[Object], where: str, mistakes: Mistakes) -> None:
    for i, toleration in enumerate(tolerations):
        _check_toleration(toleration, f"{where}[{i}]", mistakes)


def _check_toleration(toleration: Object, where: str, mistakes: Mistakes) -> None:
    key, operator = text(toleration, "key"), text(toleration, "operator")
    value, effect = text(toleration, "value"), text(toleration, "effect")
    if key:
        mistakes.invalid_each(f"{where}.key", key, names.label_key(key))
    elif operator != "Exists":
        why = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        mistakes.invalid(f"{where}.operator", operator, why)
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        mistakes.invalid(f"{where}.effect", effect, "effect must be 'NoExecute' when `tolerationSeconds` is set")
    if operator in ("", "Equal"):
        if reasons := names.label_value(value):
            mistakes.invalid(f"{where}.operator", value, ";".join(reasons))
    elif operator == "Exists":
        if value:
            mistakes.invalid(f"{where}.operator", value, "value must be empty when `operator` is 'Exists'")
    elif operator in ("Lt", "Gt"):
        if parse_int64(value) is None:
            mistakes.invalid(f"{where}.value", value, "must be a valid decimal integer in canonical form")
    else:
        mistakes.unsupported(f"{where}.operator", operator, ("Equal", "Exists"))
    if effect and effect not in EFFECTS:
        mistakes.unsupported(f"{where}.effect", effect, EFFECTS)


def check_gates(gates: list[Object], where: str, mistakes: Mistakes) -> None:
    seen: set[str] = set()
    for i, gate in enumerate(gates):
        name = text(gate, "name")
        mistakes.invalid_each(f"{where}[{i}]", name, names.label_key(name))
        mistakes.unique(f"{where}[{i}]", name, seen)


# -- affinity ---------------------------------------------------------------------------------------------------------


def check_affinity(affinity: Object, where: str, mistakes: Mistakes) -> None:
    nodes, field = mapping(affinity, "nodeAffinity"), f"{where}.nodeAffinity"
    required = nodes.get(REQUIRED)
    if required is not None:
        check_node_selector(required, f"{field}.{REQUIRED}", mistakes)
    for i, term in enumerate(sequence(nodes, PREFERRED)):
        at = f"{field}.{PREFERRED}[{i}]"
        _check_weight(term, at, mistakes)
        check_node_term(mapping(term, "preference"), f"{at}.preference", mistakes)
    for kind in _POD_AFFINITIES:
        pods, field = mapping(affinity, kind), f"{where}.{kind}"
        for i, term in enumerate(sequence(pods, REQUIRED)):
            _check_pod_term(term, f"{field}.{REQUIRED}[{i}]", mistakes)
        for i, weighted in enumerate(sequence(pods, PREFERRED)):
            at = f"{field}.{PREFERRED}[{i}]"
            _check_weight(weighted, at, mistakes)
            _check_pod_term(mapping(weighted, "podAffinityTerm"), f"{at}.podAffinityTerm", mistakes)


def _pod_affinity_terms(affinity: Object, kind: str) -> list[Object]:
    """The terms of a podAffinity or a podAntiAffinity, required and preferred."""
    terms = mapping(affinity, kind)
    preferred = (mapping(weighted, "podAffinityTerm") for weighted in sequence(terms, PREFERRED))
    return [*sequence(terms, REQUIRED), *preferred]


def _check_weight(term: Object, where: str, mistakes: Mistakes) -> None:
    weight = term.get("weight") or 0
    if not 1 <= weight <= 100:
        mistakes.invalid(f"{where}.weight", weight, "must be in the range 1-100")


def _check_pod_term(term: Object, where: str, mistakes: Mistakes) -> None:
    check_optional_selector(term, "labelSelector", where, mistakes)
    check_optional_selector(term, "namespaceSelector", where, mistakes)
    for name in sequence(term, "namespaces"):
        mistakes.invalid_each(f"{where}.namespace", name, names.label(name))
    _check_label_keys(term, where, mistakes)
    mistakes.not_empty(f"{where}.topologyKey", text(term, "topologyKey"), "can not be empty")
    check_key(term, "topologyKey", where, mistakes)


# -- spreading --------------------------------------------------------------------------------------------------------


def check_spread(constraints: list[Object], where: str, mistakes: Mistakes) -> None:
    pairs: list[tuple[str, str]] = []
    for i, constraint in enumerate(constraints):
        _check_constraint(constraint, f"{where}[{i}]", mistakes)
        pairs.append((text(constraint, "topologyKey"), text(constraint, "whenUnsatisfiable")))
    for i, pair in enumerate(pairs):
        if pair in pairs[i + 1 :]:
            mistakes.duplicate(f"{where}[{i}].{{topologyKey, whenUnsatisfiable}}", f"{{{pair[0]}, {pair[1]}}}")


def _check_constraint(constraint: Object, where: str, mistakes: Mistakes) -> None:
    skew = constraint.get("maxSkew") or 0
    if skew <= 0:
        mistakes.invalid(f"{where}.maxSkew", skew, NOT_POSITIVE)
    mistakes.not_empty(f"{where}.topologyKey", text(constraint, "topologyKey"), "can not be empty")
    action = text(constraint, "whenUnsatisfiable")
    mistakes.one_of(f"{where}.whenUnsatisfiable", action, ("DoNotSchedule", "ScheduleAnyway"))
    domains = constraint.get("minDomains")
    if domains is not None:
        if domains <= 0:
            mistakes.invalid(f"{where}.minDomains", domains, NOT_POSITIVE)
        if action != "DoNotSchedule":
            why = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
            mistakes.invalid(f"{where}.minDomains", domains, why)
    for key in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        if constraint.get(key) is not None:
            mistakes.one_of(f"{where}.{key}", text(constraint, key), ("Honor", "Ignore"))
    _check_label_keys(constraint, where, mistakes)
    selector = constraint.get("labelSelector")
    if selector is not None:
        check_label_selector(selector, f"{where}.labelSelector", mistakes)


# -- label keys -------------------------------------------------------------------------------------------------------


def _check_label_keys(term: Object, where: str, mistakes: Mistakes) -> None:
    """Keys whose values come from the pod's own labels, and so must not be in the selector besides."""
    selector = term.get("labelSelector")
    match_keys, mismatch_keys = sequence(term, "matchLabelKeys"), sequence(term, "mismatchLabelKeys")
    for field, keys in (("matchLabelKeys", match_keys), ("mismatchLabelKeys", mismatch_keys)):
        if keys and selector is None:
            mistakes.forbidden(f"{where}.{field}", "must not be specified when labelSelector is not set")
        for i, key in enumerate(keys):
            mistakes.invalid_each(f"{where}.{field}[{i}]", key, names.label_key(key))
    for i, key in enumerate(match_keys):
        if key in mismatch_keys:
            why = "exists in both matchLabelKeys and mismatchLabelKeys"
            mistakes.invalid(f"{where}.matchLabelKeys[{i}]", key, why)
        # `merge_label_keys` adds each key once.
        if selector is not None and _mentions(selector, key) > 1:
            mistakes.invalid(f"{where}[{i}]", key, "exists in both matchLabelKeys and labelSelector")


def _mentions(selector: Object, key: str) -> int:
    expressions = sequence(selector, "matchExpressions")
    return (key in mapping(selector, "matchLabels")) + sum(text(each, "key") == key for each in expressions)


def merge_label_keys(spec: Object, labels: Mapping[str, str]) -> None:
    """Merge matchLabelKeys and mismatchLabelKeys, with the pod's own values, into the selectors of affinity terms."""
    for kind in _POD_AFFINITIES:
        for term in _pod_affinity_terms(mapping(spec, "affinity"), kind):
            _merge(term, labels)
    for constraint in sequence(spec, "topologySpreadConstraints"):
        _merge(constraint, labels)


def _merge(term: Object, labels: Mapping[str, str]) -> None:
    selector = term.get("labelSelector")
    if selector is None:
        return
    added = [
        {"key": key, "operator": operator, "values": [labels[key]]}
        for field, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn"))
        for key in sequence(term, field)
        if key in labels
    ]
    if added:
        selector["matchExpressions"] = [*sequence(selector, "matchExpressions"), *added]
