"""Two versions of an object, field by field: what changed between them, and one combined from both."""

from __future__ import annotations

from typing import Any

from kubesched.admission.schemas.table import Type
from kubesched.sandbox.patching.owners import Fields, Path, field_step
from kubesched.sandbox.patching.structure import is_listing, is_mapping, item_steps, present, type_of_field


def combined(type_: Type, live: Any, applied: Any) -> Any:
    """The live value with everything that the applied one says."""
    if is_mapping(type_, live) and is_mapping(type_, applied):
        result = dict(live)
        for name, value in present(applied):
            result[name] = combined(type_of_field(type_, name), live.get(name), value)
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
        result.append(combined(type_.item, known.get(step), wanted[step]))

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
