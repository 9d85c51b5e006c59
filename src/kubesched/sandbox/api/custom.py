"""Resources that CustomResourceDefinitions define."""

from __future__ import annotations

from kubesched.api.kinds import Object, Resource


def resources_of(definition: Object) -> tuple[Resource, ...]:
    """One resource for every version that is served."""
    spec = definition["spec"]
    names = _accepted_names(spec)
    return tuple(
        Resource(
            group=spec["group"],
            version=version["name"],
            plural=names["plural"],
            kind=names["kind"],
            namespaced=spec.get("scope", "Namespaced") == "Namespaced",
            short_names=tuple(names.get("shortNames") or ()),
            categories=tuple(names.get("categories") or ()),
            subresources=tuple(sorted(version.get("subresources") or ())),
            singular=names["singular"],
        )
        for version in spec["versions"]
        if version.get("served", True)
    )


def storage_version(definition: Object) -> str:
    """The apiVersion under which objects are stored."""
    spec = definition["spec"]
    name = next((version["name"] for version in spec["versions"] if version.get("storage")), None)
    return f"{spec['group']}/{name or spec['versions'][0]['name']}"


def version_of(definition: Object, version: str) -> Object:
    """What a definition says of one of its versions."""
    found: Object = next(entry for entry in definition["spec"]["versions"] if entry["name"] == version)
    return found


def established(definition: Object, now: str) -> Object:
    """The definition with its names filled in, and the status of one that is served."""
    spec = definition["spec"]
    names = _accepted_names(spec)
    stored = [version["name"] for version in spec["versions"] if version.get("storage")]
    known = definition.get("status") or {}
    before = known.get("storedVersions") or []
    status = {
        "conditions": known.get("conditions")
        or [
            _condition("NamesAccepted", "NoConflicts", "no conflicts found", now),
            _condition("Established", "InitialNamesAccepted", "the initial names have been accepted", now),
        ],
        "acceptedNames": names,
        "storedVersions": [*before, *(name for name in stored if name not in before)],
    }
    spec = {**spec, "names": names, "scope": spec.get("scope", "Namespaced")}
    spec.setdefault("conversion", {"strategy": "None"})
    return {**definition, "spec": spec, "status": status}


def _accepted_names(spec: Object) -> Object:
    names = dict(spec["names"])
    names.setdefault("singular", names["kind"].lower())
    names.setdefault("listKind", f"{names['kind']}List")
    return names


def _condition(kind: str, reason: str, message: str, now: str) -> Object:
    return {"type": kind, "status": "True", "lastTransitionTime": now, "reason": reason, "message": message}
