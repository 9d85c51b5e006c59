"""Selectors in CEL, compiled once per expression."""

from __future__ import annotations

import weakref
from collections.abc import Sequence

from kubesched.api.devices import DeviceAttribute, DeviceClass, DeviceSelector
from kubesched.api.quantity import parse_quantity
from kubesched.api.release import V1_36, Release
from kubesched.cel import (
    AttributeValue,
    CelDevice,
    CelError,
    CompiledSelector,
    CompileError,
    Names,
    Version,
    compile_selector,
    view_device,
)
from kubesched.cel.costs import Interrupt
from kubesched.plugins.shared.devices.device_kinds import DeviceKind

_HINT = (
    ". consider using CEL optional chaining (.? followed by orValue()) "
    "or guarding the check with has() for optional fields"
)


MOST_COMPILED = 2 << 20
"""Bytes, of the expressions of one demand. More than that are compiled again whenever they are asked."""


class Expression:
    """One expression. It is compiled when it is first needed, which takes its time."""

    def __init__(self, text: str, release: Release) -> None:
        self.text = text
        self._explains = release.cel_errors_explained
        self._knows_lists = release.list_attributes_seen
        self.fault = ""
        """Why it cannot be compiled."""
        self._selector: CompiledSelector | None = None
        self._names: Names | None = frozenset()
        self._was_compiled = False

    @property
    def is_compiled(self) -> bool:
        return self._selector is not None or bool(self.fault)

    @property
    def size(self) -> int:
        """Bytes, at most, of what it is compiled to."""
        return 0 if self._selector is None else self._selector.size

    @property
    def names(self) -> Names | None:
        """The attributes it can depend on; None for any."""
        if not self._was_compiled:
            self.compile()
        return self._names

    def compile(self) -> None:
        if self.is_compiled:
            return
        self._was_compiled = True
        try:
            self._selector = compile_selector(self.text, with_lists=self._knows_lists)
            self._names = self._selector.names
        except CompileError as error:
            self.fault = str(error)

    def forget(self) -> None:
        """Give back the bytes. What it depends on stays known."""
        self._selector = None

    def judge(self, device: CelDevice, interrupt: Interrupt | None = None) -> bool | str:
        """Whether it holds for a device, or what broke. If that takes long, `interrupt` is called meanwhile."""
        self.compile()
        if self._selector is None:
            return self.fault
        try:
            return self._selector.matches(device, interrupt)
        except CelError as error:
            is_explained = self._explains and "no such key:" in str(error)
            return f"{error}{_HINT}" if is_explained else str(error)


class CompiledExpressions:
    """What expressions of one demand are compiled to, the last of them within a limit of bytes."""

    def __init__(self) -> None:
        self._sizes: dict[Expression, int] = {}
        self.size = 0

    def compile(self, expression: Expression) -> None:
        """Have it compiled, and forget those that were compiled first, should they be too many."""
        expression.compile()
        self.size += expression.size - self._sizes.pop(expression, 0)
        self._sizes[expression] = expression.size
        while self.size > MOST_COMPILED and len(self._sizes) > 1:
            first = next(iter(self._sizes))
            self.size -= self._sizes.pop(first)
            first.forget()


class DeviceSelection:
    """The selectors of a class and of a request, which must all hold."""

    def __init__(
        self,
        class_name: str,
        of_class: Sequence[Expression],
        of_request: Sequence[Expression],
        release: Release,
    ) -> None:
        self._knows_lists = release.list_attributes_seen
        self._device = " on device {device}" if release.cel_errors_explained else ""
        self.expressions = (*of_class, *of_request)
        self._parts = (
            *((f"class {class_name}: selector #{i}", expression) for i, expression in enumerate(of_class)),
            *((f"claim {{claim}}: selector #{i}", expression) for i, expression in enumerate(of_request)),
        )

    @property
    def names(self) -> Names | None:
        """The attributes that it can depend on; None for any."""
        names: set[str] = set()
        for expression in self.expressions:
            if expression.names is None:
                return None
            names |= expression.names
        return frozenset(names)

    def judge(self, kind: DeviceKind, interrupt: Interrupt | None = None) -> bool | str:
        """Whether such devices are selected, or what broke, with {claim} and {device} where those are named."""
        device = self.view(kind)
        answers = (self.judge_by(i, device, interrupt) for i in range(len(self._parts)))
        return next((answer for answer in answers if answer is not True), True)

    def view(self, kind: DeviceKind) -> CelDevice:
        """Such devices as expressions see them."""
        attributes, with_lists = kind.device.attributes, self._knows_lists
        return view_device(
            kind.frame.driver,
            {name: _attribute(attribute, with_lists=with_lists) for name, attribute in attributes.items()},
            {name: parse_quantity(capacity.value) for name, capacity in kind.device.capacity.items()},
            allow_multiple_allocations=kind.device.allow_multiple_allocations,
        )

    def judge_by(self, position: int, device: CelDevice, interrupt: Interrupt | None = None) -> bool | str:
        """As `judge`, by one of the selectors alone."""
        where, expression = self._parts[position]
        answer = expression.judge(device, interrupt)
        if isinstance(answer, bool):
            return answer
        on_device = "" if expression.fault else self._device
        return f"{where}{on_device}: {answer.replace('{', '{{').replace('}', '}}')}"

    def refusal(self, kind: DeviceKind) -> tuple[str, str] | None:
        """The first selector that does not hold: where it stands, and its text."""
        device = self.view(kind)
        for where, expression in self._parts:
            if expression.judge(device) is not True:
                return where, expression.text
        return None


class Selectors:
    """All expressions in use: each lives as long as a demand or a count that asks it."""

    def __init__(self, release: Release = V1_36) -> None:
        self._release = release
        self._known: weakref.WeakValueDictionary[str, Expression] = weakref.WeakValueDictionary()

    def of(self, device_class: DeviceClass, selectors: Sequence[DeviceSelector]) -> DeviceSelection:
        return DeviceSelection(
            device_class.name,
            self._expressions(device_class.spec.selectors),
            self._expressions(selectors),
            self._release,
        )

    def _expressions(self, selectors: Sequence[DeviceSelector]) -> list[Expression]:
        return [self._expression(selector.cel.expression) for selector in selectors if selector.cel is not None]

    def _expression(self, text: str) -> Expression:
        expression = self._known.get(text)
        if expression is None:
            expression = self._known[text] = Expression(text, self._release)
        return expression


def _attribute(attribute: DeviceAttribute, *, with_lists: bool) -> AttributeValue | None:
    if with_lists and (values := attribute.values):
        return [Version(value) for value in attribute.version_values or ()] or list(values)
    typed = attribute.typed
    if typed is None:
        return None
    kind, value = typed
    return Version(str(value)) if kind == "version" else value
