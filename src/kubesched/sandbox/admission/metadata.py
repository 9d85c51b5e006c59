"""What holds for the metadata of every kind."""

from __future__ import annotations

from collections.abc import Callable

from kubesched.api.kinds import Object, Resource
from kubesched.sandbox.admission import names
from kubesched.sandbox.admission.faults import Faults
from kubesched.sandbox.admission.reading import integer, mapping, mistyped, records, string_map, text, texts

_ANNOTATIONS_LIMIT = 256 * 1024
_SERVERS = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")
_IMMUTABLE = ("name", "namespace", *_SERVERS)
NameRule = Callable[[str], names.Words]


def metadata_of(obj: Object) -> Object:
    return mapping(obj, "metadata", "")


def name_of(obj: Object) -> str:
    return text(metadata_of(obj), "name", "metadata")


def labels_of(obj: Object) -> dict[str, str]:
    return string_map(metadata_of(obj), "labels", "metadata")


def check_metadata(resource: Resource, obj: Object, name_rule: NameRule, faults: Faults) -> None:
    metadata = metadata_of(obj)
    if prefix := text(metadata, "generateName", "metadata"):
        # What is generated ends in letters, so a dash at the end of the prefix does no harm.
        whole = f"{prefix[:-1]}a" if prefix.endswith("-") else prefix
        faults.invalid_each("metadata.generateName", prefix, name_rule(whole))
    name = text(metadata, "name", "metadata")
    if not name:
        faults.required("metadata.name", "name or generateName is required")
    elif told := name_rule(name):
        faults.invalid_each("metadata.name", name, told)
    _check_namespace(resource, text(metadata, "namespace", "metadata"), faults)
    if metadata.get("labels"):
        check_labels(string_map(metadata, "labels", "metadata"), "metadata.labels", faults)
    if metadata.get("annotations"):
        check_annotations(string_map(metadata, "annotations", "metadata"), "metadata.annotations", faults)
    if metadata.get("ownerReferences"):
        _check_owners(records(metadata, "ownerReferences", "metadata"), faults)
    for finalizer in texts(metadata, "finalizers", "metadata"):
        faults.invalid_each("metadata.finalizers", finalizer, names.label_key(finalizer))
    integer(metadata, "generation", "metadata")


def _check_namespace(resource: Resource, namespace: str, faults: Faults) -> None:
    if not resource.namespaced:
        if namespace:
            faults.forbidden("metadata.namespace", "not allowed on this type")
    elif not namespace:
        faults.required("metadata.namespace")
    elif told := names.label(namespace):
        faults.invalid_each("metadata.namespace", namespace, told)


def check_labels(labels: dict[str, str], field: str, faults: Faults) -> None:
    for key, value in labels.items():
        if told := names.label_key(key):
            faults.invalid_each(field, key, told)
        if told := names.label_value(value):
            faults.invalid_each(field, value, told)


def check_annotations(annotations: dict[str, str], field: str, faults: Faults) -> None:
    for key in annotations:
        # Annotation keys may be in upper case, unlike the domains they begin with.
        faults.invalid_each(field, key, names.label_key(key.lower()))
    if sum(len(key) + len(value.encode()) for key, value in annotations.items()) > _ANNOTATIONS_LIMIT:
        faults.too_long(field, _ANNOTATIONS_LIMIT)


def _check_owners(owners: list[Object], faults: Faults) -> None:
    field = "metadata.ownerReferences"
    controllers: list[str] = []
    for owner in owners:
        for key in ("apiVersion", "kind", "name", "uid"):
            if not text(owner, key, field):
                why = "version must not be empty" if key == "apiVersion" else "must not be empty"
                faults.invalid(f"{field}.{key}", "", why)
        if owner.get("controller") is True:
            controllers.append(f"{owner.get('kind')}/{owner.get('name')}")
    if len(controllers) > 1:
        why = f"Only one reference can have Controller set to true. Found {controllers[0]} and {controllers[1]}"
        faults.invalid(field, owners, f'"true" in references for {why}')


def check_metadata_update(new: Object, old: Object, faults: Faults) -> None:
    """What the server gave stays; what was left out is filled in from the object as it is."""
    metadata, before = new["metadata"], metadata_of(old)
    for key in _SERVERS:
        if metadata.get(key) in (None, "") and key in before:
            metadata[key] = before[key]
    for key in _IMMUTABLE:
        faults.immutable(f"metadata.{key}", metadata.get(key), before.get(key))
    if "deletionTimestamp" in before:
        known = before.get("finalizers") or []
        if added := sorted(set(texts(metadata, "finalizers", "metadata")) - set(known)):
            told = ", ".join(f'"{each}"' for each in added)
            why = "no new finalizers can be added if the object is being deleted, found new finalizers"
            faults.forbidden("metadata.finalizers", f"{why} []string{{{told}}}")


def require_metadata(obj: Object) -> Object:
    """The object's metadata, made if there was none, to be changed by the caller."""
    metadata = obj.get("metadata")
    if metadata is None:
        metadata = obj["metadata"] = {}
    if type(metadata) is not dict:
        raise mistyped("metadata", metadata, "object")
    return metadata
