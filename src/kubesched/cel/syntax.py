"""Expressions as trees. Every node knows the offset its error messages point at."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

import msgspec

LiteralValue = bool | int | float | str | bytes | None


class Node(msgspec.Struct, frozen=True, eq=False):
    """A part of an expression; nodes differ by identity."""

    offset: int


class Literal(Node, frozen=True, eq=False):
    """A constant. Unsigned integers are of the runtime's own type."""

    value: LiteralValue


class Ident(Node, frozen=True, eq=False):
    """A variable or the name of a type."""

    name: str


class Select(Node, frozen=True, eq=False):
    """`operand.field`, `operand.?field` or, inside has(), the question whether it is there."""

    operand: Node
    field: str
    optional: bool = False
    test_only: bool = False
    field_offset: int = 0


class Index(Node, frozen=True, eq=False):
    """`operand[key]` or `operand[?key]`."""

    operand: Node
    key: Node
    optional: bool = False


class Call(Node, frozen=True, eq=False):
    """A function, a method (with a target) or an operator (named like `_+_`)."""

    function: str
    target: Node | None
    args: tuple[Node, ...]


class Logic(Node, frozen=True, eq=False):
    """A chain of `&&` (`_&&_`) or of `||` (`_||_`): any number of terms, errors absorbed."""

    function: str
    terms: tuple[Node, ...]


class ListNode(Node, frozen=True, eq=False):
    """`[a, ?b]`."""

    elements: tuple[Node, ...]
    optional: frozenset[int] = frozenset()


class MapEntry(Node, frozen=True, eq=False):
    """`key: value` of a map; left out if optional and without a value."""

    key: Node
    value: Node
    optional: bool = False


class MapNode(Node, frozen=True, eq=False):
    """`{a: b}`."""

    entries: tuple[MapEntry, ...]


class Message(Node, frozen=True, eq=False):
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


class Fold(Node, frozen=True, eq=False):
    """A comprehension: `variables` run over the range; a second one asks for index or key and value."""

    kind: FoldKind
    range: Node
    variables: tuple[str, ...]
    predicate: Node | None
    transform: Node | None = None


class Bind(Node, frozen=True, eq=False):
    """`cel.bind(name, value, body)`."""

    name: str
    value: Node
    body: Node


_PARTS: dict[type[Node], Callable[[Any], tuple[Node, ...]]] = {
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


def children(node: Node) -> tuple[Node, ...]:
    """The parts of a node, in order."""
    parts = _PARTS.get(type(node))
    return parts(node) if parts else ()
