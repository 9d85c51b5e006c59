"""Which manager owns which fields: noted after a write, and what an apply declares that is no field."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from kubesched.admission.schemas.table import CUSTOM, Type, object_type
from kubesched.api.api_error import ApiError, bad_request
from kubesched.api.kinds import Object, Resource
from kubesched.sandbox.patching.combining import FieldChanges
from kubesched.sandbox.patching.owners import (
    NEVER_OWNED,
    Owner,
    Owners,
    Path,
    capped,
    field_step,
    managed_fields,
    read_owners,
    spelled,
    with_managed_fields,
    without_fields,
    write_owners,
)
from kubesched.sandbox.patching.structure import is_declared, is_listing, is_mapping, item_steps, present, type_of_field


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
    comparison = FieldChanges()
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


def undeclared(resource: Resource, applied: Object) -> ApiError | None:
    """The 400 for fields that do not exist and lists with items that have the same key."""
    errors = [f"{spelled(path)}: {why}" for path, why in _errors(object_type(resource), applied, ())]
    if not errors:
        return None
    metadata = applied.get("metadata")
    namespace, name = (
        (metadata.get("namespace", ""), metadata.get("name", "")) if isinstance(metadata, dict) else ("", "")
    )
    subject = f"{namespace}/{name}; {resource.api_version}, Kind={resource.kind}"
    message = errors[0] if len(errors) == 1 else "errors:\n" + "\n".join(f"  {error}" for error in errors)
    return bad_request(f"failed to create typed patch object ({subject}): {message}")


def _errors(type_: Type, value: Any, path: Path) -> Iterator[tuple[Path, str]]:
    if is_mapping(type_, value):
        for name, child in present(value):
            inner = (*path, field_step(name))
            if type_.shape == "struct" and type_.name != CUSTOM and not is_declared(type_, name):
                yield inner, "field not declared in schema"
            else:
                yield from _errors(type_of_field(type_, name), child, inner)
    elif is_listing(type_, value):
        yield from _list_errors(type_, value, path)
    elif type_.shape == "list" and not isinstance(value, list):
        yield path, f"expected list, got {value!r}"
    elif type_.shape in ("map", "struct") and not isinstance(value, dict):
        yield path, f"expected map, got {value!r}"


def _list_errors(type_: Type, items: list[Any], path: Path) -> Iterator[tuple[Path, str]]:
    seen: set[str] = set()
    for position, (step, item) in enumerate(zip(item_steps(type_, items), items)):
        if step.startswith("i:"):
            keys = " ".join(f'"{key}"' for key in type_.keys)
            yield (
                path,
                f"element {position}: associative list with keys has an element that omits all key fields [{keys}]",
            )
        elif step in seen:
            yield path, f"duplicate entries for key {spelled((step,))}"
        else:
            seen.add(step)
            yield from _errors(type_.item, item, (*path, step))
