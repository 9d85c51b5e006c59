"""Reads through the API, the preconditions of writes, and what deleting an object means."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal

import msgspec

from kubesched.api.api_error import STALE, bad_request, conflict, not_found
from kubesched.api.kinds import CUSTOM_RESOURCE_DEFINITIONS, NAMESPACES, Object, Resource
from kubesched.api.release import V1_36, Release
from kubesched_sandbox.api.catalog import Catalog, table_of
from kubesched_sandbox.api.selecting import ALL, ListSelector, selection
from kubesched_sandbox.api.stamps import Stamps, seconds_of, timestamp
from kubesched_sandbox.store import Store, StoredChange, StoredObject


class ApiEvent(msgspec.Struct, frozen=True, gc=False):
    """What happened to one object. A deletion carries the last state, at the revision of the deletion."""

    type: Literal["ADDED", "MODIFIED", "DELETED"]
    resource: Resource
    object: Object
    old: Object | None
    revision: int


class Reading:
    """Reads stored objects, converted to the version of the resource that is asked for."""

    def __init__(self, store: Store, stamps: Stamps | None = None, release: Release = V1_36) -> None:
        self.store = store
        self.stamps = stamps or Stamps()
        self.release = release
        self.catalog = Catalog(release)
        for record in store.table(table_of(CUSTOM_RESOURCE_DEFINITIONS)).ordered():
            self.catalog.define(record.object)

    def find(self, resource: Resource, namespace: str, name: str) -> Object | None:
        record = self.record(resource, namespace, name)
        return None if record is None else self._shown(resource, record.object)

    def get(self, resource: Resource, namespace: str, name: str) -> Object:
        obj = self.find(resource, namespace, name)
        if obj is None:
            raise not_found(resource, name)
        return obj

    def select(
        self, resource: Resource, namespace: str | None = None, *, labels: str | None = None, fields: str | None = None
    ) -> list[Object]:
        """The objects of one namespace, or of all, in the order of their names."""
        wanted = selection(resource, labels, fields)
        return [self._shown(resource, record.object) for record in self.records(resource, namespace, wanted)]

    def record(self, resource: Resource, namespace: str, name: str) -> StoredObject | None:
        return self.store.table(table_of(resource)).get(namespace, name)

    def records(
        self, resource: Resource, namespace: str | None = None, wanted: ListSelector = ALL
    ) -> list[StoredObject]:
        """What `select` finds, as it is stored."""
        table = self.store.table(table_of(resource))
        if wanted.is_everything:
            return list(table.ordered(namespace))
        space = wanted.namespace if namespace is None else namespace
        if wanted.name is not None and (space is not None or not resource.namespaced):
            record = table.get(space or "", wanted.name)
            return [record] if record is not None and wanted.matches(record.object) else []
        return [record for record in table.ordered(space) if wanted.matches(record.object)]

    def subscribe(
        self, resources: Iterable[Resource], on_event: Callable[[ApiEvent], None], *, replay: bool = True
    ) -> Callable[[], None]:
        """Call the listener with every change of these resources, and first with what is there. Returns how to stop."""
        by_table: dict[str, list[Resource]] = {}
        for resource in resources:
            by_table.setdefault(table_of(resource), []).append(resource)
        since = self.store.revision

        def notify(change: StoredChange) -> None:
            if change.revision > since and change.table in by_table:
                for resource in by_table[change.table]:
                    on_event(self.event(resource, change))

        stop = self.store.listen(notify)
        if replay:
            for resource in [resource for listed in by_table.values() for resource in listed]:
                for record in self.records(resource):
                    on_event(ApiEvent("ADDED", resource, self._shown(resource, record.object), None, record.revision))
        return stop

    def event(self, resource: Resource, change: StoredChange) -> ApiEvent:
        """A change of the store as one of a resource."""
        old = None if change.old is None else self._shown(resource, change.old.object)
        return ApiEvent(change.type, resource, self._shown(resource, change.record.object), old, change.revision)

    def _shown(self, resource: Resource, obj: Object) -> Object:
        view = self.catalog.view(resource)
        return obj if view is None else view.shown(obj)


def check_storage(resource: Resource, obj: Object, wanted: Object) -> None:
    """Check an object's uid and resourceVersion, in the words of a write that storage refused."""
    metadata = obj["metadata"]
    for field, label in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
        value = wanted.get(field)
        if value and value != metadata[field]:
            key = "/".join(part for part in (resource.plural, metadata.get("namespace"), metadata["name"]) if part)
            failed = f"Precondition failed: {label} in precondition: {value}, {label} in object meta: {metadata[field]}"
            why = f"StorageError: invalid object, Code: 4, Key: /registry/{key}, ResourceVersion: 0"
            raise conflict(resource, metadata["name"], f"{why}, AdditionalErrorMsg: {failed}")


