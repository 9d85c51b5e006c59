"""The way of a write through admission: defaults, what plugins add, checks, and what may change."""

from __future__ import annotations

from kubesched.api.kinds import PODS, Object, Resource
from kubesched.sandbox.admission import pods
from kubesched.sandbox.admission.faults import Faults
from kubesched.sandbox.admission.kinds import CUSTOM, RULES
from kubesched.sandbox.admission.metadata import check_metadata, check_metadata_update, metadata_of, require_metadata
from kubesched.sandbox.admission.reading import fresh_copy, mapping, mistyped
from kubesched.sandbox.admission.rules import Reader, Rules

_FRAME = frozenset(("apiVersion", "kind", "metadata", "status"))
"""Fields of every kind; the rest is what the user wishes for."""


def admit_create(resource: Resource, obj: Object, reader: Reader) -> Object:
    """The object as it is to be stored: a new one, with everything filled in. Raises ApiError for what is wrong."""
    rules = RULES.get(resource, CUSTOM)
    new = _copy_of(rules, obj)
    metadata = require_metadata(new)
    if "status" in resource.subresources and rules is not CUSTOM:
        _check_status_type(new)
    rules.defaults(new)
    rules.admit(new, reader)
    faults = Faults()
    if "get" in resource.verbs:  # what is only asked and never stored has no name
        check_metadata(resource, new, rules.name, faults)
    rules.check(new, faults)
    rules.check_create(new, faults)
    faults.raise_for(resource, new)
    if "status" in resource.subresources and rules.new_status is not None:
        new.pop("status", None)
        if status := rules.new_status(new):
            new["status"] = status
    if rules.counts_generations:
        metadata["generation"] = 1
    else:
        metadata.pop("generation", None)
    return new


def admit_update(resource: Resource, old: Object, new: Object, subresource: str, reader: Reader) -> Object:
    """The object as it is to be stored: what may be written in this way is taken from `new`, the rest from `old`."""
    rules = RULES.get(resource, CUSTOM)
    written = _copy_of(rules, new, status_only=subresource == "status")
    require_metadata(written)
    faults = Faults()
    check_metadata_update(written, old, faults)
    result = _taken(resource, rules, old, written, subresource, faults)
    check_metadata(resource, result, rules.name, faults)
    if subresource != "status":
        rules.check(result, faults)
        if subresource not in rules.takes:
            rules.check_update(result, old, faults)
    faults.raise_for(resource, result)
    _count_generation(rules, result, old)
    return result


def _copy_of(rules: Rules, obj: Object, *, status_only: bool = False) -> Object:
    """What the client sent, to be changed freely. Statuses are written all the time: copy no more than is taken."""
    if type(obj) is not dict:
        raise mistyped("object", obj, "object")
    if status_only:
        obj = {key: obj[key] for key in ("metadata", "status") if key in obj}
    return fresh_copy(obj, keep_nulls=rules is CUSTOM)


def _check_status_type(obj: Object) -> None:
    """Refuse a status that could not be read, even where it is dropped."""
    mapping(obj, "status", "")


def _taken(resource: Resource, rules: Rules, old: Object, written: Object, subresource: str, faults: Faults) -> Object:
    if subresource in rules.takes:
        rules.defaults(written)
        return rules.takes[subresource](written, old, faults)
    if subresource == "status":
        result = {**old, "metadata": written["metadata"]}
        if rules is CUSTOM:
            result["metadata"] = _kept_metadata(written, old)
        else:
            _check_status_type(written)
        _take(result, written, "status")
        return result
    rules.defaults(written)
    rules.carry_over(written, old)
    if "status" in resource.subresources:
        _take(written, old, "status")
    return written


def _kept_metadata(written: Object, old: Object) -> Object:
    """The status of a custom resource is written without its metadata, but for what tracks the write itself."""
    metadata = dict(metadata_of(old))
    for key in ("resourceVersion", "managedFields"):
        if key in written["metadata"]:
            metadata[key] = written["metadata"][key]
    return metadata


def _take(target: Object, source: Object, key: str) -> None:
    if key in source:
        target[key] = source[key]
    else:
        target.pop(key, None)


def _count_generation(rules: Rules, new: Object, old: Object) -> None:
    before = metadata_of(old).get("generation")
    metadata = new["metadata"] = dict(new["metadata"])
    if before is None:
        metadata.pop("generation", None)
    else:
        metadata["generation"] = before
    if rules.counts_generations and _wishes(new) != _wishes(old):
        metadata["generation"] = (before if type(before) is int else 0) + 1


def _wishes(obj: Object) -> Object:
    return {key: value for key, value in obj.items() if key not in _FRAME}


def is_graceful(resource: Resource, obj: Object) -> bool:
    """Whether deleting the object only asks it to end, and somebody else removes it later."""
    return deletion_grace(resource, obj, None) > 0


def deletion_grace(resource: Resource, obj: Object, requested: int | None) -> int:
    """Seconds until an object that is deleted now should be gone."""
    return pods.deletion_grace(obj, requested) if resource == PODS else 0
