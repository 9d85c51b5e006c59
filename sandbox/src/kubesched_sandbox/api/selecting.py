"""Selectors of lists and watches, as clients write them in a query, and the fields that they may name."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from kubesched.admission.reading import value_at
from kubesched.api import kinds
from kubesched.api.api_error import bad_request
from kubesched.api.kinds import Object, Resource
from kubesched.api.selectors import EVERYTHING, Requirement, Selector, label_key_fault, label_value_fault, parse_int64

_TOKEN = re.compile(r"\s*(?:(?P<operator>==|!=|=|!|,|\(|\)|<|>)|(?P<word>[^\s=!,()<>]+))")
_COMPARISONS = {"=": "In", "==": "In", "!=": "NotIn", "in": "In", "notin": "NotIn", ">": "Gt", "<": "Lt"}
_END = ""


class FieldTerm(NamedTuple):
    """One field that must be, or must not be, a value."""

    path: str
    read: Field
    equal: bool
    value: str


class ListSelector(NamedTuple):
    """Which objects a list or a watch is about."""

    labels: Selector = EVERYTHING
    fields: tuple[FieldTerm, ...] = ()

    def matches(self, obj: Object) -> bool:
        for term in self.fields:
            if (term.read(obj) == term.value) is not term.equal:
                return False
        return self.labels is EVERYTHING or self.labels.matches(obj["metadata"].get("labels") or {})

    @property
    def is_everything(self) -> bool:
        return self.labels.is_empty and not self.fields

    @property
    def name(self) -> str | None:
        """The one name that objects must have, if there is one."""
        return next((term.value for term in self.fields if term.path == "metadata.name" and term.equal), None)

    @property
    def namespace(self) -> str | None:
        """The one namespace that objects must be in, if there is one."""
        return next((term.value for term in self.fields if term.path == "metadata.namespace" and term.equal), None)


ALL = ListSelector()


def selection(resource: Resource, labels: str | None = None, fields: str | None = None) -> ListSelector:
    """What a labelSelector and a fieldSelector ask for; a bad one is a BadRequest."""
    if not labels and not fields:
        return ALL
    return ListSelector(parse_labels(labels or ""), _parse_fields(resource, fields or ""))


@lru_cache(maxsize=1024)
def parse_labels(text: str) -> Selector:
    """A label selector in text: `a=b,c!=d,e in (f, g),h notin (i),j,!k,l>3`."""
    requirements = _LabelParser(text).requirements()
    return Selector(tuple(requirements)) if requirements else EVERYTHING


class _LabelParser:
    """Reads requirements token by token."""

    def __init__(self, text: str) -> None:
        self._tokens = [found.group().strip() for found in _TOKEN.finditer(text)]
        self._at = 0

    def requirements(self) -> list[Requirement]:
        found: list[Requirement] = []
        while self._peek() != _END:
            found.append(self._requirement())
            separator = self._next()
            if separator == _END:
                break
            if separator != ",":
                raise _unparsable(f"found '{separator}', expected: ',' or 'end of string'")
            if self._peek() == _END:
                raise _unparsable("found '', expected: identifier after ','")
        return found

    def _requirement(self) -> Requirement:
        absent = self._peek() == "!"
        if absent:
            self._next()
        key = self._word("identifier")
        if fault := label_key_fault(key):
            raise _unparsable(fault)
        if absent:
            return Requirement(key, "DoesNotExist")
        if self._peek() in (_END, ","):
            return Requirement(key, "Exists")
        symbol = self._next()
        operator = _COMPARISONS.get(symbol)
        if operator is None:
            raise _unparsable(f"found '{symbol}', expected: in, notin, =, ==, !=, gt, lt")
        values = self._set() if symbol in ("in", "notin") else frozenset((self._value(),))
        return Requirement(key, operator, _checked(operator, values))

    def _set(self) -> frozenset[str]:
        if (opening := self._next()) != "(":
            raise _unparsable(f"found '{opening}' expected: '('")
        values: set[str] = set()
        while True:
            values.add(self._value())
            match self._next():
                case ",":
                    continue
                case ")":
                    return frozenset(values)
                case other:
                    raise _unparsable(f"found '{other}', expected: ',' or ')'")

    def _value(self) -> str:
        """The next word; none at all is the empty value."""
        return "" if self._peek() in (_END, ",", ")") else self._word("identifier")

    def _word(self, expected: str) -> str:
        token = self._next()
        if not token or token[0] in "=!,()<>":
            raise _unparsable(f"found '{token}', expected: {expected}")
        return token

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else _END

    def _next(self) -> str:
        token = self._peek()
        self._at += 1
        return token


def _checked(operator: str, values: frozenset[str]) -> frozenset[str]:
    for value in values:
        if operator in ("Gt", "Lt") and parse_int64(value) is None:
            raise _unparsable("for 'Gt', 'Lt' operators, the value must be an integer")
        if fault := label_value_fault(value):
            raise _unparsable(fault)
    return values


def _unparsable(why: str) -> Exception:
    return bad_request(f"unable to parse requirement: {why}")


def _parse_fields(resource: Resource, text: str) -> tuple[FieldTerm, ...]:
    return tuple(_field_term(resource, term, text) for term in _split_unescaped(text) if term)


def _field_term(resource: Resource, term: str, text: str) -> FieldTerm:
    for at, character in enumerate(term):
        if term.startswith("!=", at):
            return _term(resource, term[:at], False, term[at + 2 :])
        if character == "=":
            return _term(resource, term[:at], True, term[at + 1 + term.startswith("==", at) :])
    raise bad_request(f"invalid selector: '{text}'; can't understand '{term}'")


def _term(resource: Resource, path: str, equal: bool, value: str) -> FieldTerm:
    read: Callable[[Object], str] | None = field_of(resource, path)
    if read is None:
        raise bad_request(f"field label not supported: {path}")
    return FieldTerm(path, read, equal, _unescaped(value))


def _split_unescaped(text: str) -> list[str]:
    terms, begin, escaped = [], 0, False
    for at, character in enumerate(text):
        if character == "," and not escaped:
            terms.append(text[begin:at])
            begin = at + 1
        escaped = character == "\\" and not escaped
    return [*terms, text[begin:]]


def _unescaped(value: str) -> str:
    result, escaped = [], False
    for character in value:
        if escaped:
            if character not in "\\,=":
                raise bad_request(f"invalid field selector: invalid escape sequence: \\{character}")
            result.append(character)
            escaped = False
        elif character == "\\":
            escaped = True
        elif character in ",=":
            raise bad_request(f"invalid field selector: unescaped character in field selector: {character}")
        else:
            result.append(character)
    if escaped:
        raise bad_request("invalid field selector: invalid escape sequence: \\")
    return "".join(result)


Field = Callable[[Object], str]
"""The value of one field as a selector sees it: text, empty when absent."""


def at(path: str, absent: str = "") -> Field:
    """The field at a dotted path."""
    steps = path.split(".")
    return lambda obj: _text(value_at(obj, *steps), absent)


def _text(value: Any, absent: str) -> str:
    if value is None:
        return absent
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _source(event: Object) -> str:
    return (event.get("source") or {}).get("component") or event.get("reportingComponent") or ""


def _paths(*paths: str) -> dict[str, Field]:
    return {path: at(path) for path in paths}


_EVERYWHERE = _paths("metadata.name", "metadata.namespace")
_REFERENCE = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_EVENT = {
    **{f"involvedObject.{part}": at(f"involvedObject.{part}") for part in _REFERENCE},
    **_paths("reason", "type"),
    "source": _source,
    "reportingComponent": at("reportingComponent"),
}
# Events are stored in the older shape, so the newer names read the older fields.
_NEWER_EVENT = {
    **_EVENT,
    **{f"regarding.{part}": at(f"involvedObject.{part}") for part in _REFERENCE},
    "reportingController": at("reportingComponent"),
}

_FIELDS: dict[str, dict[str, Field]] = {
    kinds.PODS.path: {
        **_paths(
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "status.phase",
            "status.podIP",
            "status.nominatedNodeName",
        ),
        "spec.hostNetwork": at("spec.hostNetwork", "false"),
        "status.podIPs": at("status.podIP"),
    },
    kinds.NODES.path: {"spec.unschedulable": at("spec.unschedulable", "false")},
    kinds.NAMESPACES.path: _paths("status.phase"),
    kinds.SECRETS.path: _paths("type"),
    kinds.SERVICES.path: _paths("spec.clusterIP", "spec.type"),
    kinds.CORE_EVENTS.path: _EVENT,
    kinds.EVENTS.path: _NEWER_EVENT,
    kinds.REPLICA_SETS.path: {"status.replicas": at("status.replicas", "0")},
    kinds.REPLICATION_CONTROLLERS.path: {"status.replicas": at("status.replicas", "0")},
    kinds.JOBS.path: {"status.successful": at("status.succeeded", "0")},
    kinds.RESOURCE_SLICES.path: _paths("spec.nodeName", "spec.driver"),
}


def field_of(resource: Resource, path: str) -> Field | None:
    """How to read a field that selectors of this resource may name; None for any other."""
    if path in resource.selectable_fields:
        return at(path)
    return _EVERYWHERE.get(path) or _FIELDS.get(resource.path, {}).get(path)
