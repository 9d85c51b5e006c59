"""Label selectors and node selectors: the checks of both, and what label selectors match."""

from __future__ import annotations

from collections.abc import Mapping

from kubesched.admission import names
from kubesched.admission.reading import mapping, sequence, text
from kubesched.admission.rules import Mistakes, check_labels
from kubesched.api.kinds import Object
from kubesched.api.selectors import Requirement, Selector

NEEDS_VALUES = "must be specified when `operator` is 'In' or 'NotIn'"
NO_VALUES = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
_BAD_OPERATOR = "not a valid selector operator"


def check_label_selector(selector: Object, where: str, mistakes: Mistakes) -> None:
    check_labels(mapping(selector, "matchLabels"), f"{where}.matchLabels", mistakes)
    for i, requirement in enumerate(sequence(selector, "matchExpressions")):
        _check_label_requirement(requirement, f"{where}.matchExpressions[{i}]", mistakes)


def _check_label_requirement(requirement: Object, where: str, mistakes: Mistakes) -> None:
    operator, values = text(requirement, "operator"), sequence(requirement, "values")
    if operator in ("In", "NotIn"):
        mistakes.not_empty(f"{where}.values", values, NEEDS_VALUES)
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            mistakes.forbidden(f"{where}.values", NO_VALUES)
    else:
        mistakes.invalid(f"{where}.operator", operator, _BAD_OPERATOR)
    check_key(requirement, "key", where, mistakes)
    _check_values(values, where, mistakes)


def _check_values(values: list[str], where: str, mistakes: Mistakes) -> None:
    for i, value in enumerate(values):
        mistakes.invalid_each(f"{where}.values[{i}]", value, names.label_value(value))


def check_key(holder: Object, key: str, where: str, mistakes: Mistakes) -> None:
    """The field holds a label key."""
    value = text(holder, key)
    mistakes.invalid_each(f"{where}.{key}", value, names.label_key(value))


def check_node_selector(selector: Object, where: str, mistakes: Mistakes) -> None:
    terms = sequence(selector, "nodeSelectorTerms")
    mistakes.not_empty(f"{where}.nodeSelectorTerms", terms, "must have at least one node selector term")
    for i, term in enumerate(terms):
        check_node_term(term, f"{where}.nodeSelectorTerms[{i}]", mistakes)


def check_node_term(term: Object, where: str, mistakes: Mistakes) -> None:
    for i, requirement in enumerate(sequence(term, "matchExpressions")):
        _check_node_requirement(requirement, f"{where}.matchExpressions[{i}]", mistakes)
    for i, requirement in enumerate(sequence(term, "matchFields")):
        _check_node_field(requirement, f"{where}.matchFields[{i}]", mistakes)


def _check_node_requirement(requirement: Object, where: str, mistakes: Mistakes) -> None:
    if text(requirement, "operator") not in ("Gt", "Lt"):
        _check_label_requirement(requirement, where, mistakes)
        return
    values = sequence(requirement, "values")
    if len(values) != 1:
        mistakes.required(f"{where}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'")
    check_key(requirement, "key", where, mistakes)
    _check_values(values, where, mistakes)


def _check_node_field(requirement: Object, where: str, mistakes: Mistakes) -> None:
    operator, values = text(requirement, "operator"), sequence(requirement, "values")
    if operator not in ("In", "NotIn"):
        mistakes.invalid(f"{where}.operator", operator, _BAD_OPERATOR)
    elif len(values) != 1:
        why = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        mistakes.required(f"{where}.values", why)
    key = text(requirement, "key")
    if key != "metadata.name":
        mistakes.invalid(f"{where}.key", key, "not a valid field selector key")
        return
    for i, value in enumerate(values):
        mistakes.invalid_each(f"{where}.values[{i}]", value, names.subdomain(value))


def compile_label_selector(selector: Object) -> Selector:
    """The selector in a form that can be asked whether it matches."""
    labels = mapping(selector, "matchLabels")
    requirements = [Requirement(key, "In", frozenset((value,))) for key, value in labels.items()]
    requirements += [
        Requirement(text(expression, "key"), text(expression, "operator"), frozenset(sequence(expression, "values")))
        for expression in sequence(selector, "matchExpressions")
    ]
    return Selector(tuple(requirements))


def matches(selector: Object, labels: Mapping[str, str]) -> bool:
    return compile_label_selector(selector).matches(labels)


def check_optional_selector(holder: Object, key: str, where: str, mistakes: Mistakes) -> None:
    selector = holder.get(key)
    if selector is not None:
        check_label_selector(selector, f"{where}.{key}" if where else key, mistakes)
