"""Which settings differ between two releases: feature gates by their tables, fields by the loader of each release."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kubesched.api.release import Release
from kubesched.config.features import GATES_BY_FIELD
from kubesched.config.gates import Gate, gates_of


@dataclass(frozen=True, slots=True)
class SettingChange:
    """A feature gate, or a field of the configuration, that is new, is gone, or has another default."""

    setting: str
    before: str
    """Empty where there is none. Of a gate: `off (alpha)`, `on, locked (GA)`."""
    after: str


def usable_gates(gates: Mapping[str, bool], release: Release) -> tuple[dict[str, bool], list[str]]:
    """The gates that a release has and lets be set that way, and a line for each of the others."""
    gates_of_release = gates_of(release)
    usable = {
        name: value
        for name, value in gates.items()
        if name in gates_of_release and not (gates_of_release[name].locked and gates_of_release[name].default != value)
    }
    return usable, [f"{release.name}: the feature gate {name} cannot be set" for name in gates if name not in usable]


def gate_changes(before: Release, after: Release, gates: Iterable[str] = ()) -> Iterator[SettingChange]:
    """The gates that are given, and those that change what is decided, if they are not the same in both releases."""
    for name in dict.fromkeys((*gates, *GATES_BY_FIELD.values())):
        old, new = gates_of(before).get(name), gates_of(after).get(name)
        if (old and old[1:3]) != (new and new[1:3]):
            yield SettingChange(name, _gate(old), _gate(new))


def _gate(gate: Gate | None) -> str:
    if gate is None:
        return ""
    stage = gate.stage.value.lower() or "GA"
    return f"{'on' if gate.default else 'off'}{', locked' if gate.locked else ''} ({stage})"


def field_changes(before: Any, after: Any, path: str = "") -> Iterator[SettingChange]:
    """Where two plain configurations differ. Entries of lists are told apart by their names, where they have some."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in dict.fromkeys((*before, *after)):
            yield from field_changes(before.get(key), after.get(key), f"{path}.{key}" if path else key)
        return
    old, new = _by_name(before), _by_name(after)
    if old and new:
        for name in dict.fromkeys((*old, *new)):
            yield from field_changes(old.get(name), new.get(name), f"{path}[{name}]")
        orders = [name for name in old if name in new], [name for name in new if name in old]
        before, after = map(", ".join, _without_common_ends(*orders))
        path = f"{path}, order"
    if before != after:
        yield SettingChange(path, _text_of(before), _text_of(after))


def _by_name(value: Any) -> dict[str, Any]:
    entries = value if isinstance(value, list) and all(isinstance(entry, dict) for entry in value) else []
    entries_by_name = {str(entry.get("name") or entry.get("schedulerName")): entry for entry in entries}
    return entries_by_name if len(entries_by_name) == len(entries) and "None" not in entries_by_name else {}


def _without_common_ends(old: list[str], new: list[str]) -> tuple[list[str], list[str]]:
    while old and new and old[0] == new[0]:
        old, new = old[1:], new[1:]
    while old and new and old[-1] == new[-1]:
        old, new = old[:-1], new[:-1]
    return old, new


def _text_of(value: Any) -> str:
    return "" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
