"""Sets of fields: which parts of an object a manager owns, and the FieldsV1 form that managedFields have.

A path is a tuple of steps, each spelled as FieldsV1 spells it: `f:spec` a field, `k:{"name":"web"}` an item of a keyed
list, `v:"value"` an item of a set, `i:0` a position. A set of fields is then simply a frozenset of paths.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

import msgspec

from kubesched.api.kinds import Object

Path: TypeAlias = tuple[str, ...]
Fields: TypeAlias = frozenset[Path]

_ITSELF = "."


def json_text(value: Any) -> str:
    """Compact JSON with sorted keys: the same value always gives the same text."""
    return msgspec.json.encode(value, order="sorted").decode()


def field_step(name: str) -> str:
    return f"f:{name}"


def to_fields_v1(fields: Iterable[Path]) -> Object:
    """The set as a tree: what is in it is a leaf, or has a "." beside its children."""
    tree: Object = {}
    for path in sorted(fields):
        node = tree
        for step in path:
            node = node.setdefault(step, {})
        node[_ITSELF] = {}
    return _tidied(tree)


def _tidied(node: Object) -> Object:
    return {step: {} if child.keys() <= {_ITSELF} else _tidied(child) for step, child in node.items()}


def from_fields_v1(tree: Object) -> Fields:
    """The set that a tree tells of; ValueError if it is no such tree."""
    paths: list[Path] = []
    _collect(tree, (), paths)
    return frozenset(paths)


def _collect(node: Any, path: Path, paths: list[Path]) -> None:
    if not isinstance(node, dict):
        raise ValueError("a set of fields is made of objects")
    for step, child in node.items():
        if step == _ITSELF:
            paths.append(path)
            continue
        inner = (*path, _canonical(step))
        if child == {}:
            paths.append(inner)
        else:
            _collect(child, inner, paths)


def _canonical(step: str) -> str:
    kind, mark, rest = step.partition(":")
    if not mark or kind not in ("f", "k", "v", "i"):
        raise ValueError(f"{step!r} is no step to a field")
    return f"{kind}:{json_text(msgspec.json.decode(rest))}" if kind in ("k", "v") else step


def spelled(path: Path) -> str:
    """A path as people read it: .spec.containers[name="web"].image"""
    return "".join(_spelled_step(*step.split(":", 1)) for step in path)


def _spelled_step(kind: str, rest: str) -> str:
    match kind:
        case "f":
            return f".{rest}"
        case "k":
            keys = msgspec.json.decode(rest)
            return f"[{','.join(f'{name}={json_text(value)}' for name, value in sorted(keys.items()))}]"
        case "v":
            return f"[={rest}]"
    return f"[{rest}]"
