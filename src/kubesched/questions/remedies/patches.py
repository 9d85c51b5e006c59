"""The JSON patch (RFC 6902) that makes one object of another: what `kubectl patch --type json` takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation: `add`, `replace` or `remove`."""

    op: str
    path: str
    value: Any | None = None


def json_patch_between(old: Any, new: Any, path: str = "") -> Iterator[Operation]:
    """What is different, as deep inside as can be: elements of lists that stay are not repeated."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key, value in old.items():
            inside = f"{path}/{_escaped(key)}"
            if key not in new:
                yield Operation("remove", inside)
            else:
                yield from json_patch_between(value, new[key], inside)
        for key, value in new.items():
            if key not in old:
                yield Operation("add", f"{path}/{_escaped(key)}", value)
    elif isinstance(old, list | tuple) and isinstance(new, list | tuple):
        yield from _between_lists(list(old), list(new), path)
    elif old != new:
        yield Operation("replace", path, new)


def _between_lists(old: list[Any], new: list[Any], path: str) -> Iterator[Operation]:
    kept = [i for i, item in enumerate(old) if item in new]
    if len(new) == len(old):
        for i, (before, after) in enumerate(zip(old, new)):
            yield from json_patch_between(before, after, f"{path}/{i}")
    elif new[: len(old)] == old:
        yield from (Operation("add", f"{path}/-", item) for item in new[len(old) :])
    elif [old[i] for i in kept] == new:
        for i in reversed(range(len(old))):  # from the end, so that indexes stay what they are
            if i not in kept:
                yield Operation("remove", f"{path}/{i}")
    else:
        yield Operation("replace", path, new)


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
