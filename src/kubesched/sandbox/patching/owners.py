"""Who owns which fields: managedFields, read and written."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from kubesched.api.kinds import Object
from kubesched.sandbox.patching.fieldsets import Fields, from_fields_v1, to_fields_v1

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
    """The owners after some fields changed hands; who has nothing left is gone."""
    left = (replace(owner, fields=owner.fields - lost) for owner in owners)
    return {owner.id: owner for owner in left if owner.fields}


def capped(owners: Owners) -> Owners:
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
