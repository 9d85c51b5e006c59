"""Strategic merge patch: lists merge by the keys that the field table names, directed by $-keys in the patch."""

from __future__ import annotations

from typing import Any

from kubesched.admission.schemas.table import Type, definition_of, object_type
from kubesched.api.api_error import ApiError, bad_request, unprocessable, unsupported_media_type
from kubesched.api.kinds import Object, Resource
from kubesched.api.merge_patch import patch_object
from kubesched_sandbox.patching.structure import type_of_field

DIRECTIVE = "$patch"
RETAIN_KEYS = "$retainKeys"
DELETE_FROM_LIST = "$deleteFromPrimitiveList"
SET_ORDER = "$setElementOrder"

WITHOUT_STRATEGIC = ("application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml")
"""What a custom resource can be patched with: its schema does not say how its lists merge."""


def strategic_merge(resource: Resource, obj: Object, patch: Any) -> Object:
    """The object with the patch merged in; a 415 for custom resources, a 400 or 422 for a patch that is none."""
    if definition_of(resource) is None:
        raise unsupported_media_type(WITHOUT_STRATEGIC)
    return _merged_maps(obj, patch_object(patch), object_type(resource))


def _merged_maps(original: Object, patch: Object, type_: Type) -> Object:
    if DIRECTIVE in patch:
        return _replaced_or_deleted(patch)
    result = _retained(original, patch)
    done = {RETAIN_KEYS}
    for key, order in patch.items():
        if key.startswith(SET_ORDER):
            field = _directed_field(key, SET_ORDER, "setElementOrder list")
            _merge_ordered(result, patch, field, order, type_of_field(type_, field))
            done |= {key, field}
    for key, value in patch.items():
        if key not in done:
            _merge_field(result, key, value, type_)
    return result


def _replaced_or_deleted(patch: Object) -> Object:
    match patch[DIRECTIVE]:
        case "replace":
            return {key: value for key, value in patch.items() if key != DIRECTIVE}
        case "delete":
            return {}
    raise _unknown_directive(patch)


def _retained(original: Object, patch: Object) -> Object:
    """A copy of the original without the fields that $retainKeys does not name."""
    if RETAIN_KEYS not in patch:
        return dict(original)
    retained = patch[RETAIN_KEYS]
    if not isinstance(retained, list):
        raise _bad_format("retainKeys")
    for key, value in patch.items():
        directs = key == RETAIN_KEYS or key.startswith((DELETE_FROM_LIST, SET_ORDER))
        if not directs and value is not None and key not in retained:
            raise _bad_format("retainKeys")
    return {key: value for key, value in original.items() if key in retained}


def _merge_field(result: Object, key: str, value: Any, struct: Type) -> None:
    if key.startswith(DELETE_FROM_LIST):
        field = _directed_field(key, DELETE_FROM_LIST, "primitive list")
        if isinstance(value, list) and isinstance(result.get(field), list):
            result[field] = [item for item in result[field] if item not in value]
        return
    if value is None:
        result.pop(key, None)
        return
    type_ = type_of_field(struct, key)
    old = result.get(key)
    if isinstance(old, dict) and isinstance(value, dict):
        result[key] = value if type_.replaces else _merged_maps(old, value, type_)
    elif isinstance(old, list) and isinstance(value, list):
        result[key] = _merged_lists(old, value, type_) if type_.merges else value
    elif _is_directed(value):
        result.pop(key, None)
    else:
        result[key] = _plain(value)


def _merge_ordered(result: Object, patch: Object, field: str, order: Any, type_: Type) -> None:
    """Merge one list and then bring it into the order that the patch sets for its own items."""
    if not isinstance(order, list):
        raise _bad_format("setElementOrder list")
    old, new = result.get(field), patch.get(field)
    if not isinstance(old, list | None) or not isinstance(new, list | None):
        raise _bad_format("setElementOrder list")
    if old is None and new is None:
        return
    _check_order(new or [], order, type_.merge_key)
    if new is None:
        merged = old or []
    elif old is None:
        merged = _plain(new)
    else:
        merged = _merged_lists(old, new, type_) if type_.merges else new
    result[field] = _in_order(merged, order, old or [], type_.merge_key)


def _check_order(items: list[Any], order: list[Any], merge_key: str) -> None:
    """Items of the patch must appear in the order list, in the same order."""
    wanted = iter([_identity(item, merge_key) for item in order])
    for item in items if order else ():
        if _is_directed(item):
            continue
        identity = _identity(item, merge_key)
        if all(identity != known for known in wanted):
            message = f"The order in patch list:\n{_go(items)}\n doesn't match {SET_ORDER} list:\n{_go(order)}\n"
            raise bad_request(message)


