"""What a request is about, read from its path."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote

from kubesched.api.api_error import bad_request


class Target(NamedTuple):
    """An object, a collection or a subresource. An empty name stands for the whole collection."""

    group: str
    version: str
    plural: str
    namespace: str | None = None
    name: str = ""
    subresource: str = ""
    watch: bool = False
    """Asked for by the older way of watching, a prefix in the path."""


_NAMESPACE_SUBRESOURCES = ("status", "finalize")


@lru_cache(maxsize=4096)
def target_of(path: str) -> Target | None:
    """The target of a path below /api or /apis; None when it names no resource."""
    parts = path.split("/")[1:]
    if parts and parts[-1] == "":
        parts.pop()
    if parts[:1] == ["api"] and len(parts) >= 3:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[:1] == ["apis"] and len(parts) >= 4:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    rest = [_decoded(part) for part in rest]
    watch = rest[0] == "watch" and len(rest) > 1
    if watch:
        rest = rest[1:]
    namespace: str | None = None
    if rest[0] == "namespaces" and len(rest) > 2 and not (len(rest) == 3 and rest[2] in _NAMESPACE_SUBRESOURCES):
        namespace, rest = rest[1], rest[2:]
    if len(rest) > 3 or "" in rest or namespace == "":
        return None
    name = rest[1] if len(rest) > 1 else ""
    subresource = rest[2] if len(rest) > 2 else ""
    return Target(group, version, rest[0], namespace, name, subresource, watch)


def _decoded(part: str) -> str:
    if "%" not in part:
        return part
    try:
        text = unquote(part, errors="strict")
    except UnicodeDecodeError:
        raise bad_request("the path is not valid UTF-8") from None
    if "\0" in text:
        raise bad_request("the path contains a NUL byte")
    return text
