"""The type checker: refuses expressions that are wrong for every device, before any is evaluated."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from kubesched.cel import types
from kubesched.cel.errors import Issue
from kubesched.cel.functions import FUNCTIONS, Function, Overload
from kubesched.cel.syntax import (
    Bind,
    Call,
    Fold,
    FoldKind,
    Ident,
    Index,
    ListNode,
    Literal,
    Logic,
    MapNode,
    Message,
    Select,
    SyntaxNode,
)
from kubesched.cel.types import CelType, Substitution, TypeKind
from kubesched.cel.values import Uint

_LITERALS: dict[type, CelType] = {
    bool: types.BOOL,
    int: types.INT,
    Uint: types.UINT,
    float: types.DOUBLE,
    str: types.STRING,
    bytes: types.BYTES,
    type(None): types.NULL,
}
_DEVICE_FIELDS = {
    "driver": types.STRING,
    "capacity": types.map_of(types.STRING, types.map_of(types.STRING, types.QUANTITY)),
    "allowMultipleAllocations": types.BOOL,
}
NAMED_TYPES: dict[str, CelType] = {
    celtype.name: celtype
    for celtype in (
        *(types.BOOL, types.INT, types.UINT, types.DOUBLE, types.STRING, types.BYTES),
        *(types.DURATION, types.TIMESTAMP, types.QUANTITY, types.SEMVER, types.URL, types.IP, types.CIDR),
        types.list_of(types.DYN),
        types.map_of(types.DYN, types.DYN),
        types.optional_of(types.DYN),
        types.type_of(types.DYN),
    )
} | {"null_type": types.NULL}
"""What a bare name can mean besides a variable."""


class CheckedAst:
    """The types of an expression's parts, and which overloads its calls may come to."""

    def __init__(self) -> None:
        self.issues: list[Issue] = []
        self.result = types.ERROR
        self.types: dict[int, CelType] = {}
        """By the identity of the node."""
        self.calls: dict[int, tuple[Function, tuple[Overload, ...]]] = {}

    def type_of(self, node: SyntaxNode) -> CelType:
        """The static type of a part of the expression."""
        return self.types[id(node)]

    def call_of(self, node: SyntaxNode) -> tuple[Function, tuple[Overload, ...]]:
        """The function a call names (which may be a qualified one), and the overloads that fit its types."""
        return self.calls[id(node)]


DEVICE_VARIABLE: Mapping[str, CelType] = {"device": types.DEVICE}


def check(tree: SyntaxNode, variables: Mapping[str, CelType], attribute: CelType) -> CheckedAst:
    """Type-check a whole expression: `variables` have the types of its variables, `attribute` is that of attributes."""
    checker = _Checker(variables, attribute)
    result = checker.check(tree)
    checked = checker.checked
    checked.result = checker.solutions.resolve(result, unknown_is_dyn=True)
    for key, celtype in checked.types.items():
        checked.types[key] = checker.solutions.resolve(celtype, unknown_is_dyn=True)
    return checked


def qualified_name(node: SyntaxNode | None) -> str | None:
    """`a.b.c`, if the node spells a name and nothing else."""
    if isinstance(node, Ident):
        return node.name
    if isinstance(node, Select) and not (node.test_only or node.optional):
        prefix = qualified_name(node.operand)
        return None if prefix is None else f"{prefix}.{node.field}"
    return None


