"""Field ownership after creates, updates and patches other than apply."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from kubesched.admission.schemas.table import Type, object_type
from kubesched.api.kinds import Object, Resource
from kubesched.sandbox.patching.comparing import Comparison
from kubesched.sandbox.patching.owners import (
    NEVER_OWNED,
    Owner,
    Owners,
    capped,
    managed_fields,
    read_owners,
    with_managed_fields,
    without_fields,
    write_owners,
)


def track(
    resource: Resource, old: Object | None, new: Object, *, manager: str, subresource: str = "", now: str
) -> Object:
    """The new object with managedFields that tell who wrote what. To be called once admission is through.

    Ownership is worked out only for objects that have managedFields: those that were applied, and those that kubectl
    created. Everything else, which is nearly all traffic, passes untouched; should it be applied one day, what is
    there by then belongs to "before-first-apply".
    """
    before, given = managed_fields(old), managed_fields(new)
    if before is None and given is None and (old is not None or not manager.startswith("kubectl")):
        return new
    if given is not None and not subresource and _asks_for_reset(given):
        return with_managed_fields(new, [])
    base, owners = _base(before, given, from_client=not subresource)
    if not owners and old is not None:
        return with_managed_fields(new, [])
    writer = Owner(manager or "unknown", "Update", resource.api_version, frozenset(), subresource, now)
    changed = _after_update(object_type(resource), old or {}, new, owners, writer)
    return with_managed_fields(new, base if changed is None else write_owners(changed))


def _asks_for_reset(given: list[Any]) -> bool:
    return given in ([], [{}])


def _base(before: list[Any] | None, given: list[Any] | None, *, from_client: bool) -> tuple[list[Any], Owners]:
    """What to start from: the managedFields the client sent, if they make sense, else the ones that were there."""
    if from_client and given:
        try:
            return given, read_owners(given)
        except ValueError:
            # Clients that know nothing of managedFields may send rubbish; Kubernetes then keeps what it had.
            pass
    return before or [], read_owners(before)


def _after_update(type_: Type, old: Object, new: Object, owners: Owners, writer: Owner) -> Owners | None:
    """Who owns what once the writer owns what it changed; None if it changed nothing."""
    comparison = Comparison()
    comparison.compare(type_, old, new)
    written, removed = comparison.written() - NEVER_OWNED, comparison.removed() - NEVER_OWNED
    if not written and not removed:
        return None
    mine = owners.get(writer.id)
    after = without_fields(owners.values(), written | removed)
    if written:
        kept = mine.fields - removed if mine is not None else frozenset()
        after[writer.id] = replace(writer, fields=kept | written)
    return capped(after)
