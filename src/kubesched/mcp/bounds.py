"""Answers of bounded size: lists are cut, and the answer says how much was left out of which."""

from __future__ import annotations

from typing import Any

import msgspec

LARGEST = 24_000
"""Bytes of an answer as JSON, which is a few thousand tokens."""
_CAPS = (50, 20, 8, 3, 1, 0)
TRUNCATED = "truncated"
_OF_A_RECORD = 20
"""A mapping that is longer is one of names: no record of an answer has as many fields."""


def limit_size(document: dict[str, Any]) -> dict[str, Any]:
    """The document with lists and mappings short enough for all of it to fit; `truncated` counts what is gone."""
    cut, left_out = document, dict[str, int]()
    for most in _CAPS:
        left_out = {}
        cut = _cut(document, most, "", left_out)
        if len(msgspec.json.encode(cut)) <= LARGEST:
            break
    return {**cut, TRUNCATED: left_out} if left_out else cut


def _cut(value: Any, most: int, path: str, left_out: dict[str, int]) -> Any:
    match value:
        case dict():
            return {key: _cut_items(item, most, f"{path}.{key}".lstrip("."), left_out) for key, item in value.items()}
        case list():
            return [_cut_items(item, most, path, left_out) for item in value]
    return value


def _cut_items(value: Any, most: int, path: str, left_out: dict[str, int]) -> Any:
    if isinstance(value, list) and len(value) > most:
        left_out[path] = left_out.get(path, 0) + len(value) - most
        value = value[:most]
    elif isinstance(value, dict) and len(value) > max(most, _OF_A_RECORD):
        left_out[path] = left_out.get(path, 0) + len(value) - most
        value = dict(list(value.items())[:most])
    return _cut(value, most, path, left_out)
