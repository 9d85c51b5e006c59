"""Selectors compiled to a hashable form: label selectors, and the terms of node selectors.

A requirement is about one label, so the columns evaluate it once per distinct value instead of once per node.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from kubesched.api.affinity import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from kubesched.api.errors import UserError
from kubesched.api.meta import LabelSelector
from kubesched.api.node import Node
from kubesched.api.pod import Pod

_LABEL_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
_LABEL_NAME = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_DNS_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_INTEGER = re.compile(r"[+-]?[0-9]+")


class Requirement(NamedTuple):
    """One condition on the value of one label; `None` stands for an absent label."""

    key: str
    operator: str
    values: frozenset[str] = frozenset()

    def accepts(self, value: str | None) -> bool:
        match self.operator:
            case "In":
                return value in self.values
            case "NotIn":
                return value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
            case _:
                return self._compares(value)

    def _compares(self, value: str | None) -> bool:
        bound = parse_int64(next(iter(self.values), ""))
        number = None if value is None else parse_int64(value)
        if number is None or bound is None:
            return False
        return number > bound if self.operator == "Gt" else number < bound


class Selector(NamedTuple):
    """All requirements must hold. `nothing` marks the selector that matches no object at all."""

    requirements: tuple[Requirement, ...] = ()
    nothing: bool = False

    def matches(self, labels: Mapping[str, str]) -> bool:
        return not self.nothing and all(r.accepts(labels.get(r.key)) for r in self.requirements)

    @property
    def is_empty(self) -> bool:
        """Whether it has no requirement, and so matches everything."""
        return not self.requirements and not self.nothing

    def also(self, requirements: Iterable[Requirement]) -> Selector:
        """This selector, narrowed by further requirements."""
        if self.nothing:
            return self
        return Selector((*self.requirements, *requirements))


EVERYTHING = Selector()
NOTHING = Selector(nothing=True)


class NodeTerm(NamedTuple):
    """One term of a node selector. A term with a fault never matches; `fault` says why."""

    labels: tuple[Requirement, ...]
    fields: tuple[Requirement, ...]
    fault: str = ""


def compile_selector(selector: LabelSelector | None) -> Selector:
    """An absent selector matches nothing; an empty one matches everything."""
    if selector is None:
        return NOTHING
    exact = [Requirement(key, "In", frozenset((value,))) for key, value in selector.match_labels.items()]
    listed = [Requirement(e.key, e.operator, frozenset(e.values)) for e in selector.match_expressions]
    return Selector(tuple(sorted(exact + listed, key=lambda r: (r.key, r.operator))))


def read_selector(text: str) -> Selector:
    """`key=value`, `key!=value`, `key` or `!key`, separated by commas. Raises UserError."""
    requirements = []
    for part in text.split(","):
        part = part.strip()
        key, not_equal, value = part.partition("!=")
        if not not_equal:
            key, equal, value = part.partition("=")
            operator = "In" if equal else "DoesNotExist" if part.startswith("!") else "Exists"
        else:
            operator = "NotIn"
        key = key.removeprefix("!")
        if not key:
            raise UserError(f"{text!r}: expected KEY=VALUE, KEY!=VALUE, KEY or !KEY, separated by commas")
        values = frozenset((value.removeprefix("="),)) if operator in ("In", "NotIn") else frozenset[str]()
        requirements.append(Requirement(key, operator, values))
    return Selector(tuple(requirements))


def selector_from_labels(labels: Mapping[str, str]) -> Selector:
    """The selector that requires these labels; without any it matches everything."""
    return Selector(tuple(Requirement(k, "In", frozenset((v,))) for k, v in sorted(labels.items())))


def compile_node_selector(selector: NodeSelector) -> tuple[NodeTerm, ...]:
    """The terms of a node selector; empty terms match nothing and are left out."""
    terms = selector.node_selector_terms
    return tuple(compile_node_term(term) for term in terms if term.match_expressions or term.match_fields)


def compile_node_term(term: NodeSelectorTerm) -> NodeTerm:
    """One term, with the first fault that upstream's parser would find in it."""
    labels = tuple(_requirement(e) for e in term.match_expressions)
    fields = tuple(_requirement(e) for e in term.match_fields)
    faults = [fault for e in term.match_expressions for _, _, fault in label_requirement_faults(e)]
    faults += [fault for e in term.match_fields if (fault := _field_fault(e))]
    return NodeTerm(labels, fields, faults[0] if faults else "")


