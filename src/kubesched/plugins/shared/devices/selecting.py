"""Selectors in CEL: compiled once per expression, evaluated once per kind of device; and which attributes they read."""

from __future__ import annotations

import weakref
from collections.abc import Sequence

from kubesched.api.devices import DeviceAttribute, DeviceClass, DeviceSelector
from kubesched.api.quantity import parse_quantity
from kubesched.cel import (
    AttributeValue,
    CelDevice,
    CelError,
    CompiledSelector,
    CompileError,
    Version,
    compile_selector,
    view_device,
)
from kubesched.cel.costs import Interrupt
from kubesched.cel.parser import parse
from kubesched.cel.syntax import Bind, Call, Fold, Ident, Index, Literal, Select, SyntaxNode, children
from kubesched.plugins.shared.devices.device_kinds import DeviceKind

_EXPRESSIONS_KEPT = 1024


class Expression:
    """One expression, and what it says of kinds of devices."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.fault = ""
        """Why it cannot be compiled."""
        self._selector: CompiledSelector | None = None
        self._answers: weakref.WeakKeyDictionary[DeviceKind, bool | str] = weakref.WeakKeyDictionary()
        self.names = attributes_read_by(text)
        """The attributes it can depend on; None for any."""
        try:
            self._selector = compile_selector(text)
        except CompileError as error:
            self.fault = str(error)

    def judge(self, kind: DeviceKind, interrupt: Interrupt | None = None) -> bool | str:
        """Whether it holds for such devices, or what broke. If that takes long, `interrupt` is called meanwhile."""
        if self._selector is None:
            return self.fault
        answer = self._answers.get(kind)
        if answer is None:
            try:
                answer = self._selector.matches(_as_cel_sees(kind), interrupt)
            except CelError as error:
                answer = str(error)
            self._answers[kind] = answer
        return answer


class DeviceSelection:
    """The selectors of a class and of a request, which must all hold."""

    def __init__(self, class_name: str, of_class: Sequence[Expression], of_request: Sequence[Expression]) -> None:
        self._parts = (
            *((f"class {class_name}: selector #{i}", expression) for i, expression in enumerate(of_class)),
            *((f"claim {{claim}}: selector #{i}", expression) for i, expression in enumerate(of_request)),
        )

    @property
    def names(self) -> Names | None:
        """The attributes that it can depend on; None for any."""
        names: set[str] = set()
        for _, expression in self._parts:
            if expression.names is None:
                return None
            names |= expression.names
        return frozenset(names)

    def judge(self, kind: DeviceKind, interrupt: Interrupt | None = None) -> bool | str:
        """Whether such devices are selected, or what broke, with {claim} where the claim is named."""
        for where, expression in self._parts:
            answer = expression.judge(kind, interrupt)
            if answer is False:
                return False
            if answer is not True:
                return f"{where}: {answer.replace('{', '{{').replace('}', '}}')}"
        return True

    def refusal(self, kind: DeviceKind) -> tuple[str, str] | None:
        """The first selector that does not hold: where it stands, and its text."""
        for where, expression in self._parts:
            if expression.judge(kind) is not True:
                return where, expression.text
        return None


class Selectors:
    """All expressions in use."""

    def __init__(self) -> None:
        self._known: dict[str, Expression] = {}

    def of(self, device_class: DeviceClass, selectors: Sequence[DeviceSelector]) -> DeviceSelection:
        return DeviceSelection(
            device_class.name, self._compiled(device_class.spec.selectors), self._compiled(selectors)
        )

    def _compiled(self, selectors: Sequence[DeviceSelector]) -> list[Expression]:
        return [self._expression(selector.cel.expression) for selector in selectors if selector.cel is not None]

    def _expression(self, text: str) -> Expression:
        found = self._known.get(text)
        if found is None:
            if len(self._known) >= _EXPRESSIONS_KEPT:
                self._known.clear()
            found = self._known[text] = Expression(text)
        return found


def _as_cel_sees(kind: DeviceKind) -> CelDevice:
    return view_device(
        kind.driver,
        {name: _attribute(found) for name, found in kind.device.attributes.items()},
        {name: parse_quantity(found.value) for name, found in kind.device.capacity.items()},
        allow_multiple_allocations=kind.device.allow_multiple_allocations,
    )


def _attribute(attribute: DeviceAttribute) -> AttributeValue | None:
    typed = attribute.typed
    if typed is None:
        return None
    kind, value = typed
    return Version(str(value)) if kind == "version" else value


Names = frozenset[str]
"""Full names of attributes, `domain/name`."""


def attributes_read_by(expression: str) -> Names | None:
    """The attributes that the expression names; None if it may depend on any."""
    tree, issues = parse(expression)
    if tree is None or issues:
        return frozenset()  # it cannot be compiled, and says so of all devices
    names: set[str] = set()
    return frozenset(names) if _collect(tree, {}, names) else None


def _collect(node: SyntaxNode, domains: dict[str, str], names: set[str]) -> bool:
    """Add the names that are read; False if something else is done with attributes than reading one by its name.

    `domains` are variables that stand for the attributes of a domain.
    """
    match node:
        case Ident(name=name):
            return name != "device" and name not in domains
        case Select(operand=Ident(name="device"), field=field) if "device" not in domains:
            return field != "attributes"
        case Select(operand=operand, field=field) if (domain := _domain(operand, domains)) is not None:
            names.add(f"{domain}/{field}")
            return True
        case Index(operand=operand, key=Literal(value=str(field))) if (domain := _domain(operand, domains)) is not None:
            names.add(f"{domain}/{field}")
            return True
        case Call(function="@in", target=None, args=(Literal(value=str(field)), operand)) if (
            domain := _domain(operand, domains)
        ) is not None:
            names.add(f"{domain}/{field}")
            return True
        case Bind(name=name, value=value, body=body):
            domain = _domain(value, domains)
            others = {variable: known for variable, known in domains.items() if variable != name}
            if domain is not None:
                return _collect(body, {**others, name: domain}, names)
            return _collect(value, domains, names) and _collect(body, others, names)
        case Fold(variables=variables):
            if not _collect(node.range, domains, names):
                return False
            others = {variable: known for variable, known in domains.items() if variable not in variables}
            parts = (part for part in (node.predicate, node.transform) if part is not None)
            return all(_collect(part, others, names) for part in parts)
    return all(_collect(part, domains, names) for part in children(node))


def _domain(node: SyntaxNode, domains: dict[str, str]) -> str | None:
    """The domain whose attributes the node stands for: `device.attributes["domain"]`, or a variable for that."""
    match node:
        case Ident(name=name):
            return domains.get(name)
        case Index(operand=Select(operand=Ident(name="device"), field="attributes"), key=Literal(value=str(domain))):
            return domain
    return None
