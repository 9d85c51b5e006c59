"""Checked trees to Python closures.

A closure takes a frame: the device, the meter, then a slot for every local variable. Errors of CEL are exceptions, so
that everything that does not absorb them just lets them pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from kubesched.cel.checker import NAMED_TYPES, Checked, qualified_name
from kubesched.cel.errors import Failure, no_such_key, no_such_overload
from kubesched.cel.folds import fold
from kubesched.cel.functions import Function, Overload
from kubesched.cel.operators import compare, equal, index, optional_index, present
from kubesched.cel.syntax import (
    Bind,
    Call,
    Fold,
    Ident,
    Index,
    ListNode,
    Literal,
    Logic,
    MapNode,
    Node,
    Select,
)
from kubesched.cel.types import Kind
from kubesched.cel.values import Optional, TypeValue, Value

Frame = list[Value]
Closure = Callable[[Frame], Value]

DEVICE_SLOT, METER_SLOT, FIRST_LOCAL = 0, 1, 2
_ABSENT = object()


class Built(NamedTuple):
    """The closure of a node; for constants also the value it always has."""

    run: Closure
    constant: Value = _ABSENT

    @property
    def is_constant(self) -> bool:
        return self.constant is not _ABSENT


def constant(value: Value) -> Built:
    """What never changes."""
    return Built(lambda frame: value, value)


class Compiler:
    """Builds the closure of one expression. Does not count costs; `metering` has the one that does."""

    def __init__(self, checked: Checked) -> None:
        self.slots = FIRST_LOCAL
        self._checked = checked
        self._locals: dict[str, int] = {}

    def build(self, node: Node) -> Built:
        """The closure of a part of the expression."""
        match node:
            case Literal():
                return constant(node.value)
            case Ident():
                return self._ident(node)
            case Select():
                return self._select(node)
            case Index():
                return self._index(node)
            case Call():
                return self._call(node)
            case Logic():
                return Built(_logic([self.build(term).run for term in node.terms], node.function == "_||_"))
            case ListNode():
                return self._list(node)
            case MapNode():
                return self._map(node)
            case Fold():
                return self._fold(node)
            case Bind():
                return self._bind(node)
        raise AssertionError(node)

    # -- what the metering compiler does differently ---------------------------------------------------------------

    def access(self, run: Closure) -> Closure:
        """A closure that reads a variable, a field or an entry."""
        return run

    def made(self, run: Closure, cost: int) -> Closure:
        """A closure that makes a list or a map."""
        return run

    def apply(self, function: Function, fitting: Sequence[Overload], sure: bool, args: Sequence[Built]) -> Built:
        """A call with its arguments evaluated; `sure` if the static types leave no doubt about the overload."""
        if sure:
            run = fitting[0].run
        elif len(fitting) == 1:
            run = _guarded(function, fitting[0])
        else:
            run = _dispatching(function)
        built = Built(_applied(run, [arg.run for arg in args]))
        if all(arg.is_constant for arg in args):
            try:
                return constant(run(*(arg.constant for arg in args)))
            except Failure:
                return built
        return _comparison(function.name, args) or built

    # -- variables and fields ----------------------------------------------------------------------------------------

    def _ident(self, node: Ident) -> Built:
        name = node.name.removeprefix(".")
        if name in self._locals:
            slot = self._locals[name]
            return Built(self.access(_local(slot)))
        if name == "device":
            return Built(self.access(lambda frame: frame[DEVICE_SLOT].as_map()))
        return constant(TypeValue(NAMED_TYPES[name].name))

    def _select(self, node: Select) -> Built:
        name = qualified_name(node)
        if name in NAMED_TYPES and (name or "").partition(".")[0] not in self._locals:
            return constant(TypeValue(name or ""))
        field = node.field
        if node.test_only:
            operand = self.build(node.operand).run
            return Built(lambda frame: present(operand(frame), field))
        if node.optional or self._checked.type_of(node.operand).kind is Kind.OPTIONAL:
            operand = self.build(node.operand).run
            return Built(self.access(lambda frame: optional_index(operand(frame), field)))
        if direct := self._direct(node):
            return Built(direct)
        return Built(self.access(_field(self.build(node.operand).run, field)))

    def _direct(self, node: Node) -> Closure | None:
        """`device.attributes["domain"].name` in one step: almost all selectors are made of that."""
        if isinstance(node, Select) and isinstance(node.operand, Ident) and node.operand.name == "device":
            if "device" in self._locals:
                return None
            return self.access(self.access(_DEVICE_FIELDS[node.field]))
        if not isinstance(node, Select) or not isinstance(node.operand, Index) or node.operand.optional:
            return None
        holder, key = node.operand.operand, node.operand.key
        if not isinstance(holder, Select) or not isinstance(key, Literal) or not isinstance(key.value, str):
            return None
        if qualified_name(holder) == "device.attributes" and "device" not in self._locals:
            return self._paid_four_times(_attribute(key.value, node.field))
        if qualified_name(holder) == "device.capacity" and "device" not in self._locals:
            return self._paid_four_times(_capacity(key.value, node.field))
        return None

    def _paid_four_times(self, run: Closure) -> Closure:
        for _ in range(4):
            run = self.access(run)
        return run

    def _index(self, node: Index) -> Built:
        operand, key = self.build(node.operand).run, self.build(node.key)
        if node.optional:
            look, by = optional_index, key.run
            return Built(self.access(lambda frame: look(operand(frame), by(frame))))
        if type(key.constant) is str:
            return Built(self.access(_field(operand, key.constant)))
        by = key.run
        return Built(self.access(lambda frame: index(operand(frame), by(frame))))

    # -- calls -------------------------------------------------------------------------------------------------------

    def _call(self, node: Call) -> Built:
        match node.function:
            case "_?_:_":
                return Built(_conditional(*(self.build(arg).run for arg in node.args)))
            case "or" | "orValue" if node.target is not None:
                left, right = self.build(node.target).run, self.build(node.args[0]).run
                return Built(_optional_or(left, right, unwrap=node.function == "orValue"))
        function, fitting = self._checked.call_of(node)
        operands = node.args
        if node.target is not None and fitting[0].method:
            operands = (node.target, *operands)
        known = all(_is_known(self._checked, operand) for operand in operands)
        sure = function.checks_itself or (len(fitting) == 1 and known)
        return self.apply(function, fitting, sure, [self.build(operand) for operand in operands])

    # -- lists, maps and what introduces variables -----------------------------------------------------------------------

    def _list(self, node: ListNode) -> Built:
        elements = [self.build(element) for element in node.elements]
        if not node.optional and all(element.is_constant for element in elements):
            return constant([element.constant for element in elements])
        runs = [element.run for element in elements]
        if not node.optional:
            return Built(self.made(lambda frame: [run(frame) for run in runs], 10))
        return Built(self.made(_optional_list(runs, node.optional), 10))

    def _map(self, node: MapNode) -> Built:
        entries = [(self.build(entry.key), self.build(entry.value), entry.optional) for entry in node.entries]
        if all(key.is_constant and value.is_constant and not optional for key, value, optional in entries):
            return constant({key.constant: value.constant for key, value, _ in entries})
        runs = [(key.run, value.run, optional) for key, value, optional in entries]
        return Built(self.made(_map_of(runs), 30))

    def new_slot(self) -> int:
        """A place in the frame for one more variable."""
        self.slots += 1
        return self.slots - 1

    def _within(self, variables: dict[str, int], node: Node | None) -> Closure | None:
        if node is None:
            return None
        outer = self._locals
        self._locals = outer | variables
        built = self.build(node).run
        self._locals = outer
        return built

    def _bind(self, node: Bind) -> Built:
        value, slot = self.build(node.value).run, self.new_slot()
        body = self._within({node.name: slot}, node.body)
        assert body is not None
        return Built(_bound(slot, value, body))

    def _fold(self, node: Fold) -> Built:
        over = self.build(node.range).run
        slots = [self.new_slot() for _ in node.variables]
        variables = dict(zip(node.variables, slots))
        predicate, transform = self._within(variables, node.predicate), self._within(variables, node.transform)
        return Built(fold(node.kind, over, slots, predicate, transform, self.pay_fold()))

    def pay_fold(self) -> Callable[[Frame, int], None] | None:
        """What pays for the steps of a comprehension, if anything."""
        return None


def _is_known(checked: Checked, node: Node) -> bool:
    return not checked.type_of(node).is_dynamic


def _guarded(function: Function, overload: Overload) -> Callable[..., Value]:
    def run(*values: Value) -> Value:
        if not overload.accepts_values(values):
            raise function.no_overload(values)
        return overload.run(*values)

    return run


def _dispatching(function: Function) -> Callable[..., Value]:
    def run(*values: Value) -> Value:
        return function.choose(values).run(*values)

    return run


def _applied(run: Callable[..., Value], args: list[Closure]) -> Closure:
    match args:
        case [only]:
            return lambda frame: run(only(frame))
        case [left, right]:
            return lambda frame: run(left(frame), right(frame))
        case _:
            return lambda frame: run(*[arg(frame) for arg in args])


def _comparison(name: str, args: Sequence[Built]) -> Built | None:
    """Comparing with a constant string or number, which is what selectors do most, without asking for types twice."""
    if len(args) != 2 or type(args[1].constant) not in (str, int):
        return None
    left, right = args[0].run, args[1].constant
    kind = type(right)
    if name in ("_==_", "_!=_"):
        wanted = name == "_=="

        def equals(frame: Frame) -> bool:
            value = left(frame)
            return bool(value == right) if type(value) is kind else equal(value, right)

        return Built(equals) if name == "_==_" else None
    if name != "_>=_" or kind is not int:
        return None

    def at_least(frame: Frame) -> bool:
        value = left(frame)
        return bool(value >= right) if type(value) is int else compare(value, right, name) >= 0

    return Built(at_least)


def _local(slot: int) -> Closure:
    def read(frame: Frame) -> Value:
        value = frame[slot]
        if type(value) is Failure:
            raise value
        return value

    return read


def _attribute(domain: str, name: str) -> Closure:
    def read(frame: Frame) -> Value:
        try:
            return frame[0].attributes[domain][name]
        except KeyError:
            raise no_such_key(name) from None

    return read


def _capacity(domain: str, name: str) -> Closure:
    def read(frame: Frame) -> Value:
        try:
            return frame[0].capacity[domain][name]
        except KeyError:
            raise no_such_key(name) from None

    return read


_DEVICE_FIELDS: dict[str, Closure] = {
    "driver": lambda frame: frame[0].driver,
    "attributes": lambda frame: frame[0].attributes,
    "capacity": lambda frame: frame[0].capacity,
    "allowMultipleAllocations": lambda frame: frame[0].allow_multiple_allocations,
}


def _field(operand: Closure, name: str) -> Closure:
    def read(frame: Frame) -> Value:
        holder = operand(frame)
        if type(holder) is dict:
            try:
                return holder[name]
            except KeyError:
                raise no_such_key(name) from None
        return index(holder, name)

    return read


def _logic(terms: list[Closure], deciding: bool) -> Closure:
    """`||` (decided by true) and `&&` (by false): an error counts only if no other term decides."""
    if len(terms) == 2:
        return _logic_of_two(*terms, deciding)

    def run(frame: Frame) -> bool:
        error: Failure | None = None
        for term in terms:
            try:
                value = term(frame)
            except Failure as failure:
                error = error or failure
                continue
            if value is deciding:
                return deciding
            if type(value) is not bool:
                error = error or no_such_overload()
        if error is not None:
            raise error
        return not deciding

    return run


def _logic_of_two(left: Closure, right: Closure, deciding: bool) -> Closure:
    def run(frame: Frame) -> bool:
        try:
            value = left(frame)
            if value is deciding:
                return deciding
            if type(value) is not bool:
                raise no_such_overload()
        except Failure as error:
            if _decides(right, frame, deciding):
                return deciding
            raise error from None
        value = right(frame)
        if type(value) is not bool:
            raise no_such_overload()
        return bool(value)

    return run


def _decides(term: Closure, frame: Frame, deciding: bool) -> bool:
    try:
        return term(frame) is deciding
    except Failure:
        return False


def _conditional(condition: Closure, then: Closure, otherwise: Closure) -> Closure:
    def run(frame: Frame) -> Value:
        value = condition(frame)
        if type(value) is not bool:
            raise no_such_overload()
        return then(frame) if value else otherwise(frame)

    return run


def _optional_or(left: Closure, right: Closure, *, unwrap: bool) -> Closure:
    def run(frame: Frame) -> Value:
        value = left(frame)
        if type(value) is not Optional:
            raise no_such_overload()
        if value.present:
            return value.value if unwrap else value
        return right(frame)

    return run


def _optional_list(runs: list[Closure], optional: frozenset[int]) -> Closure:
    def run(frame: Frame) -> list[Value]:
        made = []
        for at, element in enumerate(runs):
            value = element(frame)
            if at in optional:
                if type(value) is not Optional:
                    raise Failure(f"cannot initialize optional list element from non-optional value {value}")
                if not value.present:
                    continue
                value = value.value
            made.append(value)
        return made

    return run


def _map_of(runs: list[tuple[Closure, Closure, bool]]) -> Closure:
    def run(frame: Frame) -> dict[Value, Value]:
        made: dict[Value, Value] = {}
        for key_run, value_run, optional in runs:
            key, value = key_run(frame), value_run(frame)
            if optional:
                if type(value) is not Optional:
                    raise Failure(f"cannot initialize optional entry '{key}' from non-optional value {value}")
                if not value.present:
                    made.pop(key, None)
                    continue
                value = value.value
            made[key] = value
        return made

    return run


def _bound(slot: int, value: Closure, body: Closure) -> Closure:
    """The value is worked out once; an error in it counts only where the variable is used."""

    def run(frame: Frame) -> Value:
        try:
            frame[slot] = value(frame)
        except Failure as failure:
            frame[slot] = failure
        return body(frame)

    return run
