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
        self._known: dict[CelType, CelType] = {}
        self._made = 0

    def fresh(self) -> CelType:
        """A new variable."""
        self._made += 1
        return variable(f"_var{self._made - 1}")

    def resolve(self, wanted: CelType, *, unknown_is_dyn: bool = False) -> CelType:
        """The type with every known variable replaced."""
        while wanted in self._known:
            wanted = self._known[wanted]
        if wanted.kind is TypeKind.VARIABLE:
            return DYN if unknown_is_dyn else wanted
        if not wanted.parameters:
            return wanted
        inner = tuple(self.resolve(parameter, unknown_is_dyn=unknown_is_dyn) for parameter in wanted.parameters)
        return CelType(wanted.kind, wanted.name, inner)

    def assign(self, given: Sequence[CelType], wanted: Sequence[CelType]) -> bool:
        """Whether all given types fit the wanted ones; if so, what that says of variables is kept."""
        before = dict(self._known)
        if len(given) == len(wanted) and all(map(self._fits, given, wanted)):
            return True
        self._known = before
        return False

    def join(self, previous: CelType | None, current: CelType) -> CelType | None:
        """The type of elements seen so far and one more; None if they have nothing in common."""
        if previous is None:
            return current
        if self.assign([previous], [current]):
            return _more_general(previous, current)
        return None

    def _fits(self, given: CelType, wanted: CelType) -> bool:
        if wanted.kind is TypeKind.VARIABLE:
            fits, known = self._bind(given, wanted)
            if fits or known:
                return fits
        if given.kind is TypeKind.VARIABLE:
            return self._bind(wanted, given)[0]
        wild = (TypeKind.DYN, TypeKind.ANY, TypeKind.ERROR)
        if given.kind in wild or wanted.kind in wild:
            return True
        if TypeKind.NULL in (given.kind, wanted.kind):
            other = wanted if given.kind is TypeKind.NULL else given
            return other.kind in (TypeKind.NULL, TypeKind.OBJECT, TypeKind.OPTIONAL)
        if given.kind is not wanted.kind:
            return False
        if given.kind is TypeKind.TYPE:
            return True
        return given.name == wanted.name and all(map(self._fits, given.parameters, wanted.parameters))

    def _bind(self, found: CelType, unknown: CelType) -> tuple[bool, bool]:
        """Whether `found` can be what `unknown` stands for, and whether something was known of it."""
        if found == unknown:
            return True, True
        known = self._known.get(unknown)
        if known is None:
            if self._occurs(unknown, found):
                return False, False
            self._known[unknown] = found
            return True, False
        if known == found:
            return True, True
        if not self._fits(found, known):
            return False, True
        general = _more_general(found, known)
        if not self._occurs(unknown, general):
            self._known[unknown] = general
        return True, True

    def _occurs(self, unknown: CelType, within: CelType) -> bool:
        if unknown == within:
            return True
        if within.kind is TypeKind.VARIABLE:
            known = self._known.get(within)
            return known is not None and self._occurs(unknown, known)
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
