"""Separate fields of an object: which there are, which changed between two versions, and how both are combined.

Follows the field table: keyed lists and sets have separate items, other lists are atomic; structs and maps have
separate fields unless the table says atomic. Where nothing is known, objects are taken apart and lists are not.
A null is the same as a field that is not there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kubesched.admission.schemas.table import ANY, CUSTOM, Type, definition, field_type
from kubesched_sandbox.patching.owners import Fields, Path, field_step, json_text


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


# -- two versions of an object ----------------------------------------------------------------------------------------


def combine(type_: Type, live: Any, applied: Any) -> Any:
    """The live value with everything that the applied one says."""
    if is_mapping(type_, live) and is_mapping(type_, applied):
        result = dict(live)
        for name, value in present(applied):
            result[name] = combine(type_of_field(type_, name), live.get(name), value)
        return result
    if is_listing(type_, live) and is_listing(type_, applied):
        return _combined_lists(type_, live, applied)
    return _without_nulls(type_, applied)


def _combined_lists(type_: Type, live: list[Any], applied: list[Any]) -> list[Any]:
    """Applied items in their order; items that are only live stay where they are, as far as that goes together."""
    live_steps, applied_steps = item_steps(type_, live), item_steps(type_, applied)
    known, wanted = dict(zip(live_steps, live)), dict(zip(applied_steps, applied))
    shared = [step for step in applied_steps if step in known]
    waiting = list(applied_steps)
    result: list[Any] = []

    def take(step: str) -> None:
        result.append(combine(type_.item, known.get(step), wanted[step]))

    for step, item in zip(live_steps, live):
        if step not in wanted:
            result.append(item)
        elif shared and step == shared[0]:
            shared.pop(0)
            while waiting:
                next_step = waiting.pop(0)
                take(next_step)
                if next_step == step:
                    break
    for step in waiting:
        take(step)
    return result


def _without_nulls(type_: Type, value: Any) -> Any:
    if is_mapping(type_, value):
        return {name: _without_nulls(type_of_field(type_, name), child) for name, child in present(value)}
    if is_listing(type_, value):
        return [_without_nulls(type_.item, item) for item in value]
    return value


def without(type_: Type, value: Any, gone: Fields) -> Any:
    """The value without some fields, and without containers that this leaves empty."""
    on_the_way = {path[:depth] for path in gone for depth in range(1, len(path))}
    return _without(type_, value, (), gone, on_the_way) if gone else value


def _without(type_: Type, value: Any, path: Path, gone: Fields, on_the_way: set[Path]) -> Any:
    if is_mapping(type_, value):
        result = {}
        for name, child in value.items():
            inner = (*path, field_step(name))
            if inner in gone:
                continue
            if inner in on_the_way:
                child = _without(type_of_field(type_, name), child, inner, gone, on_the_way)
                if child in ({}, []):
                    continue
            result[name] = child
        return result
    if is_listing(type_, value):
        kept = []
        for step, item in zip(item_steps(type_, value), value):
            inner = (*path, step)
            if inner not in gone:
                kept.append(_without(type_.item, item, inner, gone, on_the_way) if inner in on_the_way else item)
        return kept
    return value


class FieldChanges:
    """Fields that were removed, changed in value, or added on the way from one object to another."""

    def __init__(self) -> None:
        self._removed: list[Path] = []
        self._modified: list[Path] = []
        self._added: list[Path] = []

    def removed(self) -> Fields:
        return frozenset(self._removed)

    def written(self) -> Fields:
        """What has a new value."""
        return frozenset(self._modified) | frozenset(self._added)

    def compare(self, type_: Type, old: Any, new: Any, path: Path = ()) -> None:
        """Note the differences below a path; both values are there."""
        if old == new:
            return
        if is_mapping(type_, old) and is_mapping(type_, new):
            self._compare_mappings(type_, old, new, path)
        elif is_listing(type_, old) and is_listing(type_, new):
            self._compare_lists(type_, old, new, path)
        else:
            self._modified.append(path)
            _everything_below(type_, old, path, self._removed)
            _everything_below(type_, new, path, self._added)

    def _compare_mappings(self, type_: Type, old: dict[str, Any], new: dict[str, Any], path: Path) -> None:
        for name, value in present(old):
            inner, child_type = (*path, field_step(name)), type_of_field(type_, name)
            if new.get(name) is None:
                _everything(child_type, value, inner, self._removed)
            else:
                self.compare(child_type, value, new[name], inner)
        for name, value in present(new):
            if old.get(name) is None:
                _everything(type_of_field(type_, name), value, (*path, field_step(name)), self._added)

    def _compare_lists(self, type_: Type, old: list[Any], new: list[Any], path: Path) -> None:
        before, after = _grouped(type_, old), _grouped(type_, new)
        for step, items in before.items():
            inner, others = (*path, step), after.get(step, [])
            if len(items) == len(others) == 1:
                self.compare(type_.item, items[0], others[0], inner)
            elif not others:
                _everything_of(type_.item, items, inner, self._removed)
            elif items != others:
                # Items with the same key are one leaf together.
                self._modified.append(inner)
        for step, items in after.items():
            if step not in before:
                _everything_of(type_.item, items, (*path, step), self._added)


def everything(type_: Type, value: Any) -> Fields:
    """Every path in a value, containers included."""
    paths: list[Path] = []
    _everything_below(type_, value, (), paths)
    return frozenset(paths)


def _grouped(type_: Type, items: list[Any]) -> dict[str, list[Any]]:
    groups: dict[str, list[Any]] = {}
    for step, item in zip(item_steps(type_, items), items):
        groups.setdefault(step, []).append(item)
    return groups


def _everything_of(type_: Type, items: list[Any], path: Path, paths: list[Path]) -> None:
    if len(items) == 1:
        _everything(type_, items[0], path, paths)
    else:
        paths.append(path)


def _everything(type_: Type, value: Any, path: Path, paths: list[Path]) -> None:
    paths.append(path)
    _everything_below(type_, value, path, paths)


def _everything_below(type_: Type, value: Any, path: Path, paths: list[Path]) -> None:
    if is_mapping(type_, value):
        for name, child in present(value):
            _everything(type_of_field(type_, name), child, (*path, field_step(name)), paths)
    elif is_listing(type_, value):
        for step, items in _grouped(type_, value).items():
            _everything_of(type_.item, items, (*path, step), paths)
