"""What would help a pod that fits nowhere: remedies, and the changes of API objects that each consists of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from kubesched.api.change import Change
from kubesched.api.kinds import KINDS
from kubesched.api.meta import KubeObject
from kubesched.framework.advice import ObjectEdit, RemedyKind


@dataclass(frozen=True, slots=True)
class JsonPatchOperation:
    """One operation of a JSON patch (RFC 6902): `add`, `replace` or `remove`."""

    op: str
    path: str
    value: Any | None = None


@dataclass(frozen=True, slots=True)
class ObjectChange:
    """One API object to be patched (JSON patch), created or deleted."""

    verb: str
    api_version: str
    kind: str
    namespace: str
    name: str
    patch: tuple[JsonPatchOperation, ...] | None = None
    object: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class RemedyStep:
    """One change of a remedy in words."""

    sort: RemedyKind
    text: str


@dataclass(frozen=True, slots=True)
class Remedy:
    """A change, or a pair of them, after which the pod finds a node: the engine was asked."""

    steps: tuple[RemedyStep, ...]
    node: str
    """Where the pod would go."""
    changes: tuple[ObjectChange, ...]

    @property
    def text(self) -> str:
        first, *rest = (step.text for step in self.steps)
        return "; and ".join([first, *(text[0].lower() + text[1:] for text in rest)])


@dataclass(frozen=True, slots=True)
class Remedies:
    """All that was found for one pod, the smallest first."""

    pod: str
    found: tuple[Remedy, ...]
    tried: int
    """How many changed clusters the engine was asked about."""
    exhaustive: bool
    """Whether every change that was thought of could be tried, so that an empty answer means that none helps."""


def changes_of(edits: Iterable[ObjectEdit]) -> tuple[Change[KubeObject], ...]:
    """The edits one after another, as a change per object."""
    current: dict[tuple[type[KubeObject], str], tuple[KubeObject | None, KubeObject | None]] = {}
    for edit in edits:
        if edit.obj is None:
            made = edit.make(None)
            assert made is not None
            current[type(made), made.key] = (None, made)
            continue
        place = type(edit.obj), edit.obj.key
        old, new = current.get(place, (edit.obj, edit.obj))
        current[place] = (old, None if new is None else edit.make(new))
    return tuple(Change(old, new) for old, new in current.values() if old != new)


def describe(changes: Sequence[Change[KubeObject]]) -> tuple[ObjectChange, ...]:
    """The changes as a program would carry them out."""
    return tuple(map(_describe, changes))


def _describe(change: Change[KubeObject]) -> ObjectChange:
    obj = change.obj
    kind = obj.kind or type(obj).__name__
    resource = KINDS[kind].resource if kind in KINDS else None
    api_version = obj.api_version or (resource.api_version if resource else "")
    about = (api_version, kind, obj.namespace, obj.name)
    if change.new is None:
        return ObjectChange("delete", *about)
    new = msgspec.to_builtins(change.new)
    if change.old is None:
        return ObjectChange("create", *about, object={**new, "apiVersion": api_version, "kind": kind})
    return ObjectChange("patch", *about, patch=tuple(json_patch_between(msgspec.to_builtins(change.old), new)))


def json_patch_between(old: Any, new: Any, path: str = "") -> Iterator[JsonPatchOperation]:
    """The JSON patch that makes one object of another, for `kubectl patch --type json`. Elements of lists that stay
    are not repeated."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key, value in old.items():
            inside = f"{path}/{_escape(key)}"
            if key not in new:
                yield JsonPatchOperation("remove", inside)
            else:
                yield from json_patch_between(value, new[key], inside)
        for key, value in new.items():
            if key not in old:
                yield JsonPatchOperation("add", f"{path}/{_escape(key)}", value)
    elif isinstance(old, list | tuple) and isinstance(new, list | tuple):
        yield from _between_lists(list(old), list(new), path)
    elif old != new:
        yield JsonPatchOperation("replace", path, new)


def _between_lists(old: list[Any], new: list[Any], path: str) -> Iterator[JsonPatchOperation]:
    kept = [i for i, item in enumerate(old) if item in new]
    if len(new) == len(old):
        for i, (before, after) in enumerate(zip(old, new)):
            yield from json_patch_between(before, after, f"{path}/{i}")
    elif new[: len(old)] == old:
        yield from (JsonPatchOperation("add", f"{path}/-", item) for item in new[len(old) :])
    elif [old[i] for i in kept] == new:
        for i in reversed(range(len(old))):  # from the end, so that indexes stay what they are
            if i not in kept:
                yield JsonPatchOperation("remove", f"{path}/{i}")
    else:
        yield JsonPatchOperation("replace", path, new)


def _escape(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
