"""Expressions as trees. Every node knows the offset its error messages point at."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

import msgspec

LiteralValue = bool | int | float | str | bytes | None


class SyntaxNode(msgspec.Struct, frozen=True, eq=False):
    """A part of an expression; nodes differ by identity."""

    offset: int


class Literal(SyntaxNode, frozen=True, eq=False):
    """A constant. Unsigned integers are of the runtime's own type."""

    value: LiteralValue


class Ident(SyntaxNode, frozen=True, eq=False):
    """A variable or the name of a type."""

    name: str


class Select(SyntaxNode, frozen=True, eq=False):
    """`operand.field`, `operand.?field` or, inside has(), the question whether it is there."""

    operand: SyntaxNode
    field: str
    optional: bool = False
    test_only: bool = False
    field_offset: int = 0


class Index(SyntaxNode, frozen=True, eq=False):
    """`operand[key]` or `operand[?key]`."""

    operand: SyntaxNode
    key: SyntaxNode
    optional: bool = False


class Call(SyntaxNode, frozen=True, eq=False):
    """A function, a method (with a target) or an operator (named like `_+_`)."""

    function: str
    target: SyntaxNode | None
    args: tuple[SyntaxNode, ...]


class Logic(SyntaxNode, frozen=True, eq=False):
    """A chain of `&&` (`_&&_`) or of `||` (`_||_`): any number of terms, errors absorbed."""

    function: str
    terms: tuple[SyntaxNode, ...]


class ListNode(SyntaxNode, frozen=True, eq=False):
    """`[a, ?b]`."""

    elements: tuple[SyntaxNode, ...]
    optional: frozenset[int] = frozenset()


class MapEntry(SyntaxNode, frozen=True, eq=False):
    """`key: value` of a map; left out if optional and without a value."""

    key: SyntaxNode
    value: SyntaxNode
    optional: bool = False


class MapNode(SyntaxNode, frozen=True, eq=False):
    """`{a: b}`."""

    entries: tuple[MapEntry, ...]


class Message(SyntaxNode, frozen=True, eq=False):
    """`some.Type{...}`: there is no such type for devices, so it never checks."""

    name: str


class FoldKind(Enum):
    """What a comprehension makes of its range."""

    ALL = "all"
    EXISTS = "exists"
    EXISTS_ONE = "exists_one"
    MAP = "map"
    FILTER = "filter"
    TRANSFORM_MAP = "transformMap"
    TRANSFORM_MAP_ENTRY = "transformMapEntry"


class Fold(SyntaxNode, frozen=True, eq=False):
    """A comprehension: `variables` run over the range; a second one asks for index or key and value."""

    kind: FoldKind
    range: SyntaxNode
    variables: tuple[str, ...]
    predicate: SyntaxNode | None
    transform: SyntaxNode | None = None


class Bind(SyntaxNode, frozen=True, eq=False):
    """`cel.bind(name, value, body)`."""

    name: str
    value: SyntaxNode
    body: SyntaxNode


_PARTS: dict[type[SyntaxNode], Callable[[Any], tuple[SyntaxNode, ...]]] = {
    Select: lambda node: (node.operand,),
    Index: lambda node: (node.operand, node.key),
    Call: lambda node: node.args if node.target is None else (node.target, *node.args),
    Logic: lambda node: node.terms,
    ListNode: lambda node: node.elements,
    MapNode: lambda node: node.entries,
    MapEntry: lambda node: (node.key, node.value),
    Fold: lambda node: tuple(part for part in (node.range, node.predicate, node.transform) if part is not None),
    Bind: lambda node: (node.value, node.body),
}


def children(node: SyntaxNode) -> tuple[SyntaxNode, ...]:
    """The parts of a node, in order."""
    parts = _PARTS.get(type(node))
    return parts(node) if parts else ()
