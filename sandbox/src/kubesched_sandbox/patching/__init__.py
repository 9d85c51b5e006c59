"""Strategic merge patches, server-side apply, and managedFields.

Everything is a pure function: objects come in and are never changed, new objects come out.
JSON patches and merge patches are in `kubesched.api`: others need them too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from kubesched.admission.schemas.table import CUSTOM, Type, object_type
from kubesched.api.api_error import ApiError, bad_request
from kubesched.api.kinds import Object, Resource
from kubesched_sandbox.patching.owners import (
    NEVER_OWNED,
    Owner,
    Owners,
    Path,
    cap_updates,
    field_step,
    json_text,
    managed_fields,
    read_owners,
    spelled,
    with_managed_fields,
    without_fields,
    write_owners,
)
from kubesched_sandbox.patching.strategic import strategic_merge
from kubesched_sandbox.patching.structure import (
    FieldChanges,
    combine,
    everything,
    fields_of,
    is_declared,
    is_listing,
    is_mapping,
    item_steps,
    present,
    type_of_field,
    with_declared_parents,
    without,
)

__all__ = ["apply", "strategic_merge", "track"]


BEFORE_FIRST_APPLY = "before-first-apply"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
KUBECTL = "kubectl"
"""The field manager of `kubectl apply --server-side`, which takes over what client-side apply left behind."""

Conflict = tuple[Owner, Path]


def apply(
    resource: Resource, live: Object | None, applied: Any, *, manager: str, force: bool, now: str, subresource: str = ""
) -> Object:
    """The object as the client wants it, managedFields included; a 409 if fields of others would have to change.

    Fields that this client applied before and leaves out now are removed, unless another manager owns them too.
    What does not belong to the subresource that is written is left alone.
    """
    config = _writable(resource, _checked(resource, applied), subresource)
    type_ = object_type(resource)
    base = with_managed_fields(live, []) if live is not None else {}
    owners = _owners_of(resource, type_, live, base, now)
    me = Owner(manager, "Apply", resource.api_version, fields_of(type_, config) - NEVER_OWNED, subresource, now)

    last = owners.pop(me.id, None)
    result = _pruned(type_, combine(type_, base, config), me, last, owners)
    comparison = FieldChanges()
    comparison.compare(type_, base, result)
    written = comparison.written()
    conflicts = [(owner, path) for _, owner in sorted(owners.items()) for path in sorted(owner.fields & written)]
    if conflicts and not force:
        conflicts = _not_inherited(resource, type_, base, manager, conflicts)
        if conflicts:
            raise conflict_error(conflicts)

    after = without_fields(owners.values(), written | comparison.removed())
    is_same = last is not None and last.fields == me.fields and result == base
    after[me.id] = replace(me, time=last.time) if last is not None and is_same else me
    return with_managed_fields(_annotated(result, config, manager), write_owners(after))


def _checked(resource: Resource, applied: Any) -> Object:
    if not isinstance(applied, dict):
        raise bad_request("error decoding YAML: an object is expected")
    version = applied.get("apiVersion", "")
    if version != resource.api_version:
        specified = f"Specified patch version: {version}, expected: {resource.api_version}"
        raise bad_request(f"Incorrect version specified in apply patch. {specified}")
    error = undeclared(resource, applied)
    if error is not None:
        raise error
    if managed_fields(applied) is not None:
        raise bad_request("metadata.managedFields must be nil")
    return applied


def _writable(resource: Resource, applied: Object, subresource: str) -> Object:
    """The half that can be written this way: the status only through its subresource, and nothing else through that."""
    if subresource == "status":
        return {name: value for name, value in applied.items() if name in ("apiVersion", "kind", "metadata", "status")}
    if "status" in resource.subresources:
        return {name: value for name, value in applied.items() if name != "status"}
    return applied


def _owners_of(resource: Resource, type_: Type, live: Object | None, base: Object, now: str) -> Owners:
    try:
        owners = read_owners(managed_fields(live))
    except ValueError as error:
        raise bad_request(f"failed to decode managed fields: {error}") from error
    if owners or live is None:
        return owners
    # There are no managedFields yet: what is there gets a manager of its own.
    there = everything(type_, base) - NEVER_OWNED
    unknown = Owner(BEFORE_FIRST_APPLY, "Update", resource.api_version, there, time=now)
    return {unknown.id: unknown}


def _pruned(type_: Type, merged: Object, me: Owner, last: Owner | None, others: Owners) -> Object:
    """The merged object without what only this client owned and no longer applies."""
    if last is None:
        return merged
    owned = me.fields.union(*(owner.fields for owner in others.values()))
    gone = with_declared_parents(type_, last.fields) - with_declared_parents(type_, owned) - NEVER_OWNED
    pruned: Object = without(type_, merged, gone)
    return pruned


def _not_inherited(
    resource: Resource, type_: Type, live: Object, manager: str, conflicts: list[Conflict]
) -> list[Conflict]:
    """The conflicts without those about fields that kubectl applied on the client's side, unchanged since."""
    text = (live.get("metadata", {}).get("annotations") or {}).get(LAST_APPLIED)
    if manager != KUBECTL or not text:
        return conflicts
    try:
        last_applied = msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.DecodeError:
        return conflicts  # an annotation that is not kubectl's allows nothing
    if last_applied.get("apiVersion") != resource.api_version:
        return conflicts
    comparison = FieldChanges()
    comparison.compare(type_, last_applied, live)
    inherited = fields_of(type_, last_applied) - comparison.written() - comparison.removed()
    return [(owner, path) for owner, path in conflicts if path not in inherited]


def _annotated(result: Object, applied: Object, manager: str) -> Object:
    """With the annotation of client-side apply up to date, so that one can go back to that."""
    annotations = result.get("metadata", {}).get("annotations") or {}
    if manager != KUBECTL or not annotations.get(LAST_APPLIED):
        return result
    metadata = dict(applied.get("metadata") or {})
    if "annotations" in metadata:
        metadata["annotations"] = {k: v for k, v in (metadata["annotations"] or {}).items() if k != LAST_APPLIED}
    text = json_text({**applied, "metadata": metadata}) + "\n"
    return {**result, "metadata": {**result["metadata"], "annotations": {**annotations, LAST_APPLIED: text}}}


def conflict_error(conflicts: Sequence[Conflict]) -> ApiError:
    """The 409 that names the fields and their owners."""
    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {owner.describe()}", "field": spelled(path)}
        for owner, path in conflicts
    ]
    if len(conflicts) == 1:
        ((owner, path),) = conflicts
        message = f"Apply failed with 1 conflict: conflict with {owner.describe()}: {spelled(path)}"
    else:
        lines: list[str] = []
        for name in dict.fromkeys(owner.describe() for owner, _ in conflicts):
            lines.append(f"conflicts with {name}:")
            lines += [f"- {spelled(path)}" for owner, path in conflicts if owner.describe() == name]
        message = f"Apply failed with {len(conflicts)} conflicts: " + "\n".join(lines)
    return ApiError(409, "Conflict", message, {"causes": causes})


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
    if given is not None and not subresource and given in ([], [{}]):
        return with_managed_fields(new, [])
    base, owners = _base(before, given, from_client=not subresource)
    if not owners and old is not None:
        return with_managed_fields(new, [])
    writer = Owner(manager or "unknown", "Update", resource.api_version, frozenset(), subresource, now)
    changed = _after_update(object_type(resource), old or {}, new, owners, writer)
    return with_managed_fields(new, base if changed is None else write_owners(changed))


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
    return cap_updates(after)


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