def node_matches(terms: Iterable[NodeTerm], node: Node) -> bool:
    """Whether any of the terms selects the node; one with a fault selects none. Of fields only the name is known."""
    fields = {"metadata.name": node.name}
    return any(
        Selector(term.labels).matches(node.metadata.labels) and Selector(term.fields).matches(fields)
        for term in terms
        if not term.fault
    )


class NodeRequirements:
    """The requirements of a pod's nodeSelector and required node affinity. A malformed term never matches."""

    __slots__ = ("labels", "terms")

    def __init__(self, pod: Pod) -> None:
        affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
        required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
        self.labels: tuple[Requirement, ...] = selector_from_labels(pod.spec.node_selector).requirements
        self.terms: tuple[NodeTerm, ...] | None = None if required is None else compile_node_selector(required)

    @property
    def allow_all(self) -> bool:
        return not self.labels and self.terms is None

    def allow(self, node: Node) -> bool:
        """Whether the pod may run on this one node."""
        labelled = Selector(self.labels).matches(node.metadata.labels)
        return labelled and (self.terms is None or node_matches(self.terms, node))


def _requirement(source: NodeSelectorRequirement) -> Requirement:
    return Requirement(source.key, source.operator, frozenset(source.values))


def label_requirement_faults(requirement: NodeSelectorRequirement) -> Iterator[tuple[str, object, str]]:
    """Why the requirement is malformed: field, its value, and the fault. The API server lets some of these pass."""
    key, values = requirement.key, requirement.values
    if fault := label_key_fault(key):
        yield "key", key, fault
    match requirement.operator:
        case "In" | "NotIn":
            if not values:
                yield "values", values, "for 'in', 'notin' operators, values set can't be empty"
        case "Exists" | "DoesNotExist":
            if values:
                yield "values", values, "values set must be empty for exists and does not exist"
        case "Gt" | "Lt":
            if len(values) != 1:
                yield "values", values, "for 'Gt', 'Lt' operators, exactly one value is required"
            for i, value in enumerate(values):
                if parse_int64(value) is None:
                    yield f"values[{i}]", value, "for 'Gt', 'Lt' operators, the value must be an integer"
        case unknown:  # of an API server newer than this
            yield "operator", unknown, f"{unknown!r} is not supported"
    for i, value in enumerate(values):
        if fault := label_value_fault(value):
            yield f"values[{i}][{key}]", value, fault


def _field_fault(requirement: NodeSelectorRequirement) -> str:
    if requirement.operator not in ("In", "NotIn"):
        return f"{requirement.operator!r} is not supported for fields"
    return "" if len(requirement.values) == 1 else "must have one element"


@lru_cache(maxsize=4096)
def label_key_fault(key: str) -> str:
    """Why this is no label key (`[domain/]name`), or nothing."""
    prefix, slash, name = key.rpartition("/")
    if slash and (len(prefix) > 253 or not _DNS_SUBDOMAIN.fullmatch(prefix)):
        return f"{key!r} is not a label key: the part before the slash must be a DNS subdomain"
    if len(name) > 63 or not _LABEL_NAME.fullmatch(name):
        return f"{key!r} is not a label key"
    return ""


@lru_cache(maxsize=4096)
def label_value_fault(value: str) -> str:
    """Why this is no label value, or nothing."""
    if len(value) > 63 or not _LABEL_VALUE.fullmatch(value):
        return f"{value!r} is not a label value"
    return ""


def parse_int64(text: str) -> int | None:
    """A 64-bit integer in decimal, or None."""
    if not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None
