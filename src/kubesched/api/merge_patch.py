"""JSON merge patch, RFC 7386: null deletes, everything but objects replaces."""

from __future__ import annotations

from typing import Any


def merged(target: Any, patch: Any) -> Any:
    """What becomes of the target, whatever it is, when the patch is merged in. Neither is changed."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result


def patch_between(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """The patch that makes one of the other; empty if they are the same."""
    patch: dict[str, Any] = {name: None for name in before if name not in after}
    for name, value in after.items():
        known = before.get(name)
        if isinstance(known, dict) and isinstance(value, dict):
            if deeper := patch_between(known, value):
                patch[name] = deeper
        elif known != value:
            patch[name] = value
    return patch
