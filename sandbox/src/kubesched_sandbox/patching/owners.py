"""Owners of fields: sets of fields, and managedFields, read and written.

A path is a tuple of steps, each spelled as FieldsV1 spells it: `f:spec` a field, `k:{"name":"web"}` an item of a keyed
list, `v:"value"` an item of a set, `i:0` a position. A set of fields is a frozenset of paths.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from kubesched.api.kinds import Object

Action = Literal["Apply", "Update"]
OwnerId: TypeAlias = tuple[str, str, str, str]

MAX_UPDATERS = 10
ANCIENT = "ancient-changes"

NEVER_OWNED: Fields = frozenset(
    {("f:apiVersion",), ("f:kind",), ("f:metadata",)}
    | {
        ("f:metadata", f"f:{name}")
        for name in (
            "clusterName",
            "creationTimestamp",
            "generation",
            "managedFields",
            "name",
            "namespace",
            "resourceVersion",
            "selfLink",
            "uid",
        )
    }
)
"""What identifies an object, or is the server's own, has no manager."""


class Owner(msgspec.Struct, frozen=True):
    """One entry of managedFields: a client, how it writes, and the fields it has written."""

    manager: str
    action: Action
    api_version: str
    fields: Fields
    subresource: str = ""
    time: str | None = None

    @property
    def id(self) -> OwnerId:
        """Writes under the same id add up. Someone who applies stays the same when moving to another version."""
        version = self.api_version if self.action == "Update" else ""
        return self.manager, self.action, version, self.subresource

    def describe(self) -> str:
        """As conflicts name it."""
        name = f'"{self.manager}"'
        if self.subresource:
            name += f' with subresource "{self.subresource}"'
        return f"{name} using {self.api_version}" if self.action == "Update" else name


Owners: TypeAlias = dict[OwnerId, Owner]


class _Entry(msgspec.Struct, frozen=True, rename="camel"):
    """An entry as JSON has it."""

    operation: Action
    fields_v1: dict[str, Any]
    manager: str = ""
    api_version: str = ""
    time: str | None = None
    fields_type: Literal["FieldsV1"] = "FieldsV1"
    subresource: str = ""

    def owner(self) -> Owner:
        fields = from_fields_v1(self.fields_v1)
        return Owner(self.manager, self.operation, self.api_version, fields, self.subresource, self.time)


def managed_fields(obj: Object | None) -> list[Any] | None:
    """The managedFields of an object, as they are; None if it has none."""
    metadata = obj.get("metadata") if obj is not None else None
    return metadata.get("managedFields") if metadata else None


def read_owners(entries: list[Any] | None) -> Owners:
    """The owners that managedFields tell of; ValueError if they cannot be read."""
    owners: Owners = {}
    for entry in msgspec.convert(entries or [], list[_Entry]):
        owner = entry.owner()
        twin = owners.get(owner.id)
        owners[owner.id] = owner if twin is None else replace(owner, fields=owner.fields | twin.fields)
    return owners


def write_owners(owners: Owners) -> list[Object]:
    """managedFields in the order of Kubernetes: who applies first, then by time and name."""
    kept = [owner for owner in owners.values() if owner.fields]
    kept.sort(key=lambda owner: (owner.action, owner.time or "", owner.manager, owner.api_version, owner.subresource))
    return [_entry(owner) for owner in kept]


def _entry(owner: Owner) -> Object:
    entry: Object = {"manager": owner.manager, "operation": owner.action, "apiVersion": owner.api_version}
    if owner.time is not None:
        entry["time"] = owner.time
    entry |= {"fieldsType": "FieldsV1", "fieldsV1": to_fields_v1(owner.fields)}
    return entry | ({"subresource": owner.subresource} if owner.subresource else {})


def with_managed_fields(obj: Object, entries: list[Object]) -> Object:
    """The object with other managedFields; without any, if there are none."""
    metadata = {name: value for name, value in obj.get("metadata", {}).items() if name != "managedFields"}
    return {**obj, "metadata": {**metadata, "managedFields": entries} if entries else metadata}


def without_fields(owners: Iterable[Owner], lost: Fields) -> Owners:
    """The owners without these fields; owners without any field are dropped."""
    left = (replace(owner, fields=owner.fields - lost) for owner in owners)
    return {owner.id: owner for owner in left if owner.fields}


def cap_updates(owners: Owners) -> Owners:
    """At most ten entries of updates: the oldest ones of a version become one."""
    updaters = sorted(
        (owner for owner in owners.values() if owner.action == "Update"),
        key=lambda owner: (owner.time or "", owner.manager),
    )
    surplus = len(updaters) - MAX_UPDATERS
    if surplus <= 0:
        return owners
    result = dict(owners)
    for version in dict.fromkeys(owner.api_version for owner in updaters):
        same = [owner for owner in updaters if owner.api_version == version]
        folded = same[: surplus + 1]
        if surplus > 0 and len(folded) > 1:
            for owner in folded:
                del result[owner.id]
            fields = frozenset[Any]().union(*(owner.fields for owner in folded))
            ancient = Owner(ANCIENT, "Update", version, fields, time=folded[-1].time)
            result[ancient.id] = ancient
            surplus -= len(folded) - 1
    return result


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
