"""What a client knew when it asked: the uid and the resourceVersion that an object must still have."""

from __future__ import annotations

from typing import Any

from kubesched.api.api_error import STALE, bad_request, conflict
from kubesched.api.kinds import Object, Resource


def check_storage(resource: Resource, obj: Object, wanted: Object) -> None:
    """Hold an object against a uid and a resourceVersion, in the words of a write that storage refused."""
    metadata = obj["metadata"]
    for field, label in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
        value = wanted.get(field)
        if value and value != metadata[field]:
            key = "/".join(part for part in (resource.plural, metadata.get("namespace"), metadata["name"]) if part)
            failed = f"Precondition failed: {label} in precondition: {value}, {label} in object meta: {metadata[field]}"
            why = f"StorageError: invalid object, Code: 4, Key: /registry/{key}, ResourceVersion: 0"
            raise conflict(resource, metadata["name"], f"{why}, AdditionalErrorMsg: {failed}")


def check_delete(resource: Resource, obj: Object, uid: str | None, resource_version: str | None) -> None:
    """Hold an object against the preconditions of a deletion."""
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
    """Hold an update against the object it is meant for: the same name and place, and the state it was made from."""
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
