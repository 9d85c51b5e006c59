"""One output schema: every answer is camelCase JSON with `apiVersion` and `kind`, made from a dataclass."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from enum import Enum
from functools import cache
from typing import Any, Literal

API_VERSION: Literal["kubesched.dev/v1alpha1"] = "kubesched.dev/v1alpha1"
_SCALARS = (str, int, float)


def document(kind: str, answer: object) -> dict[str, Any]:
    """The answer, a dataclass, as a document; `kind` says how to read it."""
    return {"apiVersion": API_VERSION, "kind": kind, **plain(answer)}


def plain(value: Any) -> Any:
    """Names of fields in camelCase, nothing for None. Keys of mappings are data (names of nodes): they stay."""
    if isinstance(value, Enum):
        return value.value
    if value is None or isinstance(value, _SCALARS):
        return value
    kind: Any = type(value)
    if names := _names(kind):
        fields = [(shown, getattr(value, name)) for name, shown in names]
        return {shown: plain(content) for shown, content in fields if content is not None}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): plain(content) for key, content in value.items()}
    return value


@cache
def _names(type_: type) -> tuple[tuple[str, str], ...]:
    """Of all fields, here and in documents; none for what is no dataclass."""
    if not dataclasses.is_dataclass(type_):
        return ()
    return tuple((field.name, camel(field.name)) for field in dataclasses.fields(type_))


def camel(name: str) -> str:
    """`current_node` as `currentNode`."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
