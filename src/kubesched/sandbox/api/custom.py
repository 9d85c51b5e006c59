"""Resources that CustomResourceDefinitions define."""

from __future__ import annotations

import re
from typing import Any

from kubesched.sandbox.errors import Cause, invalid
from kubesched.sandbox.kinds import CUSTOM_RESOURCE_DEFINITIONS, Object, Resource

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


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
    check(definition)
    spec = definition["spec"]
    names = _accepted_names(spec)
    stored = [version["name"] for version in spec["versions"] if version.get("storage")]
    before = ((definition.get("status") or {}).get("storedVersions")) or []
    status = {
        "conditions": [
            _condition("NamesAccepted", "NoConflicts", "no conflicts found", now),
            _condition("Established", "InitialNamesAccepted", "the initial names have been accepted", now),
        ],
        "acceptedNames": names,
        "storedVersions": [*before, *(name for name in stored if name not in before)],
    }
    spec = {**spec, "names": names, "scope": spec.get("scope", "Namespaced")}
    spec.setdefault("conversion", {"strategy": "None"})
    return {**definition, "spec": spec, "status": status}


def check(definition: Object) -> None:
    """What must hold for the definition to be served; all else is left to its author."""
    name = definition["metadata"].get("name", "")
    spec = definition.get("spec")
    causes = _faults(name, spec if isinstance(spec, dict) else {})
    if causes:
        raise invalid(CUSTOM_RESOURCE_DEFINITIONS, name, causes)


def _faults(name: str, spec: Object) -> list[Cause]:
    causes = []
    group = spec.get("group")
    if not isinstance(group, str) or not group:
        causes.append(_required("spec.group"))
    if spec.get("scope", "Namespaced") not in ("Namespaced", "Cluster"):
        message = f'Unsupported value: "{spec["scope"]}": supported values: "Cluster", "Namespaced"'
        causes.append(Cause("spec.scope", message, "FieldValueNotSupported"))
    names = spec.get("names")
    names = names if isinstance(names, dict) else {}
    absent = [field for field in ("plural", "kind") if not isinstance(names.get(field), str) or not names[field]]
    causes += [_required(f"spec.names.{field}") for field in absent]
    for field in ("shortNames", "categories"):
        listed = names.get(field) or []
        if not isinstance(listed, list) or not all(isinstance(entry, str) for entry in listed):
            causes.append(Cause(f"spec.names.{field}", "Invalid value: must be a list of names"))
    causes += _version_faults(spec.get("versions"))
    expected = f"{names.get('plural')}.{group}"
    if not causes and name != expected:
        causes.append(Cause("metadata.name", f'Invalid value: "{name}": must be spec.names.plural+"."+spec.group'))
    return causes


def _version_faults(versions: Any) -> list[Cause]:
    if not isinstance(versions, list) or not versions:
        return [_required("spec.versions")]
    causes = []
    for index, version in enumerate(versions):
        name = version.get("name") if isinstance(version, dict) else None
        if not isinstance(name, str) or not _LABEL.fullmatch(name):
            causes.append(Cause(f"spec.versions[{index}].name", f"Invalid value: {name!r}: must be a DNS label"))
        elif not isinstance(version.get("subresources") or {}, dict):
            causes.append(Cause(f"spec.versions[{index}].subresources", "Invalid value: must be an object"))
    if not causes and sum(version.get("storage") is True for version in versions) != 1:
        causes.append(Cause("spec.versions", "Invalid value: must have exactly one version marked as storage version"))
    return causes


def _required(field: str) -> Cause:
    return Cause(field, "Required value", "FieldValueRequired")


def _accepted_names(spec: Object) -> Object:
    names = dict(spec["names"])
    names.setdefault("singular", names["kind"].lower())
    names.setdefault("listKind", f"{names['kind']}List")
    return names


def _condition(kind: str, reason: str, message: str, now: str) -> Object:
    return {"type": kind, "status": "True", "lastTransitionTime": now, "reason": reason, "message": message}
