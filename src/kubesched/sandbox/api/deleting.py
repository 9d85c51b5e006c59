"""What deleting an object means: its options, grace, finalizers, and what goes with it."""

from __future__ import annotations

from typing import Any

import msgspec

from kubesched.api.api_error import bad_request
from kubesched.api.kinds import NAMESPACES, PODS, Object, Resource
from kubesched.sandbox.api.stamps import Stamps, seconds_of, timestamp

FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"


def marked(resource: Resource, obj: Object, *, grace: int, propagation: str | None, stamps: Stamps) -> Object | None:
    """The object as it waits for its deletion to be finished; None when nothing holds it."""
    finalizers = _finalizers(obj, propagation)
    metadata = obj["metadata"]
    held = bool(finalizers) or bool(resource is NAMESPACES and obj.get("spec", {}).get("finalizers"))
    if grace == 0 and not held:
        return None
    changed = {**metadata, "finalizers": finalizers} if finalizers else _without(metadata, "finalizers")
    if "deletionTimestamp" not in metadata:
        changed["deletionTimestamp"] = timestamp(stamps.time() + grace)
        changed["deletionGracePeriodSeconds"] = grace
        if metadata.get("generation"):
            changed["generation"] = metadata["generation"] + 1
    elif grace < metadata.get("deletionGracePeriodSeconds", 0):
        _shorten(changed, grace, stamps)
    result = {**obj, "metadata": changed}
    if resource is NAMESPACES:
        result["status"] = {**(obj.get("status") or {}), "phase": "Terminating"}
    return result


def grace_left(obj: Object, grace: int, requested: int | None) -> int:
    """The grace of an object that may already be going: a second request can only shorten it."""
    metadata = obj["metadata"]
    if "deletionTimestamp" not in metadata:
        return grace
    given: int = metadata.get("deletionGracePeriodSeconds") or 0
    return given if requested is None else min(given, max(grace, 0))


def is_finished(resource: Resource, obj: Object) -> bool:
    """Whether an object that was marked has nothing left to wait for."""
    metadata = obj["metadata"]
    if "deletionTimestamp" not in metadata or metadata.get("finalizers"):
        return False
    if resource is NAMESPACES and obj.get("spec", {}).get("finalizers"):
        return False
    return not metadata.get("deletionGracePeriodSeconds")


def _finalizers(obj: Object, propagation: str | None) -> list[str]:
    finalizers: list[str] = list(obj["metadata"].get("finalizers") or ())
    if propagation is None:
        return finalizers
    kept = [finalizer for finalizer in finalizers if finalizer not in (FOREGROUND, ORPHAN)]
    match propagation:
        case "Foreground":
            return [*kept, FOREGROUND]
        case "Orphan":
            return [*kept, ORPHAN]
        case "Background":
            return kept
        case _:
            raise bad_request(f'Invalid value: "{propagation}": supported values: "Foreground", "Background", "Orphan"')


def _shorten(metadata: Object, grace: int, stamps: Stamps) -> None:
    began = seconds_of(metadata["deletionTimestamp"]) - metadata["deletionGracePeriodSeconds"]
    ends = began + grace
    if ends < stamps.time():
        ends, grace = stamps.time(), min(grace, 1)
    metadata["deletionTimestamp"], metadata["deletionGracePeriodSeconds"] = timestamp(ends), grace


def _without(metadata: Object, key: str) -> Object:
    return {name: value for name, value in metadata.items() if name != key}


RETURNED_WHEN_DELETED = frozenset((PODS.plural, "services", "persistentvolumes", "persistentvolumeclaims"))
"""Kinds whose deletion answers with the object; the others answer with a Status."""


class DeleteOptions(msgspec.Struct, frozen=True):
    """The options of a deletion."""

    grace: int | None = None
    propagation: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    dry_run: bool = False

    @classmethod
    def read(cls, body: Any) -> DeleteOptions:
        """From a DeleteOptions object; nothing at all is the default."""
        if body is None:
            return cls()
        if not isinstance(body, dict):
            raise bad_request("the DeleteOptions provided are unrecognized (must be of type object)")
        preconditions = _typed(body, "preconditions", dict) or {}
        propagation = _typed(body, "propagationPolicy", str)
        if propagation is None and (orphan := _typed(body, "orphanDependents", bool)) is not None:
            propagation = "Orphan" if orphan else "Background"
        return cls(
            grace=_typed(body, "gracePeriodSeconds", int),
            propagation=propagation,
            uid=_typed(preconditions, "uid", str),
            resource_version=_typed(preconditions, "resourceVersion", str),
            dry_run=is_dry_run(_typed(body, "dryRun", list) or []),
        )


def is_dry_run(values: list[Any]) -> bool:
    """Whether nothing is to be stored; only `All` is a way to say so."""
    wrong = [value for value in values if value != "All"]
    if wrong:
        raise bad_request(f'dryRun: Unsupported value: {wrong[0]!r}: supported values: "All"')
    return bool(values)


def _typed(body: dict[str, Any], key: str, kind: type) -> Any:
    value = body.get(key)
    if value is not None and (not isinstance(value, kind) or (kind is int and isinstance(value, bool))):
        raise bad_request(f"the DeleteOptions provided are unrecognized: {key} must be of type {kind.__name__}")
    return value
