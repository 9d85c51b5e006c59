"""Putting an applied configuration into an object, and taking fields out of one."""

from __future__ import annotations

from typing import Any

from kubesched.admission.schemas.table import Type
from kubesched.sandbox.patching.fieldsets import Fields, Path, field_step
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
