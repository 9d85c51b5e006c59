"""Label selectors and node selectors: how they must be written, and what the former match."""

from __future__ import annotations

from collections.abc import Mapping

from kubesched.api.kinds import Object
from kubesched.api.selectors import Requirement, Selector
from kubesched.sandbox.admission import names
from kubesched.sandbox.admission.faults import Faults
from kubesched.sandbox.admission.metadata import check_labels
from kubesched.sandbox.admission.reading import child, optional_mapping, records, string_map, text, texts

NEEDS_VALUES = "must be specified when `operator` is 'In' or 'NotIn'"
NO_VALUES = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
_BAD_OPERATOR = "not a valid selector operator"


def check_label_selector(selector: Object, where: str, faults: Faults) -> None:
    check_labels(string_map(selector, "matchLabels", where), f"{where}.matchLabels", faults)
    for i, requirement in enumerate(records(selector, "matchExpressions", where)):
        _check_label_requirement(requirement, f"{where}.matchExpressions[{i}]", faults)


def _check_label_requirement(requirement: Object, where: str, faults: Faults) -> None:
    operator, values = text(requirement, "operator", where), texts(requirement, "values", where)
    if operator in ("In", "NotIn"):
        if not values:
            faults.required(f"{where}.values", NEEDS_VALUES)
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            faults.forbidden(f"{where}.values", NO_VALUES)
    else:
        faults.invalid(f"{where}.operator", operator, _BAD_OPERATOR)
    check_key(requirement, "key", where, faults)
    _check_values(values, where, faults)


def _check_values(values: list[str], where: str, faults: Faults) -> None:
    for i, value in enumerate(values):
        faults.invalid_each(f"{where}.values[{i}]", value, names.label_value(value))


def check_key(holder: Object, key: str, where: str, faults: Faults) -> None:
    """The field holds a label key."""
    value = text(holder, key, where)
    faults.invalid_each(f"{where}.{key}", value, names.label_key(value))


def check_node_selector(selector: Object, where: str, faults: Faults) -> None:
    terms = records(selector, "nodeSelectorTerms", where)
    if not terms:
        faults.required(f"{where}.nodeSelectorTerms", "must have at least one node selector term")
    for i, term in enumerate(terms):
        check_node_term(term, f"{where}.nodeSelectorTerms[{i}]", faults)


def check_node_term(term: Object, where: str, faults: Faults) -> None:
    for i, requirement in enumerate(records(term, "matchExpressions", where)):
        _check_node_requirement(requirement, f"{where}.matchExpressions[{i}]", faults)
    for i, requirement in enumerate(records(term, "matchFields", where)):
        _check_node_field(requirement, f"{where}.matchFields[{i}]", faults)


def _check_node_requirement(requirement: Object, where: str, faults: Faults) -> None:
    if text(requirement, "operator", where) not in ("Gt", "Lt"):
        _check_label_requirement(requirement, where, faults)
        return
    values = texts(requirement, "values", where)
    if len(values) != 1:
        faults.required(f"{where}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'")
    check_key(requirement, "key", where, faults)
    _check_values(values, where, faults)


def _check_node_field(requirement: Object, where: str, faults: Faults) -> None:
    operator, values = text(requirement, "operator", where), texts(requirement, "values", where)
    if operator not in ("In", "NotIn"):
        faults.invalid(f"{where}.operator", operator, _BAD_OPERATOR)
    elif len(values) != 1:
        why = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        faults.required(f"{where}.values", why)
    key = text(requirement, "key", where)
    if key != "metadata.name":
        faults.invalid(f"{where}.key", key, "not a valid field selector key")
        return
    for i, value in enumerate(values):
        faults.invalid_each(f"{where}.values[{i}]", value, names.subdomain(value))


def compiled(selector: Object, where: str) -> Selector:
    """The selector in a form that can be asked whether it matches."""
    wanted = [
        Requirement(key, "In", frozenset((value,))) for key, value in string_map(selector, "matchLabels", where).items()
    ]
    wanted += [
        Requirement(text(each, "key", where), text(each, "operator", where), frozenset(texts(each, "values", where)))
        for each in records(selector, "matchExpressions", where)
    ]
    return Selector(tuple(wanted))


def matches(selector: Object, labels: Mapping[str, str], where: str) -> bool:
    return compiled(selector, where).matches(labels)


def check_optional_selector(holder: Object, key: str, where: str, faults: Faults) -> None:
    selector = optional_mapping(holder, key, where)
    if selector is not None:
        check_label_selector(selector, child(where, key), faults)
