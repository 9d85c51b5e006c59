"""Pod templates: the pods and revisions made from them, their hash, and owner references."""

from __future__ import annotations

import hashlib

import msgspec

from kubesched.api.kinds import Object, Resource

POD_TEMPLATE_HASH = "pod-template-hash"
REVISION_HASH = "controller-revision-hash"
NAME_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_LENGTH = 10
_LONGEST_PREFIX = 253 - 5
_encode = msgspec.json.Encoder(order="deterministic").encode


def owner_reference(resource: Resource, owner: Object, *, controller: bool = True) -> Object:
    metadata = owner["metadata"]
    reference = {"apiVersion": resource.api_version, "kind": resource.kind}
    reference |= {"name": metadata["name"], "uid": metadata.get("uid", "")}
    return {**reference, "controller": True, "blockOwnerDeletion": True} if controller else reference


def pod_from(template: Object, *, prefix: str = "", name: str = "") -> Object:
    """A pod as a template describes it, to be named by the server or by the caller."""
    given = template.get("metadata") or {}
    metadata = {key: given[key] for key in ("labels", "annotations", "finalizers") if given.get(key)}
    if name:
        metadata["name"] = name
    else:
        metadata["generateName"] = f"{prefix[: _LONGEST_PREFIX - 1]}-"
    return {"metadata": metadata, "spec": dict(template.get("spec") or {})}


def hash_of(value: object, collisions: int = 0) -> str:
    """A short name for a value, the same for equal values; another one after a collision."""
    digest = hashlib.sha256(_encode([value, collisions] if collisions else value)).digest()
    return "".join(NAME_ALPHABET[byte % len(NAME_ALPHABET)] for byte in digest[:_LENGTH])


def is_same_template(one: Object, other: Object) -> bool:
    """Whether two templates differ at most in the hash that a Deployment adds."""
    return _without_hash(one) == _without_hash(other)


def _without_hash(template: Object) -> Object:
    metadata = template.get("metadata") or {}
    labels = {key: value for key, value in (metadata.get("labels") or {}).items() if key != POD_TEMPLATE_HASH}
    return {**template, "metadata": {**metadata, "labels": labels}}


def revision_data(owner: Object) -> Object:
    """What a ControllerRevision keeps of a StatefulSet or DaemonSet; its hash is the label of the pods."""
    return {"spec": {"template": {**owner["spec"]["template"], "$patch": "replace"}}}


def share_of(value: int | str | None, total: int, *, round_up: bool) -> int:
    """A number of pods, or a percentage of all of them."""
    if value is None:
        return 0
    if isinstance(value, int):
        return value
    percent = int(value.removesuffix("%"))
    return -(-total * percent // 100) if round_up else total * percent // 100