def check_delete(resource: Resource, obj: Object, uid: str | None, resource_version: str | None) -> None:
    """Check the preconditions of a deletion."""
    metadata = obj["metadata"]
    if uid is not None and uid != metadata["uid"]:
        why = f"the UID in the precondition ({uid}) does not match the UID in record ({metadata['uid']})"
        raise conflict(resource, metadata["name"], f"{why}. The object might have been deleted and then recreated")
    if resource_version is not None and resource_version != metadata["resourceVersion"]:
        why = (
            f"the ResourceVersion in the precondition ({resource_version}) does not match the ResourceVersion in record"
        )
        raise conflict(
            resource, metadata["name"], f"{why} ({metadata['resourceVersion']}). The object might have been modified"
        )


def check_update(resource: Resource, old: Object, new: Object) -> None:
    """Check an update against the stored object: same name and namespace, and the resourceVersion it was made from."""
    before, given = old["metadata"], new["metadata"]
    name = before["name"]
    if given.setdefault("name", name) != name:
        raise bad_request(f"the name of the object ({given['name']}) does not match the name on the URL ({name})")
    if (given.get("namespace") or before.get("namespace")) != before.get("namespace"):
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    check_storage(resource, old, {"uid": given.get("uid")})
    version = given.get("resourceVersion")
    if version and version != before["resourceVersion"]:
        if not isinstance(version, str) or not version.isascii() or not version.isdigit():
            raise bad_request(f"resourceVersion: Invalid value: {version!r}: must be a number")
        raise conflict(resource, name, STALE)


def metadata_of(obj: Any) -> Object:
    """The metadata of what a client sent, as a dict of its own."""
    if not isinstance(obj, dict):
        raise bad_request("the object provided is unrecognized (must be of type object)")
    metadata = obj.get("metadata")
    if metadata is None:
        return {}
    if not isinstance(metadata, dict):
        raise bad_request("the object provided is unrecognized: metadata must be an object")
    return dict(metadata)


# -- deleting: its options, grace, finalizers, and what goes with it --------------------------------------------------


FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"


def marked_for_deletion(
    resource: Resource, obj: Object, *, grace: int, propagation: str | None, stamps: Stamps
) -> Object | None:
    """The object with its deletionTimestamp; None if neither grace nor finalizers delay its removal."""
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
    """The grace period of a deletion; a second request for the same object can only shorten it."""
    metadata = obj["metadata"]
    if "deletionTimestamp" not in metadata:
        return grace
    given: int = metadata.get("deletionGracePeriodSeconds") or 0
    return given if requested is None else min(given, max(grace, 0))


def is_deletion_finished(resource: Resource, obj: Object) -> bool:
    """Whether an object with a deletionTimestamp can be removed: its grace is over and it has no finalizers."""
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


_RETURNED_GROUPS = frozenset(("resource.k8s.io", "storage.k8s.io"))
_RETURNED_CORE = frozenset(
    ("namespaces", "persistentvolumeclaims", "persistentvolumes", "pods", "podtemplates", "resourcequotas",
     "serviceaccounts", "services")
)  # fmt: skip


def is_returned_when_deleted(resource: Resource) -> bool:
    """Whether a deletion answers with the object; for other resources it answers with a Status."""
    if resource.group in _RETURNED_GROUPS:
        return resource.plural != "csistoragecapacities"
    return not resource.group and resource.plural in _RETURNED_CORE


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
