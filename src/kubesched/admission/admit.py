"""The way of a write through admission: defaults, what plugins add, checks, and what may change."""

from __future__ import annotations

from kubesched.admission import pods
from kubesched.admission.kinds import CUSTOM, RULES
from kubesched.admission.metadata import check_metadata, check_metadata_update, metadata_of
from kubesched.admission.mistakes import Mistakes
from kubesched.admission.reading import filled, fresh_copy, value_at
from kubesched.admission.rules import Reader, Rules
from kubesched.admission.schemas import decoding_error, field_mistakes
from kubesched.api.api_error import ApiError
from kubesched.api.kinds import PODS, Object, Resource
from kubesched.api.schema import Mistake

_FRAME = frozenset(("apiVersion", "kind", "metadata", "status"))
"""Fields of every kind; the rest is what the user wishes for."""


def admit_create(resource: Resource, obj: Object, reader: Reader) -> Object:
    """The object as it is to be stored: a new one, with everything filled in. Raises ApiError for what is wrong."""
    rules = RULES.get(resource, CUSTOM)
    new = _typed_copy(resource, rules, obj)
    metadata = filled(new, "metadata")
    mistakes = Mistakes()
    _complete_and_check(resource, rules, new, reader, mistakes)
    mistakes.raise_for(resource, new)
    if "status" in resource.subresources and rules.new_status is not None:
        new.pop("status", None)
        if status := rules.new_status(new):
            new["status"] = status
    if rules.counts_generations:
        metadata["generation"] = 1
    else:
        metadata.pop("generation", None)
    return new


def examine(resource: Resource, obj: Object, reader: Reader) -> tuple[Object, list[Mistake]]:
    """A new object with everything filled in but its status, and all that is wrong with it.

    For callers that read manifests rather than requests. The types of the fields must be right already.
    """
    new, mistakes = fresh_copy(obj), Mistakes()
    filled(new, "metadata")
    _complete_and_check(resource, RULES.get(resource, CUSTOM), new, reader, mistakes)
    return new, mistakes.all()


def _complete_and_check(resource: Resource, rules: Rules, new: Object, reader: Reader, mistakes: Mistakes) -> None:
    rules.defaults(new)
    try:
        rules.admit(new, reader)
    except ApiError as error:
        mistakes.refusal = error
    if "get" in resource.verbs:  # what is only asked and never stored has no name
        check_metadata(resource, new, rules.name, mistakes)
    rules.check(new, mistakes)
    rules.check_create(new, mistakes)


def admit_update(resource: Resource, old: Object, new: Object, subresource: str, reader: Reader) -> Object:
    """The object as it is to be stored: what may be written in this way is taken from `new`, the rest from `old`."""
    rules = RULES.get(resource, CUSTOM)
    written = _typed_copy(resource, rules, new, status_only=subresource == "status")
    filled(written, "metadata")
    mistakes = Mistakes()
    check_metadata_update(written, old, mistakes)
    result = _taken(resource, rules, old, written, subresource, mistakes)
    check_metadata(resource, result, rules.name, mistakes)
    if subresource != "status":
        rules.check(result, mistakes)
        if subresource not in rules.takes:
            for field in rules.immutable:
                path = field.split(".")
                mistakes.immutable(field, value_at(result, *path), value_at(old, *path))
            rules.check_update(result, old, mistakes)
            try:
                rules.admit_update(result, old, reader)
            except ApiError as error:
                mistakes.refusal = error
    mistakes.raise_for(resource, result)
    _count_generation(rules, result, old)
    return result


def _typed_copy(resource: Resource, rules: Rules, obj: Object, *, status_only: bool = False) -> Object:
    """What the client sent, to be changed freely, once every field has the type that the table says.

    Statuses are written all the time: copy no more than is taken.
    """
    if status_only:
        obj = {key: obj[key] for key in ("metadata", "status") if key in obj}
    copy = fresh_copy(obj, keep_nulls=rules is CUSTOM)
    if error := decoding_error(resource, field_mistakes(resource, copy)):
        raise error
    return copy


def _taken(
    resource: Resource, rules: Rules, old: Object, written: Object, subresource: str, mistakes: Mistakes
) -> Object:
    if subresource in rules.takes:
        rules.defaults(written)
        return rules.takes[subresource](written, old, mistakes)
    if subresource == "status":
        result = {**old, "metadata": written["metadata"]}
        if rules is CUSTOM:
            result["metadata"] = _kept_metadata(written, old)
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
    """Whether deleting the object only asks it to end, and a kubelet or a controller removes it later."""
    return deletion_grace(resource, obj, None) > 0


def deletion_grace(resource: Resource, obj: Object, requested: int | None) -> int:
    """Seconds until an object that is deleted now should be gone."""
    return pods.deletion_grace(obj, requested) if resource == PODS else 0
