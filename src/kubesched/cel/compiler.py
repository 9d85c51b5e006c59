"""Compiles checked trees to Python closures. CEL errors are exceptions; operators that absorb errors catch them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from kubesched.cel import closures
from kubesched.cel.checker import NAMED_TYPES, CheckedAst, qualified_name
from kubesched.cel.closures import Closure, Frame
from kubesched.cel.costs import LIST_COST, MAP_COST
from kubesched.cel.errors import AbsorbableError
from kubesched.cel.folds import fold
from kubesched.cel.functions import Function, Overload
from kubesched.cel.operators import index, optional_index, present
from kubesched.cel.syntax import Bind, Call, Fold, Ident, Index, ListNode, Literal, Logic, MapNode, Select, SyntaxNode
from kubesched.cel.types import TypeKind
from kubesched.cel.values import TypeValue, Value

DEVICE_SLOT, METER_SLOT, FIRST_LOCAL = 0, 1, 2
_ABSENT = object()
_CONSTANTS = frozenset({"quantity", "semver", "duration", "timestamp", "ip", "cidr", "url"})
"""Functions whose calls on constants are evaluated once, at compile time. Others could make large values at no cost."""


class NodeCode(NamedTuple):
    """What a node of the tree is compiled to: a closure; for constants also their value."""

    run: Closure
    constant: Value = _ABSENT

    @property
    def is_constant(self) -> bool:
        return self.constant is not _ABSENT


def constant(value: Value) -> NodeCode:
    """A constant, which needs no frame."""
    return NodeCode(lambda frame: value, value)


class Compiler:
    """Builds the closure of one expression. Does not count costs; `metering` has the one that does."""

    def __init__(self, checked: CheckedAst, variables: Sequence[str] = ()) -> None:
        """Variables have the first local slots, in this order."""
        self._checked = checked
        self._locals = {name: FIRST_LOCAL + i for i, name in enumerate(variables)}
        self.slots = FIRST_LOCAL + len(variables)

    def build(self, node: SyntaxNode) -> NodeCode:
        """The closure of a part of the expression."""
        return _BUILDERS[type(node)](self, node)

    def access(self, run: Closure, steps: int = 1) -> Closure:
        """A closure that reads a variable, a field or an entry, or several of them on its way."""
        return run

    def construct(self, run: Closure, cost: int) -> Closure:
        """A closure that makes a list or a map."""
        return run

    def apply(self, function: Function, fitting: Sequence[Overload], sure: bool, args: Sequence[NodeCode]) -> NodeCode:
        """A call with its arguments evaluated; `sure` if the static types leave no doubt about the overload."""
        if sure:
            run = fitting[0].run
        elif len(fitting) == 1:
            run = closures.guarded(function, fitting[0])
        else:
            run = closures.dispatching(function)
        built = NodeCode(_fastest(function.name, run, args))
        if function.name in _CONSTANTS and all(arg.is_constant for arg in args):
            try:
                return constant(run(*(arg.constant for arg in args)))
            except AbsorbableError:
                return built
        return built

    def _ident(self, node: Ident) -> NodeCode:
        name = node.name.removeprefix(".")
        if name in self._locals:
            slot = self._locals[name]
            return NodeCode(self.access(closures.local(slot)))
        if name == "device":
            return NodeCode(self.access(lambda frame: frame[DEVICE_SLOT].as_map()))
        return constant(TypeValue(name))

    def _select(self, node: Select) -> NodeCode:
        name = qualified_name(node)
        if name in NAMED_TYPES and (name or "").partition(".")[0] not in self._locals:
            return constant(TypeValue(name or ""))
        field = node.field
        if node.test_only:
            operand = self.build(node.operand).run
            return NodeCode(lambda frame: present(operand(frame), field))
        if node.optional or self._checked.type_of(node.operand).kind is TypeKind.OPTIONAL:
            operand = self.build(node.operand).run
            return NodeCode(self.access(lambda frame: optional_index(operand(frame), field)))
        if direct := self._direct(node):
            return NodeCode(direct)
        return NodeCode(self.access(closures.field(self.build(node.operand).run, field)))

    def _direct(self, node: Select) -> Closure | None:
        """`device.attributes["domain"].name` in one step: almost all selectors are made of that."""
        if "device" in self._locals:
            return None
        match node:
            case Select(operand=Ident(name="device")):
                return self.access(closures.DEVICE_FIELDS[node.field], 2)
            case Select(
                operand=Index(
                    operand=Select(
                        operand=Ident(name="device"), field=("attributes" | "capacity") as holder, optional=False
                    ),
                    key=Literal(value=str(domain)),
                    optional=False,
                )
            ):
                read = closures.attribute if holder == "attributes" else closures.capacity
                return self.access(read(domain, node.field), 4)
        return None

    def _index(self, node: Index) -> NodeCode:
        operand, key = self.build(node.operand).run, self.build(node.key)
        if node.optional:
            look, by = optional_index, key.run
            return NodeCode(self.access(lambda frame: look(operand(frame), by(frame))))
        if type(key.constant) is str:
            return NodeCode(self.access(closures.field(operand, key.constant)))
        by = key.run
        return NodeCode(self.access(lambda frame: index(operand(frame), by(frame))))

    def _call(self, node: Call) -> NodeCode:
        match node.function:
            case "_?_:_":
                return NodeCode(closures.conditional(*(self.build(arg).run for arg in node.args)))
            case "or" | "orValue" if node.target is not None:
                left, right = self.build(node.target).run, self.build(node.args[0]).run
                return NodeCode(closures.optional_or(left, right, unwrap=node.function == "orValue"))
        function, fitting = self._checked.call_of(node)
        operands = node.args
        if node.target is not None and fitting[0].method:
            operands = (node.target, *operands)
        are_static = not any(self._checked.type_of(operand).is_dynamic for operand in operands)
        sure = function.checks_itself or (len(fitting) == 1 and are_static)
        return self.apply(function, fitting, sure, [self.build(operand) for operand in operands])

    def _logic(self, node: Logic) -> NodeCode:
        return NodeCode(closures.logic([self.build(term).run for term in node.terms], node.function == "_||_"))

    def _list(self, node: ListNode) -> NodeCode:
        elements = [self.build(element) for element in node.elements]
        if not node.optional and all(element.is_constant for element in elements):
            return constant([element.constant for element in elements])
        runs = [element.run for element in elements]
        if not node.optional:
            return NodeCode(self.construct(lambda frame: [run(frame) for run in runs], LIST_COST))
        return NodeCode(self.construct(closures.optional_list(runs, node.optional), LIST_COST))

    def _map(self, node: MapNode) -> NodeCode:
        entries = [(self.build(entry.key), self.build(entry.value), entry.optional) for entry in node.entries]
        fixed = all(key.is_constant and value.is_constant and not optional for key, value, optional in entries)
        if fixed and all(closures.is_key(key.constant) for key, _, _ in entries):
            return constant({key.constant: value.constant for key, value, _ in entries})
        runs = [(key.run, value.run, optional) for key, value, optional in entries]
        return NodeCode(self.construct(closures.map_of(runs), MAP_COST))

    def new_slot(self) -> int:
        """A place in the frame for one more variable."""
        self.slots += 1
        return self.slots - 1

    def _within(self, variables: dict[str, int], node: SyntaxNode | None) -> Closure | None:
        if node is None:
            return None
        outer = self._locals
        self._locals = outer | variables
        built = self.build(node).run
        self._locals = outer
        return built

    def _bind(self, node: Bind) -> NodeCode:
        value, slot = self.build(node.value).run, self.new_slot()
        body = self._within({node.name: slot}, node.body)
        assert body is not None
        return NodeCode(closures.bound(slot, value, body))

    def _fold(self, node: Fold) -> NodeCode:
        over = self.build(node.range).run
        slots = [self.new_slot() for _ in node.variables]
        variables = dict(zip(node.variables, slots))
        predicate, transform = self._within(variables, node.predicate), self._within(variables, node.transform)
        return NodeCode(fold(node.kind, over, slots, predicate, transform, self.pay_fold()))

    def pay_fold(self) -> Callable[[Frame, int], None] | None:
        """What pays for the steps of a comprehension, if anything."""
        return None


_BUILDERS: dict[type[SyntaxNode], Callable[[Compiler, Any], NodeCode]] = {
    Literal: lambda compiler, node: constant(node.value),
    Ident: Compiler._ident,
    Select: Compiler._select,
    Index: Compiler._index,
    Call: Compiler._call,
    Logic: Compiler._logic,
    ListNode: Compiler._list,
    MapNode: Compiler._map,
    Fold: Compiler._fold,
    Bind: Compiler._bind,
}


def _fastest(name: str, run: Callable[..., Value], args: Sequence[NodeCode]) -> Closure:
    if len(args) == 2 and args[1].is_constant:
        right = args[1].constant
        return closures.comparison(name, args[0].run, right) or closures.applied_to_constant(run, args[0].run, right)
    return closures.applied(run, [arg.run for arg in args])
