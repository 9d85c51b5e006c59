"""One output schema: every answer is camelCase JSON with `apiVersion` and `kind`, made from a dataclass."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from enum import Enum
from typing import Any, Literal

API_VERSION: Literal["kubesched.dev/v1alpha1"] = "kubesched.dev/v1alpha1"


def document(kind: str, answer: object) -> dict[str, Any]:
    """The answer, a dataclass, as a document; `kind` says how to read it."""
    return {"apiVersion": API_VERSION, "kind": kind, **plain(answer)}


def plain(value: Any) -> Any:
    """Names of fields in camelCase, nothing for None. Keys of mappings are data (names of nodes): they stay."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = ((field.name, getattr(value, field.name)) for field in dataclasses.fields(value))
        return {camel(name): plain(content) for name, content in fields if content is not None}
    if isinstance(value, Mapping):
        return {str(key): plain(content) for key, content in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    return value.value if isinstance(value, Enum) else value


def camel(name: str) -> str:
    """`current_node` as `currentNode`."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
