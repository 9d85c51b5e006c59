"""What of one's settings differs between two releases: feature gates by their tables, fields by the loader of each."""

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


def usable_gates(given: Mapping[str, bool], release: Release) -> tuple[dict[str, bool], list[str]]:
    """The gates that a release has and lets be set that way, and a line for each of the others."""
    known = gates_of(release)
    usable = {
        name: value
        for name, value in given.items()
        if name in known and not (known[name].locked and known[name].default != value)
    }
    return usable, [f"{release.name}: the feature gate {name} cannot be set" for name in given if name not in usable]


def gate_changes(before: Release, after: Release, given: Iterable[str] = ()) -> Iterator[SettingChange]:
    """The gates that are given, and those that change what is decided, if they are not the same in both releases."""
    for name in dict.fromkeys((*given, *GATES_BY_FIELD.values())):
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
        yield SettingChange(path, _shown(before), _shown(after))


def _by_name(value: Any) -> dict[str, Any]:
    entries = value if isinstance(value, list) and all(isinstance(each, dict) for each in value) else []
    found = {str(each.get("name") or each.get("schedulerName")): each for each in entries}
    return found if len(found) == len(entries) and "None" not in found else {}


def _without_common_ends(one: list[str], other: list[str]) -> tuple[list[str], list[str]]:
    while one and other and one[0] == other[0]:
        one, other = one[1:], other[1:]
    while one and other and one[-1] == other[-1]:
        one, other = one[:-1], other[:-1]
    return one, other


def _shown(value: Any) -> str:
    return "" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
