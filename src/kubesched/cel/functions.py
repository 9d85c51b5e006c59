"""The register of functions: each with the signatures it can be called with, what it does and what it costs."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import TypeVar

import msgspec

from kubesched.cel import types
from kubesched.cel.costs import Price, flat
from kubesched.cel.errors import AbsorbableError
from kubesched.cel.types import CelType, TypeKind
from kubesched.cel.values import TYPE_NAMES, Value, type_name

Implementation = Callable[..., Value]
_F = TypeVar("_F", bound=Implementation)


class Mismatch(Enum):
    """How a function words that it was called with values it is not made for."""

    SIGNATURE = "no such overload: {name}({types})"
    NAME = "no such overload: {name}"
    PLAIN = "no such overload"


class Overload(msgspec.Struct, frozen=True, eq=False):
    """One way to call a function. For a method, the first parameter is what it is called on."""

    parameters: tuple[CelType, ...]
    result: CelType
    method: bool
    run: Implementation
    price: Price
    accepts: tuple[frozenset[type] | None, ...]

    def accepts_values(self, values: Sequence[Value]) -> bool:
        """Whether the values have the types asked for, as far as that can be seen at run time."""
        if len(values) != len(self.accepts):
            return False
        return all(accepted is None or type(value) in accepted for accepted, value in zip(self.accepts, values))


class Function:
    """Everything that goes by one name."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.overloads: list[Overload] = []
        self.mismatch = Mismatch.SIGNATURE
        self.checks_itself = False
        """Operators look at their operands themselves; no need to choose an overload for them."""

    def no_overload(self, values: Sequence[Value]) -> AbsorbableError:
        """The error for values no overload takes."""
        shown = ", ".join(map(type_name, values))
        return AbsorbableError(self.mismatch.value.format(name=self.name, types=shown))

    def choose(self, values: Sequence[Value]) -> Overload:
        """The overload for the values at hand."""
        for overload in self.overloads:
            if overload.accepts_values(values):
                return overload
        raise self.no_overload(values)


FUNCTIONS: dict[str, Function] = {}
"""All functions by name; the library modules fill it when imported."""


def function(*signatures: str, price: Price = flat, mismatch: Mismatch | None = None) -> Callable[[_F], _F]:
    """Register what is decorated under signatures like `sets.contains(list(A), list(A)) -> bool`."""
    return _registering(signatures, price, mismatch, method=False, checks_itself=False)


def method(*signatures: str, price: Price = flat, mismatch: Mismatch | None = None) -> Callable[[_F], _F]:
    """Register what is decorated under signatures like `string.startsWith(string) -> bool`."""
    return _registering(signatures, price, mismatch, method=True, checks_itself=False)


def functions(table: Mapping[str, Implementation], *, price: Price = flat, mismatch: Mismatch | None = None) -> None:
    """Register what one expression says: functions by their signatures, all at one price."""
    for signature, run in table.items():
        function(signature, price=price, mismatch=mismatch)(run)


def methods(table: Mapping[str, Implementation], *, price: Price = flat, mismatch: Mismatch | None = None) -> None:
    """Register what one expression says: methods by their signatures, all at one price."""
    for signature, run in table.items():
        method(signature, price=price, mismatch=mismatch)(run)


def succeeds(run: Implementation) -> Callable[..., bool]:
    """Whether the function works for its arguments: isIP() for ip(), and so on."""

    def works(*args: Value) -> bool:
        try:
            run(*args)
        except AbsorbableError:
            return False
        return True

    return works


def operator(*signatures: str, price: Price = flat) -> Callable[[_F], _F]:
    """Register an operator: it is given operands of any type and words its errors itself."""
    return _registering(signatures, price, None, method=False, checks_itself=True)


def _registering(
    signatures: Sequence[str], price: Price, mismatch: Mismatch | None, *, method: bool, checks_itself: bool
) -> Callable[[_F], _F]:
    def register(run: _F) -> _F:
        for signature in signatures:
            name, parameters, result = _parse_signature(signature, method=method)
            registered = FUNCTIONS.setdefault(name, Function(name))
            registered.mismatch = mismatch or registered.mismatch
            registered.checks_itself = registered.checks_itself or checks_itself
            accepts = tuple(map(_values_of, parameters))
            registered.overloads.append(Overload(parameters, result, method, run, price, accepts))
        return run

    return register


_SIGNATURE = re.compile(r"(?P<name>\S+?)\((?P<parameters>[^>]*)\) -> (?P<result>.+)")
_METHOD = re.compile(r"(?P<receiver>[a-z]+(?:\(.*?\)+)?)\.(?P<rest>[@A-Za-z]+\(.*)")
_TYPES = {
    celtype.name.rpartition(".")[2].lower(): celtype
    for celtype in (
        *(types.DYN, types.BOOL, types.INT, types.UINT, types.DOUBLE, types.STRING, types.BYTES),
        *(types.DURATION, types.TIMESTAMP, types.QUANTITY, types.SEMVER, types.URL, types.IP, types.CIDR),
    )
} | {"format": types.FORMAT}
_GENERIC: dict[str, Callable[..., CelType]] = {
    "list": types.list_of,
    "map": types.map_of,
    "optional": types.optional_of,
    "type": types.type_of,
}


def _parse_signature(signature: str, *, method: bool) -> tuple[str, tuple[CelType, ...], CelType]:
    receiver: tuple[CelType, ...] = ()
    if method:
        parts = _METHOD.fullmatch(signature)
        assert parts, signature
        receiver, signature = (_parse_type(parts["receiver"]),), parts["rest"]
    parsed = _SIGNATURE.fullmatch(signature)
    assert parsed, signature
    parameters = tuple(_parse_type(text) for text in _split(parsed["parameters"]))
    return parsed["name"], receiver + parameters, _parse_type(parsed["result"])


def _parse_type(text: str) -> CelType:
    name, opening, inner = text.partition("(")
    if opening:
        return _GENERIC[name](*map(_parse_type, _split(inner.removesuffix(")"))))
    return _TYPES.get(name) or types.variable(name)


def _split(text: str) -> list[str]:
    """Split at the commas outside of parentheses."""
    parts, depth, start = [], 0, 0
    for at, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if char == "," and not depth:
            parts.append(text[start:at].strip())
            start = at + 1
    return [*parts, text[start:].strip()] if text.strip() else []


def represent(celtype: CelType, python: type) -> None:
    """Say which Python class holds the values of a library's own type; to be called before functions use it."""
    TYPE_NAMES[python] = celtype.name


def _values_of(parameter: CelType) -> frozenset[type] | None:
    if parameter.is_dynamic or parameter.kind is TypeKind.VARIABLE:
        return None
    return frozenset(python for python, name in TYPE_NAMES.items() if name == parameter.name)
