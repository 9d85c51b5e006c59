"""Writes whose answer was lost: the object is read, again and again, until its state is known.

Until then a pod keeps its place on a node, and a claim its devices. If they were given away in doubt, because reading
failed as well, two pods could come to share what only one can have.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from kubesched.api.merge_patch import apply_merge_patch
from kubesched.daemon.log import Log
from kubesched.kube.errors import ApiStatusError, KubeError

_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 5.0

log = Log(__name__)

T = TypeVar("T")


def leaves_doubt(error: KubeError) -> bool:
    """Whether a write that ended so may have taken effect. A conflict may be with an earlier try of the same write."""
    return error.maybe_done or (isinstance(error, ApiStatusError) and (error.code == 409 or error.code >= 500))


async def ask_until_certain(ask: Callable[[], Awaitable[T]]) -> T:
    """Ask until the server answers. Of all errors only Not Found is an answer, and is raised.

    Errors about credentials, permissions, throttling or a server that is ill say nothing about what was written.
    """
    pause = _FIRST_PAUSE
    while True:
        try:
            return await ask()
        except KubeError as error:
            if isinstance(error, ApiStatusError) and error.code == 404:
                raise
            if pause >= _LONGEST_PAUSE:
                log.warning("What became of a write is still not known: asking again", err=error)
        await asyncio.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)


def is_replaced(written: dict[str, Any], stored: dict[str, Any], subresource: str) -> bool:
    """Whether the stored object is the one that was written: its status, or all but what the server fills in."""
    if subresource == "status":
        return bool(_without_empty(written.get("status")) == _without_empty(stored.get("status")))
    return bool(_client_fields(written) == _client_fields(stored))


def is_patched(patch: dict[str, Any], stored: dict[str, Any]) -> bool:
    """Whether the stored object has the patch: whether merging it again would change nothing."""
    metadata = {name: value for name, value in patch.get("metadata", {}).items() if name != "resourceVersion"}
    return bool(_without_empty(apply_merge_patch(stored, {**patch, "metadata": metadata})) == _without_empty(stored))


def _client_fields(obj: dict[str, Any]) -> Any:
    """The fields that a client writes: all but the status and what the server fills in."""
    metadata = {name: obj["metadata"].get(name) for name in ("annotations", "finalizers", "labels", "ownerReferences")}
    return _without_empty({**obj, "status": None, "metadata": metadata})


def _without_empty(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: kept for key, inner in value.items() if (kept := _without_empty(inner)) not in (None, {}, [], "")}
    return [_without_empty(item) for item in value] if isinstance(value, list | tuple) else value
