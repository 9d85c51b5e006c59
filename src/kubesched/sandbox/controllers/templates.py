"""Pod templates: their hash as labels carry it, and whether two of them mean the same."""

from __future__ import annotations

import hashlib

import msgspec

from kubesched.api.kinds import Object

POD_TEMPLATE_HASH = "pod-template-hash"
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_LENGTH = 10
_encode = msgspec.json.Encoder(order="deterministic").encode


def hash_of(value: object, collisions: int = 0) -> str:
    """A short name for a value, the same for equal values; another one after a collision."""
    digest = hashlib.sha256(_encode([value, collisions] if collisions else value)).digest()
    return "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in digest[:_LENGTH])


def without_hash(template: Object) -> Object:
    metadata = template.get("metadata") or {}
    labels = {key: value for key, value in (metadata.get("labels") or {}).items() if key != POD_TEMPLATE_HASH}
    return {**template, "metadata": {**metadata, "labels": labels}}


def is_same_template(one: Object, other: Object) -> bool:
    return without_hash(one) == without_hash(other)


def share_of(value: int | str | None, total: int, *, round_up: bool) -> int:
    """A number of pods, or a percentage of all of them."""
    if value is None:
        return 0
    if isinstance(value, int):
        return value
    percent = int(value.removesuffix("%"))
    return -(-total * percent // 100) if round_up else total * percent // 100
