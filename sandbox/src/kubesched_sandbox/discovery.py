"""Discovery: what an API server says it serves, in the legacy form and in the aggregated one.

Everything is made from Resources, so a CustomResourceDefinition shows up as soon as its Resource is in the list.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import msgspec

from kubesched.api.api_error import no_such_resource
from kubesched.api.kinds import Object, Resource

_VERSION = re.compile(r"v([1-9][0-9]*)(?:(alpha|beta)([1-9][0-9]*))?")
_STABILITY = {None: 0, "beta": 1, "alpha": 2}


def group_names(resources: Sequence[Resource]) -> list[str]:
    """The named groups in the order in which they first appear; the core group is not among them."""
    return [group for group in dict.fromkeys(resource.group for resource in resources) if group]


def group_versions(group: str, resources: Sequence[Resource]) -> list[str]:
    """The versions of a group, the preferred one first: v2, v1, v1beta1, v1alpha2, anything else by name."""
    return sorted({resource.version for resource in resources if resource.group == group}, key=_preference)


def resources_of(group: str, version: str, resources: Sequence[Resource]) -> list[Resource]:
    """What one version of a group serves, in order of the plural names."""
    chosen = [resource for resource in resources if resource.group == group and resource.version == version]
    return sorted(chosen, key=lambda resource: resource.plural)


def _preference(version: str) -> tuple[int, int, int, str]:
    match = _VERSION.fullmatch(version)
    if match is None:
        return len(_STABILITY), 0, 0, version
    major, stability, minor = match.groups()
    return _STABILITY[stability], -int(major), -int(minor or 0), version


class Subresource(msgspec.Struct, frozen=True):
    """One subresource. An empty group and version mean those of the resource it belongs to."""

    name: str
    kind: str
    group: str = ""
    version: str = ""
    verbs: tuple[str, ...] = ("get", "patch", "update")


_CREATE = ("create",)
_SCALE = Subresource("scale", "Scale", "autoscaling", "v1")
_SPECIAL = {
    "pods/binding": Subresource("binding", "Binding", verbs=_CREATE),
    "pods/eviction": Subresource("eviction", "Eviction", "policy", "v1", _CREATE),
    "serviceaccounts/token": Subresource("token", "TokenRequest", "authentication.k8s.io", "v1", _CREATE),
    "namespaces/finalize": Subresource("finalize", "Namespace", verbs=("update",)),
}
"""Subresources of core/v1 that do not simply read and write their own object."""


@lru_cache(maxsize=1024)
def subresources(resource: Resource) -> tuple[Subresource, ...]:
    """The subresources in order of their names."""
    return tuple(_subresource(resource, name) for name in sorted(resource.subresources))


def _subresource(resource: Resource, name: str) -> Subresource:
    if name == "scale":
        return _SCALE
    special = _SPECIAL.get(f"{resource.plural}/{name}") if not resource.group else None
    return special or Subresource(name, resource.kind)


def api_versions() -> Object:
    """The versions of the core group."""
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}


def api_group_list(resources: Sequence[Resource]) -> Object:
    """Every named group with its versions."""
    groups = [_legacy_group(name, resources) for name in group_names(resources)]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def api_group(group: str, resources: Sequence[Resource]) -> Object:
    """One named group; a 404 if nothing of it is served."""
    if not group or not group_versions(group, resources):
        raise no_such_resource()
    return {"kind": "APIGroup", "apiVersion": "v1", **_legacy_group(group, resources)}


def api_resource_list(group: str, version: str, resources: Sequence[Resource]) -> Object:
    """The resources of one version of a group with their subresources; a 404 if there are none."""
    chosen = resources_of(group, version, resources)
    if not chosen:
        raise no_such_resource()
    entries: list[Object] = []
    for resource in chosen:
        entries.append(_legacy_resource(resource))
        entries.extend(_legacy_subresource(resource, subresource) for subresource in subresources(resource))
    head = {"kind": "APIResourceList", "groupVersion": chosen[0].api_version}
    # The core group is older than the apiVersion of this document and leaves it out.
    return {**head, **({"apiVersion": "v1"} if group else {}), "resources": entries}


def _legacy_group(group: str, resources: Sequence[Resource]) -> Object:
    versions = [
        {"groupVersion": f"{group}/{version}", "version": version} for version in group_versions(group, resources)
    ]
    return {"name": group, "versions": versions, "preferredVersion": versions[0]}


def _legacy_resource(resource: Resource) -> Object:
    return {
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        **_verbs_and_names(resource),
    }


def _verbs_and_names(resource: Resource) -> Object:
    """What both forms say in the same words; what is empty is left out."""
    facts = {"verbs": resource.verbs, "shortNames": resource.short_names, "categories": resource.categories}
    return {key: list(words) for key, words in facts.items() if words}


def _legacy_subresource(resource: Resource, subresource: Subresource) -> Object:
    entry: dict[str, Any] = {
        "name": f"{resource.plural}/{subresource.name}",
        "singularName": "",
        "namespaced": resource.namespaced,
        "kind": subresource.kind,
        "verbs": list(subresource.verbs),
    }
    if subresource.version:
        entry["group"], entry["version"] = subresource.group, subresource.version
    return entry


def aggregated(core: bool, resources: Sequence[Resource], *, v2: bool = True) -> Object:
    """An APIGroupDiscoveryList of the core group or of all the others; v2beta1 has the same shape as v2."""
    groups = [""] if core else group_names(resources)
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": f"apidiscovery.k8s.io/{'v2' if v2 else 'v2beta1'}",
        "metadata": {},
        "items": [_group(group, resources) for group in groups],
    }


def _group(group: str, resources: Sequence[Resource]) -> Object:
    versions = [
        {
            "version": version,
            "resources": [_resource(resource) for resource in resources_of(group, version, resources)],
            "freshness": "Current",
        }
        for version in group_versions(group, resources)
    ]
    # Kubernetes gives no name to the core group here, and an empty one means the same to a client.
    return {"metadata": {"name": group} if group else {}, "versions": versions}


def _resource(resource: Resource) -> Object:
    entry: dict[str, Any] = {
        "resource": resource.plural,
        "responseKind": _kind(resource, resource.group, resource.version, resource.kind),
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        **_verbs_and_names(resource),
    }
    below = [
        {
            "subresource": subresource.name,
            "responseKind": _kind(resource, subresource.group, subresource.version, subresource.kind),
            "verbs": list(subresource.verbs),
        }
        for subresource in subresources(resource)
    ]
    if below:
        entry["subresources"] = below
    return entry


def _kind(resource: Resource, group: str, version: str, kind: str) -> Object:
    """A kind spelled out: clients other than client-go need not know that empty means "as the resource"."""
    if not version:
        group, version = resource.group, resource.version
    return {"group": group, "version": version, "kind": kind}
