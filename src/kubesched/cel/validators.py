"""Checks on expressions whose types are right: literals that can never work, and lists of mixed types."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeGuard

from kubesched.cel.checker import Checked
from kubesched.cel.errors import AbsorbableError, Issue
from kubesched.cel.formatting import clauses_of, refusal
from kubesched.cel.library.conversions import to_duration, to_timestamp
from kubesched.cel.library.regex import compile_pattern
from kubesched.cel.syntax import Call, ListNode, Literal, MapNode, Node, children
from kubesched.cel.types import CelType, Kind

_READERS: dict[str, Callable[[str], object]] = {
    "duration": to_duration,
    "timestamp": to_timestamp,
    "matches": compile_pattern,
}


def validate(tree: Node, checked: Checked) -> list[Issue]:
    """What is wrong with a type-checked expression all the same."""
    return [*_bad_literals(tree), *_mixed_literals(tree, checked), *_bad_formats(tree, checked)]


def _walk(node: Node, *, formats: bool = True) -> Iterator[Node]:
    yield node
    if not formats and _is_format(node):
        return
    for child in children(node):
        yield from _walk(child, formats=formats)


def _bad_literals(tree: Node) -> Iterator[Issue]:
    for node in _walk(tree):
        if not isinstance(node, Call) or node.function not in _READERS or not node.args:
            continue
        arg = node.args[0]
        if isinstance(arg, Literal) and isinstance(arg.value, str):
            try:
                _READERS[node.function](arg.value)
            except AbsorbableError:
                yield Issue(arg.offset, f"invalid {node.function} argument")


def _mixed_literals(tree: Node, checked: Checked) -> Iterator[Issue]:
    """Attributes have no static type, so a list of one attribute and one number is mixed; to format() it may be."""
    for node in _walk(tree, formats=False):
        if isinstance(node, ListNode):
            elements = [(e, _element_type(checked, e, at in node.optional)) for at, e in enumerate(node.elements)]
            yield from _first_mismatch(elements)
        elif isinstance(node, MapNode):
            yield from _first_mismatch([(entry.key, checked.type_of(entry.key)) for entry in node.entries])
            values = [(entry.value, _element_type(checked, entry.value, entry.optional)) for entry in node.entries]
            yield from _first_mismatch(values)


def _element_type(checked: Checked, node: Node, optional: bool) -> CelType:
    found = checked.type_of(node)
    return found.parameters[0] if optional and found.kind is Kind.OPTIONAL else found


def _first_mismatch(elements: list[tuple[Node, CelType]]) -> Iterator[Issue]:
    for node, found in elements[1:]:
        if found != elements[0][1]:
            yield Issue(node.offset, f"expected type '{elements[0][1]}' but found '{found}'")
            return


def _bad_formats(tree: Node, checked: Checked) -> Iterator[Issue]:
    """`"%d".format([x])` with a literal list: every clause must be able to print what it is given."""
    for node in _walk(tree):
        if _is_format(node) and isinstance(node.target, Literal) and isinstance(node.args[0], ListNode):
            yield from _bad_clauses(node, node.target, node.args[0].elements, checked)


def _is_format(node: Node) -> TypeGuard[Call]:
    return isinstance(node, Call) and node.function == "format" and len(node.args) == 1


def _bad_clauses(call: Call, template: Literal, elements: tuple[Node, ...], checked: Checked) -> Iterator[Issue]:
    if not isinstance(template.value, str):
        return
    try:
        clauses = clauses_of(template.value)
    except AbsorbableError as failure:
        yield Issue(call.offset, str(failure))
        return
    for clause, element in zip(clauses, elements):
        found = checked.type_of(element)
        name = "google.protobuf.Any" if found.kind is Kind.ANY else found.name
        if found.kind is not Kind.DYN and (words := refusal(clause, name)):
            yield Issue(element.offset, words)
            return
    if len(clauses) > len(elements):
        yield Issue(call.offset, f"index {len(elements)} out of range")
    elif len(clauses) < len(elements):
        counts = f"(expected {len(clauses)}, got {len(elements)})"
        yield Issue(call.offset, f"too many arguments supplied to string.format {counts}")
