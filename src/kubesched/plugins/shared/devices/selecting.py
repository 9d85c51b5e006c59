"""Selectors in CEL: compiled once per expression, evaluated once per kind of device."""

from __future__ import annotations

import weakref
from collections.abc import Sequence

from kubesched.api.devices import DeviceAttribute, DeviceClass, DeviceSelector
from kubesched.api.quantity import parse_quantity
from kubesched.cel import (
    AttributeValue,
    CelError,
    CompileError,
    Device,
    Selector,
    Version,
    compile_selector,
    view_device,
)
from kubesched.plugins.shared.devices.device_kinds import DeviceKind
from kubesched.plugins.shared.devices.relevance import Names, attributes_read_by

_EXPRESSIONS_KEPT = 1024


class Expression:
    """One expression, and what it says of kinds of devices."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.fault = ""
        """Why it cannot be compiled."""
        self._selector: Selector | None = None
        self._answers: weakref.WeakKeyDictionary[DeviceKind, bool | str] = weakref.WeakKeyDictionary()
        self.names = attributes_read_by(text)
        """The attributes it can depend on; None for any."""
        try:
            self._selector = compile_selector(text)
        except CompileError as problem:
            self.fault = str(problem)

    def judge(self, kind: DeviceKind) -> bool | str:
        """Whether it holds for such devices, or what broke."""
        if self._selector is None:
            return self.fault
        answer = self._answers.get(kind)
        if answer is None:
            try:
                answer = self._selector.matches(_as_cel_sees(kind))
            except CelError as problem:
                answer = str(problem)
            self._answers[kind] = answer
        return answer


class Selection:
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

    def judge(self, kind: DeviceKind) -> bool | str:
        """Whether such devices are selected, or what broke, with {claim} where the claim is named."""
        for where, expression in self._parts:
            answer = expression.judge(kind)
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

    def of(self, device_class: DeviceClass, selectors: Sequence[DeviceSelector]) -> Selection:
        return Selection(device_class.name, self._compiled(device_class.spec.selectors), self._compiled(selectors))

    def _compiled(self, selectors: Sequence[DeviceSelector]) -> list[Expression]:
        return [self._expression(selector.cel.expression) for selector in selectors if selector.cel is not None]

    def _expression(self, text: str) -> Expression:
        found = self._known.get(text)
        if found is None:
            if len(self._known) >= _EXPRESSIONS_KEPT:
                self._known.clear()
            found = self._known[text] = Expression(text)
        return found


def _as_cel_sees(kind: DeviceKind) -> Device:
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
