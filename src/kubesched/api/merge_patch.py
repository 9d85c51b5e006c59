"""JSON merge patch, RFC 7386: null deletes, everything but objects replaces."""

from __future__ import annotations

from typing import Any

from kubesched.api.api_error import bad_request
from kubesched.api.kinds import Object


def apply_merge_patch(target: Any, patch: Any) -> Any:
    """The target, which may be any JSON, with the patch merged in. Neither is changed."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = apply_merge_patch(result.get(name), value)
    return result


def patch_between(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """The patch that makes one of the other; empty if they are the same."""
    patch: dict[str, Any] = {name: None for name in before if name not in after}
    for name, value in after.items():
        old_value = before.get(name)
        if isinstance(old_value, dict) and isinstance(value, dict):
            if inner := patch_between(old_value, value):
                patch[name] = inner
        elif old_value != value:
            patch[name] = value
    return patch


def merge_patch(obj: Object, patch: Any) -> Object:
    """The object with the patch merged in; a 400 if the patch is no object."""
    result: Object = apply_merge_patch(obj, patch_object(patch))
    return result


def patch_object(patch: Any) -> Object:
    """The patch, if it is an object; a 400 as Kubernetes words it otherwise."""
    if not isinstance(patch, dict):
        kind = _GO_KINDS.get(type(patch), "null")
        message = f"error decoding patch: json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
        raise bad_request(message)
    return patch


_GO_KINDS = {str: "string", bool: "bool", int: "number", float: "number", list: "array"}
