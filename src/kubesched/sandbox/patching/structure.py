"""How values hang together: which parts of an object are separate fields, and which are replaced as a whole.

Follows the field table: keyed lists and sets have separate items, other lists are atomic; structs and maps have
separate fields unless the table says atomic. Where nothing is known, objects are taken apart and lists are not.
A null is the same as a field that is not there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kubesched.admission.schemas.table import ANY, CUSTOM, Type, definition, field_type
from kubesched.sandbox.patching.owners import Fields, Path, field_step, json_text


def is_mapping(type_: Type, value: Any) -> bool:
    """Whether the value has separate fields."""
    return isinstance(value, dict) and type_.shape in ("struct", "map", "any") and not type_.atomic


def is_listing(type_: Type, value: Any) -> bool:
    """Whether the value has separate items."""
    return isinstance(value, list) and type_.shape == "list" and not type_.atomic


def type_of_field(type_: Type, name: str) -> Type:
    """The type of what a mapping has under a name."""
    match type_.shape:
        case "struct":
            return field_type(type_, name)
        case "map":
            return type_.item
    return ANY


def is_declared(type_: Type, name: str) -> bool:
    """Whether the name is a field that the table knows, rather than a key of a map."""
    if type_.shape != "struct":
        return False
    return name in ("apiVersion", "kind", "metadata") if type_.name == CUSTOM else name in definition(type_.name).fields


def present(mapping: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Names and values that are really there."""
    return ((name, value) for name, value in mapping.items() if value is not None)


def item_steps(type_: Type, items: list[Any]) -> list[str]:
    """For every item the step that leads to it: by its keys, by its value, or, if it has neither, by position."""
    if type_.is_set:
        return [f"v:{json_text(item)}" for item in items]
    return [_keyed_step(type_, item) or f"i:{position}" for position, item in enumerate(items)]


def _keyed_step(type_: Type, item: Any) -> str | None:
    if not isinstance(item, dict):
        return None
    found = {}
    for key in type_.keys:
        value = item.get(key)
        if value is None and type_.item.shape == "struct":
            value = _key_default(type_.item.name, key)
        if value is not None:
            found[key] = value
    return f"k:{json_text(found)}" if found else None


def _key_default(struct: str, key: str) -> Any:
    field = definition(struct).fields.get(key)
    return field.default if field is not None else None


def fields_of(type_: Type, value: Any) -> Fields:
    """The fields that a manager who applies this value owns: leaves, items of lists, keys of maps."""
    claimed: list[Path] = []
    _claim(type_, value, (), claimed)
    return frozenset(claimed)


def _claim(type_: Type, value: Any, path: Path, claimed: list[Path]) -> None:
    if is_mapping(type_, value):
        for name, child in present(value):
            inner = (*path, field_step(name))
            _claim(type_of_field(type_, name), child, inner, claimed)
            if child == {} or not is_declared(type_, name):
                claimed.append(inner)
    elif is_listing(type_, value):
        for step, child in zip(item_steps(type_, value), value):
            inner = (*path, step)
            _claim(type_.item, child, inner, claimed)
            claimed.append(inner)
    else:
        claimed.append(path)


def with_declared_parents(type_: Type, fields: Fields) -> Fields:
    """The set together with every struct field on the way to something in it."""
    result = set(fields)
    for path in fields:
        inner = type_
        for depth, step in enumerate(path[:-1], 1):
            kind, _, name = step.partition(":")
            if kind == "f":
                if is_declared(inner, name):
                    result.add(path[:depth])
                inner = type_of_field(inner, name)
            else:
                inner = inner.item
    return frozenset(result)
