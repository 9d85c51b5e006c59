"""JSON merge patch (RFC 7386): null deletes, objects merge, everything else replaces."""

from __future__ import annotations

from typing import Any

from kubesched.api.api_error import bad_request
from kubesched.api.kinds import Object


def merge_patch(obj: Object, patch: Any) -> Object:
    """The object with the patch merged in; a 400 if the patch is no object."""
    return merged(obj, patch_object(patch))


def patch_object(patch: Any) -> Object:
    """The patch, if it is an object; a 400 as Kubernetes words it otherwise."""
    if not isinstance(patch, dict):
        kind = _GO_KINDS.get(type(patch), "null")
        message = f"error decoding patch: json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
        raise bad_request(message)
    return patch


def merged(target: Any, patch: Object) -> Object:
    """What becomes of the target, whatever it is, when the patch is merged in."""
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            result[key] = merged(result.get(key), value)
        else:
            result[key] = value
    return result


_GO_KINDS = {str: "string", bool: "bool", int: "number", float: "number", list: "array"}
