"""The documents at /api, /apis, /apis/GROUP and /apis/GROUP/VERSION, as every client has read them since 2015."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kubesched.api.api_error import no_such_resource
from kubesched.api.kinds import Object, Resource
from kubesched.sandbox.discovery.groups import group_names, group_versions, resources_of
from kubesched.sandbox.discovery.subresources import Subresource, subresources


def api_versions() -> Object:
    """The versions of the core group."""
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}


def api_group_list(resources: Sequence[Resource]) -> Object:
    """Every named group with its versions."""
    groups = [_group(name, resources) for name in group_names(resources)]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def api_group(group: str, resources: Sequence[Resource]) -> Object:
    """One named group; a 404 if nothing of it is served."""
    if not group or not group_versions(group, resources):
        raise no_such_resource()
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(group, resources)}


def api_resource_list(group: str, version: str, resources: Sequence[Resource]) -> Object:
    """The resources of one version of a group with their subresources; a 404 if there are none."""
    chosen = resources_of(group, version, resources)
    if not chosen:
        raise no_such_resource()
    entries: list[Object] = []
    for resource in chosen:
        entries.append(_resource(resource))
        entries.extend(_subresource(resource, subresource) for subresource in subresources(resource))
    head = {"kind": "APIResourceList", "groupVersion": chosen[0].api_version}
    # The core group is older than the apiVersion of this document and leaves it out.
    return {**head, **({"apiVersion": "v1"} if group else {}), "resources": entries}


def _group(group: str, resources: Sequence[Resource]) -> Object:
    versions = [
        {"groupVersion": f"{group}/{version}", "version": version} for version in group_versions(group, resources)
    ]
    return {"name": group, "versions": versions, "preferredVersion": versions[0]}


def _resource(resource: Resource) -> Object:
    entry: dict[str, Any] = {
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    return entry


def _subresource(resource: Resource, subresource: Subresource) -> Object:
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