def _merged_lists(original: list[Any], patch: list[Any], type_: Type) -> list[Any]:
    if not any(isinstance(item, dict) for item in (*original, *patch)):
        if any(isinstance(item, list) for item in (*original, *patch)):
            raise unprocessable("lists of lists are not supported")
        return _in_order(list(dict.fromkeys((*original, *patch))), patch, original, "")
    if not all(isinstance(item, dict) for item in (*original, *patch)):
        raise bad_request("list element types are not identical")
    merge_key = type_.merge_key
    if not merge_key:
        raise bad_request("cannot merge lists without merge key")
    kept, changes = _without_directed(original, patch, merge_key)
    merged, positions = list(kept), _positions(kept, merge_key)
    for change in changes:
        here = positions.setdefault(_identity(change, merge_key), len(merged))
        if here == len(merged):
            merged.append(_plain(change))
        else:
            merged[here] = _merged_maps(merged[here], change, type_.item)
    return _in_order(merged, changes, kept, merge_key)


def _positions(items: list[Any], merge_key: str) -> dict[Any, int]:
    """Where an item is first found; items may share a merge key, as ports of two protocols do."""
    return {_identity(item, merge_key): position for position, item in reversed(list(enumerate(items)))}


def _without_directed(original: list[Any], patch: list[Any], merge_key: str) -> tuple[list[Any], list[Any]]:
    """The original and the patch after items with a $patch directive were applied."""
    kept, changes, replace = original, [], False
    for item in patch:
        match item.get(DIRECTIVE):
            case None:
                changes.append(item)
            case "delete":
                gone = _identity(item, merge_key)
                kept = [other for other in kept if _identity(other, merge_key) != gone]
            case "replace":
                replace = True
            case "merge":
                raise bad_request("merging lists cannot yet be specified in the patch")
            case _:
                raise _unknown_directive(item)
    return (changes, []) if replace else (kept, changes)


def _in_order(merged: list[Any], order: list[Any], original: list[Any], merge_key: str) -> list[Any]:
    """Items that the patch knows in its order; the others where they were, as far as that is known."""
    rank, before = _positions(order, merge_key), _positions(original, merge_key)
    known = [item for item in merged if _identity(item, merge_key) in rank]
    known.sort(key=lambda item: rank[_identity(item, merge_key)])
    others = [item for item in merged if _identity(item, merge_key) not in rank]
    others.sort(key=lambda item: before.get(_identity(item, merge_key), len(before)))
    result: list[Any] = []
    for item in known:
        here = before.get(_identity(item, merge_key), -1)
        while others and before.get(_identity(others[0], merge_key), len(before)) < here:
            result.append(others.pop(0))
        result.append(item)
    return result + others


def _identity(item: Any, merge_key: str) -> Any:
    """What tells an item from the others of its list."""
    if not merge_key:
        return _go(item) if isinstance(item, dict | list) else item
    if not isinstance(item, dict):
        raise bad_request(f"expected a map[string]interface {{}}, but received a {type(item).__name__}")
    if merge_key not in item:
        raise bad_request(f"map: {_go(item)} does not contain declared merge key: {merge_key}")
    return _identity(item[merge_key], "")


def _plain(value: Any) -> Any:
    """A value of the patch where the object has none: without directives and nulls."""
    if isinstance(value, dict):
        return {
            key: _plain(inner)
            for key, inner in value.items()
            if inner is not None and not _is_directive(key) and not _is_directed(inner)
        }
    if isinstance(value, list):
        return [_plain(item) for item in value if not _is_directed(item)]
    return value


def _is_directive(key: str) -> bool:
    return key in (DIRECTIVE, RETAIN_KEYS) or key.startswith((f"{DELETE_FROM_LIST}/", f"{SET_ORDER}/"))


def _is_directed(value: Any) -> bool:
    return isinstance(value, dict) and DIRECTIVE in value


def _directed_field(key: str, prefix: str, what: str) -> str:
    directive, _, field = key.partition("/")
    if directive != prefix or not field:
        raise _bad_format(what)
    return field


def _go(value: Any) -> str:
    """As Go prints a value."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{_go(value[key])}' for key in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(_go, value))}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return "<nil>" if value is None else str(value)


def _unknown_directive(patch: Object) -> ApiError:
    return bad_request(f"unknown patch type: {_go(patch[DIRECTIVE])} in map: {_go(patch)}")


def _bad_format(what: str) -> ApiError:
    return bad_request(f"invalid patch format of {what}")
