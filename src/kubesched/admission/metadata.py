"""What holds for the metadata of every kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kubesched.admission import names
from kubesched.admission.mistakes import Mistakes
from kubesched.admission.reading import mapping, sequence, text
from kubesched.api.kinds import Object, Resource

_ANNOTATIONS_LIMIT = 256 * 1024
_SERVERS = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")
_IMMUTABLE = ("name", "namespace", *_SERVERS)
NameRule = Callable[[str], names.Words]


def metadata_of(obj: Object) -> Object:
    return mapping(obj, "metadata")


def name_of(obj: Object) -> str:
    return text(metadata_of(obj), "name")


def labels_of(obj: Object) -> dict[str, str]:
    return mapping(metadata_of(obj), "labels")


def check_metadata(resource: Resource, obj: Object, name_rule: NameRule, mistakes: Mistakes) -> None:
    metadata = metadata_of(obj)
    if prefix := text(metadata, "generateName"):
        # What is generated ends in letters, so a dash at the end of the prefix does no harm.
        whole = f"{prefix[:-1]}a" if prefix.endswith("-") else prefix
        mistakes.invalid_each("metadata.generateName", prefix, name_rule(whole))
    name = text(metadata, "name")
    if not name:
        mistakes.required("metadata.name", "name or generateName is required")
    elif words := name_rule(name):
        mistakes.invalid_each("metadata.name", name, words)
    _check_namespace(resource, text(metadata, "namespace"), mistakes)
    if metadata.get("labels"):
        check_labels(mapping(metadata, "labels"), "metadata.labels", mistakes)
    if metadata.get("annotations"):
        check_annotations(mapping(metadata, "annotations"), "metadata.annotations", mistakes)
    if metadata.get("ownerReferences"):
        _check_owners(sequence(metadata, "ownerReferences"), mistakes)
    for finalizer in sequence(metadata, "finalizers"):
        mistakes.invalid_each("metadata.finalizers", finalizer, names.label_key(finalizer))


def _check_namespace(resource: Resource, namespace: str, mistakes: Mistakes) -> None:
    if not resource.namespaced:
        if namespace:
            mistakes.forbidden("metadata.namespace", "not allowed on this type")
    elif not namespace:
        mistakes.required("metadata.namespace")
    elif words := names.label(namespace):
        mistakes.invalid_each("metadata.namespace", namespace, words)


def check_labels(labels: Mapping[str, str | None], field: str, mistakes: Mistakes) -> None:
    """A value that is null is empty, as Go reads it."""
    for key, value in labels.items():
        if words := names.label_key(key):
            mistakes.invalid_each(field, key, words)
        if words := names.label_value(value or ""):
            mistakes.invalid_each(field, value, words)


def check_annotations(annotations: Mapping[str, str | None], field: str, mistakes: Mistakes) -> None:
    for key in annotations:
        # Annotation keys may be in upper case, unlike the domains they begin with.
        mistakes.invalid_each(field, key, names.label_key(key.lower()))
    if sum(len(key) + len((value or "").encode()) for key, value in annotations.items()) > _ANNOTATIONS_LIMIT:
        mistakes.too_long(field, _ANNOTATIONS_LIMIT)


def _check_owners(owners: list[Object], mistakes: Mistakes) -> None:
    field = "metadata.ownerReferences"
    controllers: list[str] = []
    for owner in owners:
        for key in ("apiVersion", "kind", "name", "uid"):
            if not text(owner, key):
                why = "version must not be empty" if key == "apiVersion" else "must not be empty"
                mistakes.invalid(f"{field}.{key}", "", why)
        if owner.get("controller") is True:
            controllers.append(f"{owner.get('kind')}/{owner.get('name')}")
    if len(controllers) > 1:
        why = f"Only one reference can have Controller set to true. Found {controllers[0]} and {controllers[1]}"
        mistakes.invalid(field, owners, f'"true" in references for {why}')


def check_metadata_update(new: Object, old: Object, mistakes: Mistakes) -> None:
    """What the server gave stays; what was left out is filled in from the object as it is."""
    metadata, before = new["metadata"], metadata_of(old)
    for key in _SERVERS:
        if metadata.get(key) in (None, "") and key in before:
            metadata[key] = before[key]
    for key in _IMMUTABLE:
        mistakes.immutable(f"metadata.{key}", metadata.get(key), before.get(key))
    if "deletionTimestamp" in before:
        known = before.get("finalizers") or []
        if added := sorted(set(sequence(metadata, "finalizers")) - set(known)):
            words = ", ".join(f'"{each}"' for each in added)
            why = "no new finalizers can be added if the object is being deleted, found new finalizers"
            mistakes.forbidden("metadata.finalizers", f"{why} []string{{{words}}}")
