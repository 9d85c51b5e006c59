"""Device selectors: CEL expressions that say whether a device satisfies a request, compiled and validated."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from typing import TypeGuard

from kubesched.cel import library, types
from kubesched.cel.attributes import attributes_read_by
from kubesched.cel.checker import DEVICE_VARIABLE, CheckedAst, check
from kubesched.cel.compiler import FIRST_LOCAL, Compiler
from kubesched.cel.costs import CostMeter, Interrupt
from kubesched.cel.device import CelDevice
from kubesched.cel.errors import AbsorbableError, CompileError, CostLimitError, EvaluationError, Issue, describe_issues
from kubesched.cel.formatting import clauses_of, refusal
from kubesched.cel.library.strings import compile_pattern
from kubesched.cel.library.times import to_duration, to_timestamp
from kubesched.cel.metering import MeteringCompiler, may_become_expensive
from kubesched.cel.parser import parse
from kubesched.cel.syntax import Call, ListNode, Literal, MapNode, SyntaxNode, children
from kubesched.cel.types import CelType, TypeKind
from kubesched.cel.values import Value, readable, type_name

__all__ = ["CompiledSelector", "compile_selector", "library"]

_NO_BOOL = {
    "int": "unsupported type conversion from 'int' to bool",
    "uint": "unsupported type conversion from 'uint' to bool",
    "string": "unsupported native conversion from string to 'bool'",
    "double": "type conversion error from Double to 'bool'",
    "bytes": "type conversion error from Bytes to 'bool'",
    "list": "type conversion error from list to 'bool'",
    "map": "type conversion error from map to 'bool'",
    "type": "type conversion not supported for 'type'",
    "null_type": "type conversion error from 'null_type' to 'bool'",
    "kubernetes.Semver": "type conversion error from 'Semver' to 'bool'",
    "kubernetes.Quantity": "type conversion error from 'Quantity' to 'bool'",
    types.DURATION.name: "type conversion error from 'Duration' to 'bool'",
    types.TIMESTAMP.name: "type conversion error from 'Timestamp' to 'bool'",
}

_BYTES_PER_NODE, _BYTES_PER_METERED_NODE = 270, 540
"""What is made of a node of the tree takes no more."""


class CompiledSelector:
    """A compiled expression. Costs are counted only where they could reach the limit.

    The tree is not kept: it is three times as large as what is made of it, and seldom needed again.
    """

    def __init__(self, expression: str, *, with_lists: bool) -> None:
        tree, checked = _check(expression, with_lists)
        self.expression = expression
        self._with_lists = with_lists
        self.names = attributes_read_by(tree)
        """The attributes that it can depend on; None for any."""
        self._metered: MeteredSelector | None = None
        self._cheap = not may_become_expensive(tree)
        self._nodes = sum(1 for _ in _walk(tree))
        compiler = Compiler(checked)
        self._run = compiler.build(tree).run
        self._after_device: list[Value] = [None] * (compiler.slots - 1)

    def matches(self, device: CelDevice, interrupt: Interrupt | None = None) -> bool:
        """Whether the expression is true for the device. Raises EvaluationError.

        `interrupt` is called from time to time in a long evaluation.
        """
        if not (self._cheap and device.modest):
            return self.metered().matches(device, CostMeter(interrupt=interrupt))
        try:
            result = self._run([device, *self._after_device])
        except AbsorbableError as error:
            raise EvaluationError(str(error)) from None
        return result if type(result) is bool else _as_bool(result)

    @property
    def size(self) -> int:
        """Bytes, at most: an expression of ten characters may have as many nodes as another of two hundred."""
        copies, per_node = 2, _BYTES_PER_NODE
        if self._metered is not None or not self._cheap:
            copies, per_node = 3, _BYTES_PER_NODE + _BYTES_PER_METERED_NODE
        return copies * sys.getsizeof(self.expression) + per_node * self._nodes

    def metered(self) -> MeteredSelector:
        """The same selector, always counting."""
        if self._metered is None:
            self._metered = MeteredSelector(*_check(self.expression, self._with_lists))
        return self._metered


class MeteredSelector:
    """A compiled expression that counts what each evaluation costs, and stops it at the limit."""

    def __init__(self, tree: SyntaxNode, checked: CheckedAst) -> None:
        compiler = MeteringCompiler(checked)
        self._run = compiler.build(tree).run
        self._locals: list[Value] = [None] * (compiler.slots - FIRST_LOCAL)

    def matches(self, device: CelDevice, meter: CostMeter | None = None) -> bool:
        """Whether the expression is true for the device. Raises EvaluationError, also beyond the cost limit.

        A meter that is given says afterwards how much of the limit is left.
        """
        if device.problem is not None:
            raise EvaluationError(device.problem)
        try:
            result = self._run([device, meter or CostMeter(), *self._locals])
        except (AbsorbableError, CostLimitError) as error:
            raise EvaluationError(str(error)) from None
        return result if type(result) is bool else _as_bool(result)


def _as_bool(value: Value) -> bool:
    name = type_name(value)
    reason = _NO_BOOL.get(name, f"type conversion error from '{name}' to 'bool'")
    raise EvaluationError(f"CEL result of type {name} could not be converted to bool: {reason}")


def compile_selector(expression: str, *, with_lists: bool = False) -> CompiledSelector:
    """Compile an expression. CompileError if it is not valid for devices.

    `with_lists` if attributes may be lists: then their type is not known before they are read.
    """
    return CompiledSelector(readable(expression), with_lists=with_lists)


def _check(expression: str, with_lists: bool) -> tuple[SyntaxNode, CheckedAst]:
    attribute = types.DYN if with_lists else types.ANY
    tree, checked = parse_and_check(expression, DEVICE_VARIABLE, attribute)
    if checked.result not in (types.BOOL, attribute):
        raise CompileError(f"must evaluate to bool or the unknown type, not {checked.result}")
    return tree, checked


def parse_and_check(
    expression: str, variables: Mapping[str, CelType], attribute: CelType = types.ANY
) -> tuple[SyntaxNode, CheckedAst]:
    """The tree of an expression of some variables, and its types. Raises CompileError."""
    tree, issues = parse(expression)
    if tree is None or issues:
        raise CompileError(f"compilation failed: {describe_issues(expression, issues)}")
    checked = check(tree, variables, attribute)
    if issues := checked.issues or _validate(tree, checked):
        raise CompileError(f"compilation failed: {describe_issues(expression, issues)}")
    return tree, checked


_READERS: dict[str, Callable[[str], object]] = {
    "duration": to_duration,
    "timestamp": to_timestamp,
    "matches": compile_pattern,
}


def _validate(tree: SyntaxNode, checked: CheckedAst) -> list[Issue]:
    """Mistakes of a type-checked expression that upstream's validation finds: literals and formats."""
    return [*_bad_literals(tree), *_mixed_literals(tree, checked), *_bad_formats(tree, checked)]