class _Checker:
    def __init__(self, variables: Mapping[str, CelType], attribute: CelType) -> None:
        attributes = types.map_of(types.STRING, types.map_of(types.STRING, attribute))
        self._device_fields = {**_DEVICE_FIELDS, "attributes": attributes}
        self.checked = CheckedAst()
        self.solutions = Substitution()
        self._scope = dict(variables)

    def check(self, node: SyntaxNode) -> CelType:
        node_type = _RULES[type(node)](self, node)
        self.checked.types[id(node)] = node_type
        return node_type

    def _report(self, node: SyntaxNode, message: str) -> CelType:
        self.checked.issues.append(Issue(node.offset, message))
        return types.ERROR

    def _undeclared(self, node: SyntaxNode, name: str) -> CelType:
        return self._report(node, f"undeclared reference to '{name}' (in container '')")

    def _mismatch(self, node: SyntaxNode, expected: CelType, actual: CelType) -> CelType:
        return self._report(node, f"expected type '{expected}' but found '{actual}'")

    @contextmanager
    def _scoped(self, variables: dict[str, CelType]) -> Iterator[None]:
        outer = self._scope
        self._scope = outer | variables
        yield
        self._scope = outer

    def _ident(self, node: Ident) -> CelType:
        name = node.name.removeprefix(".")
        if name in self._scope:
            return self._scope[name]
        if name in NAMED_TYPES:
            return types.type_of(NAMED_TYPES[name])
        return self._undeclared(node, node.name)

    def _select(self, node: Select) -> CelType:
        name = qualified_name(node)
        if name in NAMED_TYPES and (name or "").partition(".")[0] not in self._scope:
            return types.type_of(NAMED_TYPES[name or ""])
        operand = self.solutions.resolve(self.check(node.operand))
        optional = operand.kind is TypeKind.OPTIONAL
        field = self._field(node, operand.parameters[0] if optional else operand)
        if node.test_only:
            return types.BOOL
        return types.optional_of(field) if optional or node.optional else field

    def _field(self, node: Select, holder: CelType) -> CelType:
        if holder.kind is TypeKind.MAP:
            return holder.parameters[1]
        if holder is types.DEVICE or holder.name == types.DEVICE.name:
            if node.field in self._device_fields:
                return self._device_fields[node.field]
            return self._report(node, f"undefined field '{node.field}'")
        if holder.kind is TypeKind.VARIABLE:
            self.solutions.assign([types.DYN], [holder])
            return types.DYN
        if holder.is_dynamic or holder.kind is TypeKind.ERROR:
            return types.DYN
        if holder.kind is TypeKind.OBJECT and holder not in (types.DURATION, types.TIMESTAMP):
            return self._report(node, f"undefined field '{node.field}'")
        self._report(node, f"type '{holder}' does not support field selection")
        return types.DYN

    def _index(self, node: Index) -> CelType:
        for operand in (node.operand, node.key):
            self.check(operand)
        return self._resolve(node, FUNCTIONS["_[?_]" if node.optional else "_[_]"], None, (node.operand, node.key))

    def _call(self, node: Call) -> CelType:
        for arg in node.args:
            self.check(arg)
        if node.target is None:
            function = FUNCTIONS.get(node.function.removeprefix("."))
            if function is None:
                return self._undeclared(node, node.function)
            return self._resolve(node, function, None, node.args)
        prefix = qualified_name(node.target)
        if prefix is not None and (namespaced := FUNCTIONS.get(f"{prefix.removeprefix('.')}.{node.function}")):
            return self._resolve(node, namespaced, None, node.args)
        self.check(node.target)
        member = FUNCTIONS.get(node.function)
        if member is None:
            return self._undeclared(node, node.function)
        return self._resolve(node, member, node.target, node.args)

    def _resolve(
        self, node: SyntaxNode, function: Function, target: SyntaxNode | None, args: Sequence[SyntaxNode]
    ) -> CelType:
        operands = args if target is None else (target, *args)
        arguments = [self.checked.types[id(operand)] for operand in operands]
        fitting: list[Overload] = []
        result: CelType | None = None
        for overload in function.overloads:
            if overload.method is (target is None):
                continue
            parameters, returned = self._instantiate(overload)
            if self.solutions.assign(arguments, parameters):
                fitting.append(overload)
                returned = self.solutions.resolve(returned)
                if result is None:
                    result = returned
                elif not result.is_dynamic and result != returned:
                    result = types.DYN
        if result is None:
            shown = [self.solutions.resolve(argument, unknown_is_dyn=True) for argument in arguments]
            applied = types.signature(shown, method=target is not None)
            return self._report(node, f"found no matching overload for '{function.name}' applied to '{applied}'")
        self.checked.calls[id(node)] = function, tuple(fitting)
        return result

    def _instantiate(self, overload: Overload) -> tuple[list[CelType], CelType]:
        """The overload with its own fresh type variables."""
        fresh: dict[str, CelType] = {}

        def renamed(celtype: CelType) -> CelType:
            if celtype.kind is TypeKind.VARIABLE:
                if celtype.name not in fresh:
                    fresh[celtype.name] = self.solutions.fresh()
                return fresh[celtype.name]
            return CelType(celtype.kind, celtype.name, tuple(map(renamed, celtype.parameters)))

        return [renamed(parameter) for parameter in overload.parameters], renamed(overload.result)

    def _logic(self, node: Logic) -> CelType:
        result = types.BOOL
        for term in node.terms:
            term_type = self.check(term)
            if not self.solutions.assign([term_type], [types.BOOL]):
                result = self._mismatch(term, types.BOOL, term_type)
        return result

    def _list(self, node: ListNode) -> CelType:
        joined: CelType | None = None
        for at, element in enumerate(node.elements):
            type_ = self.check(element)
            joined = self._join(element, joined, self._unwrap(element, type_) if at in node.optional else type_)
        return types.list_of(joined or self.solutions.fresh())

    def _map(self, node: MapNode) -> CelType:
        key: CelType | None = None
        value: CelType | None = None
        for entry in node.entries:
            key = self._join(entry.key, key, self.check(entry.key))
            type_ = self.check(entry.value)
            value = self._join(entry.value, value, self._unwrap(entry.value, type_) if entry.optional else type_)
        return types.map_of(key or self.solutions.fresh(), value or self.solutions.fresh())

    def _unwrap(self, node: SyntaxNode, celtype: CelType) -> CelType:
        if celtype.kind is TypeKind.OPTIONAL:
            return celtype.parameters[0]
        return celtype if celtype.is_dynamic else self._mismatch(node, types.optional_of(celtype), celtype)

    def _join(self, node: SyntaxNode, previous: CelType | None, current: CelType) -> CelType:
        joined = self.solutions.join(previous, current)
        if joined is None:
            assert previous is not None
            return self._mismatch(node, previous, current)
        return joined

    def _bind(self, node: Bind) -> CelType:
        with self._scoped({node.name: self.check(node.value)}):
            return self.check(node.body)

    def _fold(self, node: Fold) -> CelType:
        variables = self._running(node, self.solutions.resolve(self.check(node.range)))
        with self._scoped(dict(zip(node.variables, variables))):
            predicate = None if node.predicate is None else self.check(node.predicate)
            transformed = None if node.transform is None else self.check(node.transform)
        if predicate is not None and not self.solutions.assign([predicate], [types.BOOL]):
            assert node.predicate is not None
            self._not_a_condition(node, node.predicate, predicate)
        match node.kind:
            case FoldKind.MAP:
                return types.list_of(transformed or types.DYN)
            case FoldKind.FILTER:
                return types.list_of(variables[0])
            case FoldKind.TRANSFORM_MAP:
                return types.map_of(variables[0], transformed or types.DYN)
            case FoldKind.TRANSFORM_MAP_ENTRY:
                return transformed or types.DYN
            case _:
                return types.BOOL

    def _not_a_condition(self, node: Fold, predicate: SyntaxNode, celtype: CelType) -> None:
        if node.kind in (FoldKind.ALL, FoldKind.EXISTS):
            self._mismatch(predicate, types.BOOL, celtype)
            return
        result = types.INT if node.kind is FoldKind.EXISTS_ONE else types.list_of(types.DYN)
        applied = types.signature((celtype, result, result), method=False)
        self._report(node, f"found no matching overload for '_?_:_' applied to '{applied}'")

    def _running(self, node: Fold, over: CelType) -> tuple[CelType, ...]:
        """The types of the variables of a comprehension."""
        two = len(node.variables) == 2
        if over.kind is TypeKind.LIST:
            return (types.INT, over.parameters[0]) if two else (over.parameters[0],)
        if over.kind is TypeKind.MAP:
            return over.parameters if two else (over.parameters[0],)
        if over.kind in (TypeKind.DYN, TypeKind.ERROR, TypeKind.VARIABLE):
            self.solutions.assign([types.DYN], [over])
            return (types.DYN,) * len(node.variables)
        message = f"expression of type '{over}' cannot be range of a comprehension (must be list, map, or dynamic)"
        self._report(node.range, message)
        return (types.ERROR,) * len(node.variables)


_RULES: dict[type[SyntaxNode], Callable[[_Checker, Any], CelType]] = {
    Literal: lambda checker, node: _LITERALS[type(node.value)],
    Ident: _Checker._ident,
    Select: _Checker._select,
    Index: _Checker._index,
    Call: _Checker._call,
    Logic: _Checker._logic,
    ListNode: _Checker._list,
    MapNode: _Checker._map,
    Fold: _Checker._fold,
    Bind: _Checker._bind,
    Message: lambda checker, node: checker._undeclared(node, node.name),
}
