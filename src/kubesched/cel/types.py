"""Static types, and which type is assignable to which."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum, auto

import msgspec


class TypeKind(Enum):
    """The families of types, as far as the rules tell them apart."""

    DYN = auto()
    ANY = auto()
    ERROR = auto()
    NULL = auto()
    SCALAR = auto()
    OBJECT = auto()
    LIST = auto()
    MAP = auto()
    OPTIONAL = auto()
    TYPE = auto()
    VARIABLE = auto()


class CelType(msgspec.Struct, frozen=True):
    """A type; `name` is that of the erased type or of the type variable."""

    kind: TypeKind
    name: str
    parameters: tuple[CelType, ...] = ()

    def __str__(self) -> str:
        if not self.parameters:
            return self.name
        return f"{self.name}({', '.join(map(str, self.parameters))})"

    @property
    def is_dynamic(self) -> bool:
        """Whether only the run time will tell."""
        return self.kind in (TypeKind.DYN, TypeKind.ANY)


DYN = CelType(TypeKind.DYN, "dyn")
ANY = CelType(TypeKind.ANY, "any")
ERROR = CelType(TypeKind.ERROR, "!error!")
NULL = CelType(TypeKind.NULL, "null")
BOOL, INT, UINT, DOUBLE, STRING, BYTES = (
    CelType(TypeKind.SCALAR, name) for name in ("bool", "int", "uint", "double", "string", "bytes")
)
DURATION, TIMESTAMP = (
    CelType(TypeKind.OBJECT, name) for name in ("google.protobuf.Duration", "google.protobuf.Timestamp")
)
QUANTITY, SEMVER, URL, IP, CIDR, FORMAT, DEVICE = (
    CelType(TypeKind.OBJECT, name)
    for name in (
        "kubernetes.Quantity",
        "kubernetes.Semver",
        "kubernetes.URL",
        "net.IP",
        "net.CIDR",
        "kubernetes.NamedFormat",
        "kubernetes.DRADevice",
    )
)


def list_of(element: CelType) -> CelType:
    """`list(element)`."""
    return CelType(TypeKind.LIST, "list", (element,))


def map_of(key: CelType, value: CelType) -> CelType:
    """`map(key, value)`."""
    return CelType(TypeKind.MAP, "map", (key, value))


def optional_of(value: CelType) -> CelType:
    """`optional_type(value)`."""
    return CelType(TypeKind.OPTIONAL, "optional_type", (value,))


def type_of(value: CelType) -> CelType:
    """The type of a type."""
    return CelType(TypeKind.TYPE, "type", (value,))


def variable(name: str) -> CelType:
    """A type variable, which the checker solves."""
    return CelType(TypeKind.VARIABLE, name)


class Substitution:
    """The solutions of type variables found so far. An assignment that fails changes nothing."""

    def __init__(self) -> None:
        self._solutions: dict[CelType, CelType] = {}
        self._count = 0

    def fresh(self) -> CelType:
        """A new variable."""
        self._count += 1
        return variable(f"_var{self._count - 1}")

    def resolve(self, celtype: CelType, *, unknown_is_dyn: bool = False) -> CelType:
        """The type with every known variable replaced."""
        while celtype in self._solutions:
            celtype = self._solutions[celtype]
        if celtype.kind is TypeKind.VARIABLE:
            return DYN if unknown_is_dyn else celtype
        if not celtype.parameters:
            return celtype
        inner = tuple(self.resolve(parameter, unknown_is_dyn=unknown_is_dyn) for parameter in celtype.parameters)
        return CelType(celtype.kind, celtype.name, inner)

    def assign(self, arguments: Sequence[CelType], parameters: Sequence[CelType]) -> bool:
        """Whether all arguments fit the parameters; if so, what that says of variables is kept."""
        before = dict(self._solutions)
        if len(arguments) == len(parameters) and all(map(self._fits, arguments, parameters)):
            return True
        self._solutions = before
        return False

    def join(self, previous: CelType | None, current: CelType) -> CelType | None:
        """The type of elements seen so far and one more; None if they have nothing in common."""
        if previous is None:
            return current
        if self.assign([previous], [current]):
            return _more_general(previous, current)
        return None

    def _fits(self, argument: CelType, parameter: CelType) -> bool:
        if parameter.kind is TypeKind.VARIABLE:
            fits, was_solved = self._bind(argument, parameter)
            if fits or was_solved:
                return fits
        if argument.kind is TypeKind.VARIABLE:
            return self._bind(parameter, argument)[0]
        wild = (TypeKind.DYN, TypeKind.ANY, TypeKind.ERROR)
        if argument.kind in wild or parameter.kind in wild:
            return True
        if TypeKind.NULL in (argument.kind, parameter.kind):
            other_type = parameter if argument.kind is TypeKind.NULL else argument
            return other_type.kind in (TypeKind.NULL, TypeKind.OBJECT, TypeKind.OPTIONAL)
        if argument.kind is not parameter.kind:
            return False
        if argument.kind is TypeKind.TYPE:
            return True
        return argument.name == parameter.name and all(map(self._fits, argument.parameters, parameter.parameters))

    def _bind(self, celtype: CelType, unknown: CelType) -> tuple[bool, bool]:
        """Whether the type can be what `unknown` stands for, and whether something was known of it."""
        if celtype == unknown:
            return True, True
        solution = self._solutions.get(unknown)
        if solution is None:
            if self._occurs(unknown, celtype):
                return False, False
            self._solutions[unknown] = celtype
            return True, False
        if solution == celtype:
            return True, True
        if not self._fits(celtype, solution):
            return False, True
        general = _more_general(celtype, solution)
        if not self._occurs(unknown, general):
            self._solutions[unknown] = general
        return True, True

    def _occurs(self, unknown: CelType, within: CelType) -> bool:
        if unknown == within:
            return True
        if within.kind is TypeKind.VARIABLE:
            solution = self._solutions.get(within)
            return solution is not None and self._occurs(unknown, solution)
        return any(self._occurs(unknown, parameter) for parameter in within.parameters)


def _more_general(left: CelType, right: CelType) -> CelType:
    return left if _no_more_specific(left, right) else right


def _no_more_specific(left: CelType, right: CelType) -> bool:
    loose = (TypeKind.DYN, TypeKind.ANY, TypeKind.VARIABLE)
    if left.kind in loose:
        return True
    if right.kind in loose or left.kind is not right.kind:
        return False
    if left.kind is TypeKind.TYPE:
        return True
    return left.name == right.name and all(map(_no_more_specific, left.parameters, right.parameters))


def signature(types: Iterable[CelType], *, method: bool) -> str:
    """Arguments as messages show them: `(int, string)`, or `string.(int)` for a method."""
    shown = list(map(str, types))
    if method:
        return f"{shown[0]}.({', '.join(shown[1:])})"
    return f"({', '.join(shown)})"
