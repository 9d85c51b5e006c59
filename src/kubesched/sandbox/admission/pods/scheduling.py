"""Where pods may go: tolerations, affinity, spread constraints, gates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kubesched.api.kinds import Object
from kubesched.api.selectors import parse_int64
from kubesched.sandbox.admission import names
from kubesched.sandbox.admission.faults import NOT_POSITIVE, Faults
from kubesched.sandbox.admission.reading import integer, mapping, optional_mapping, records, string_map, text, texts
from kubesched.sandbox.admission.selectors import (
    check_key,
    check_label_selector,
    check_node_selector,
    check_node_term,
    check_optional_selector,
)

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_POD_AFFINITIES = ("podAffinity", "podAntiAffinity")
_GIVEN_UP_AFTER = 300
_NODE_TROUBLE = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def tolerate_node_trouble(spec: Object, where: str) -> None:
    """Pods stay for a while on nodes that fell silent, unless they say otherwise."""
    given = records(spec, "tolerations", where)
    added = [
        {"effect": "NoExecute", "key": key, "operator": "Exists", "tolerationSeconds": _GIVEN_UP_AFTER}
        for key in _NODE_TROUBLE
        if not any(
            each.get("key") in (key, None, "") and each.get("effect") in ("NoExecute", None, "") for each in given
        )
    ]
    if added:
        spec["tolerations"] = [*given, *added]


def check_tolerations(tolerations: list[Object], where: str, faults: Faults) -> None:
    for i, toleration in enumerate(tolerations):
        _check_toleration(toleration, f"{where}[{i}]", faults)


def _check_toleration(toleration: Object, where: str, faults: Faults) -> None:
    key, operator = text(toleration, "key", where), text(toleration, "operator", where)
    value, effect = text(toleration, "value", where), text(toleration, "effect", where)
    if key:
        faults.invalid_each(f"{where}.key", key, names.label_key(key))
    elif operator != "Exists":
        why = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        faults.invalid(f"{where}.operator", operator, why)
    if integer(toleration, "tolerationSeconds", where) is not None and effect != "NoExecute":
        faults.invalid(f"{where}.effect", effect, "effect must be 'NoExecute' when `tolerationSeconds` is set")
    if operator in ("", "Equal"):
        if told := names.label_value(value):
            faults.invalid(f"{where}.operator", value, ";".join(told))
    elif operator == "Exists":
        if value:
            faults.invalid(f"{where}.operator", value, "value must be empty when `operator` is 'Exists'")
    elif operator in ("Lt", "Gt"):
        if parse_int64(value) is None:
            faults.invalid(f"{where}.value", value, "must be a valid decimal integer in canonical form")
    else:
        faults.unsupported(f"{where}.operator", operator, ("Equal", "Exists"))
    if effect and effect not in EFFECTS:
        faults.unsupported(f"{where}.effect", effect, EFFECTS)


def check_gates(gates: list[Object], where: str, faults: Faults) -> None:
    seen: set[str] = set()
    for i, gate in enumerate(gates):
        name = text(gate, "name", f"{where}[{i}]")
        faults.invalid_each(f"{where}[{i}]", name, names.label_key(name))
        if name in seen:
            faults.duplicate(f"{where}[{i}]", name)
        seen.add(name)


# -- affinity ---------------------------------------------------------------------------------------------------------


def check_affinity(affinity: Object, where: str, faults: Faults) -> None:
    nodes, field = mapping(affinity, "nodeAffinity", where), f"{where}.nodeAffinity"
    required = optional_mapping(nodes, REQUIRED, field)
    if required is not None:
        check_node_selector(required, f"{field}.{REQUIRED}", faults)
    for i, term in enumerate(records(nodes, PREFERRED, field)):
        at = f"{field}.{PREFERRED}[{i}]"
        _check_weight(term, at, faults)
        check_node_term(mapping(term, "preference", at), f"{at}.preference", faults)
    for kind in _POD_AFFINITIES:
        for term, at in _pod_terms(affinity, kind, where, faults):
            _check_pod_term(term, at, faults)


def _pod_terms(affinity: Object, kind: str, where: str, faults: Faults | None) -> Iterator[tuple[Object, str]]:
    """The terms with their paths; weights are checked on the way if faults are to be collected."""
    pods, field = mapping(affinity, kind, where), f"{where}.{kind}"
    for i, term in enumerate(records(pods, REQUIRED, field)):
        yield term, f"{field}.{REQUIRED}[{i}]"
    for i, weighted in enumerate(records(pods, PREFERRED, field)):
        at = f"{field}.{PREFERRED}[{i}]"
        if faults is not None:
            _check_weight(weighted, at, faults)
        yield mapping(weighted, "podAffinityTerm", at), f"{at}.podAffinityTerm"


def _check_weight(term: Object, where: str, faults: Faults) -> None:
    weight = integer(term, "weight", where) or 0
    if not 1 <= weight <= 100:
        faults.invalid(f"{where}.weight", weight, "must be in the range 1-100")


def _check_pod_term(term: Object, where: str, faults: Faults) -> None:
    check_optional_selector(term, "labelSelector", where, faults)
    check_optional_selector(term, "namespaceSelector", where, faults)
    for name in texts(term, "namespaces", where):
        faults.invalid_each(f"{where}.namespace", name, names.label(name))
    _check_label_keys(term, where, faults)
    if not text(term, "topologyKey", where):
        faults.required(f"{where}.topologyKey", "can not be empty")
    check_key(term, "topologyKey", where, faults)


# -- spreading --------------------------------------------------------------------------------------------------------


def check_spread(constraints: list[Object], where: str, faults: Faults) -> None:
    pairs: list[tuple[str, str]] = []
    for i, constraint in enumerate(constraints):
        _check_constraint(constraint, f"{where}[{i}]", faults)
        pairs.append((text(constraint, "topologyKey", where), text(constraint, "whenUnsatisfiable", where)))
    for i, pair in enumerate(pairs):
        if pair in pairs[i + 1 :]:
            faults.duplicate(f"{where}[{i}].{{topologyKey, whenUnsatisfiable}}", f"{{{pair[0]}, {pair[1]}}}")


def _check_constraint(constraint: Object, where: str, faults: Faults) -> None:
    skew = integer(constraint, "maxSkew", where) or 0
    if skew <= 0:
        faults.invalid(f"{where}.maxSkew", skew, NOT_POSITIVE)
    if not text(constraint, "topologyKey", where):
        faults.required(f"{where}.topologyKey", "can not be empty")
    action = text(constraint, "whenUnsatisfiable", where)
    faults.one_of(f"{where}.whenUnsatisfiable", action, ("DoNotSchedule", "ScheduleAnyway"))
    domains = integer(constraint, "minDomains", where)
    if domains is not None:
        if domains <= 0:
            faults.invalid(f"{where}.minDomains", domains, NOT_POSITIVE)
        if action != "DoNotSchedule":
            why = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
            faults.invalid(f"{where}.minDomains", domains, why)
    for key in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        if constraint.get(key) is not None:
            faults.one_of(f"{where}.{key}", text(constraint, key, where), ("Honor", "Ignore"))
    _check_label_keys(constraint, where, faults)
    selector = optional_mapping(constraint, "labelSelector", where)
    if selector is not None:
        check_label_selector(selector, f"{where}.labelSelector", faults)


# -- label keys -------------------------------------------------------------------------------------------------------


def _check_label_keys(term: Object, where: str, faults: Faults) -> None:
    """Keys whose values come from the pod's own labels, and so must not be in the selector besides."""
    selector = optional_mapping(term, "labelSelector", where)
    same, other = texts(term, "matchLabelKeys", where), texts(term, "mismatchLabelKeys", where)
    for field, keys in (("matchLabelKeys", same), ("mismatchLabelKeys", other)):
        if keys and selector is None:
            faults.forbidden(f"{where}.{field}", "must not be specified when labelSelector is not set")
        for i, key in enumerate(keys):
            faults.invalid_each(f"{where}.{field}[{i}]", key, names.label_key(key))
    for i, key in enumerate(same):
        if key in other:
            why = "exists in both matchLabelKeys and mismatchLabelKeys"
            faults.invalid(f"{where}.matchLabelKeys[{i}]", key, why)
        # Once is what the server itself adds.
        if selector is not None and _mentions(selector, key, where) > 1:
            faults.invalid(f"{where}[{i}]", key, "exists in both matchLabelKeys and labelSelector")


def _mentions(selector: Object, key: str, where: str) -> int:
    keys = [*string_map(selector, "matchLabels", where)]
    keys += [text(each, "key", where) for each in records(selector, "matchExpressions", where)]
    return keys.count(key)


def merge_label_keys(spec: Object, labels: Mapping[str, str], where: str) -> None:
    """Label keys that a pod wants to share with its neighbours, or not, become part of the selectors."""
    affinity = mapping(spec, "affinity", where)
    for kind in _POD_AFFINITIES:
        for term, at in _pod_terms(affinity, kind, where, None):
            _merge(term, labels, at)
    for constraint in records(spec, "topologySpreadConstraints", where):
        _merge(constraint, labels, where)


def _merge(term: Object, labels: Mapping[str, str], where: str) -> None:
    selector = optional_mapping(term, "labelSelector", where)
    if selector is None:
        return
    added = [
        {"key": key, "operator": operator, "values": [labels[key]]}
        for field, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn"))
        for key in texts(term, field, where)
        if key in labels
    ]
    if added:
        selector["matchExpressions"] = [*records(selector, "matchExpressions", where), *added]