def _walk(node: SyntaxNode, *, formats: bool = True) -> Iterator[SyntaxNode]:
    yield node
    if not formats and _is_format(node):
        return
    for child in children(node):
        yield from _walk(child, formats=formats)


def _bad_literals(tree: SyntaxNode) -> Iterator[Issue]:
    for node in _walk(tree):
        if not isinstance(node, Call) or node.function not in _READERS or not node.args:
            continue
        arg = node.args[0]
        if isinstance(arg, Literal) and isinstance(arg.value, str):
            try:
                _READERS[node.function](arg.value)
            except AbsorbableError:
                yield Issue(arg.offset, f"invalid {node.function} argument")


def _mixed_literals(tree: SyntaxNode, checked: CheckedAst) -> Iterator[Issue]:
    """Attributes have no static type, so a list of one attribute and one number is mixed; to format() it may be."""
    for node in _walk(tree, formats=False):
        if isinstance(node, ListNode):
            elements = [(e, _element_type(checked, e, at in node.optional)) for at, e in enumerate(node.elements)]
            yield from _first_mismatch(elements)
        elif isinstance(node, MapNode):
            yield from _first_mismatch([(entry.key, checked.type_of(entry.key)) for entry in node.entries])
            values = [(entry.value, _element_type(checked, entry.value, entry.optional)) for entry in node.entries]
            yield from _first_mismatch(values)


def _element_type(checked: CheckedAst, node: SyntaxNode, optional: bool) -> CelType:
    type_of_node = checked.type_of(node)
    return type_of_node.parameters[0] if optional and type_of_node.kind is TypeKind.OPTIONAL else type_of_node


def _first_mismatch(elements: list[tuple[SyntaxNode, CelType]]) -> Iterator[Issue]:
    for node, celtype in elements[1:]:
        if celtype != elements[0][1]:
            yield Issue(node.offset, f"expected type '{elements[0][1]}' but found '{celtype}'")
            return


def _bad_formats(tree: SyntaxNode, checked: CheckedAst) -> Iterator[Issue]:
    """`"%d".format([x])` with a literal list: every clause must be able to print what it is given."""
    for node in _walk(tree):
        if _is_format(node) and isinstance(node.target, Literal) and isinstance(node.args[0], ListNode):
            yield from _bad_clauses(node, node.target, node.args[0].elements, checked)


def _is_format(node: SyntaxNode) -> TypeGuard[Call]:
    return isinstance(node, Call) and node.function == "format" and len(node.args) == 1


def _bad_clauses(
    call: Call, template: Literal, elements: tuple[SyntaxNode, ...], checked: CheckedAst
) -> Iterator[Issue]:
    if not isinstance(template.value, str):
        return
    try:
        clauses = clauses_of(template.value)
    except AbsorbableError as error:
        yield Issue(call.offset, str(error))
        return
    for clause, element in zip(clauses, elements):
        element_type = checked.type_of(element)
        name = "google.protobuf.Any" if element_type.kind is TypeKind.ANY else element_type.name
        if element_type.kind is not TypeKind.DYN and (message := refusal(clause, name)):
            yield Issue(element.offset, message)
            return
    if len(clauses) > len(elements):
        yield Issue(call.offset, f"index {len(elements)} out of range")
    elif len(clauses) < len(elements):
        counts = f"(expected {len(clauses)}, got {len(elements)})"
        yield Issue(call.offset, f"too many arguments supplied to string.format {counts}")
