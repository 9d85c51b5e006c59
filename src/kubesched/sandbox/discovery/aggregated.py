"""Aggregated discovery: all groups, versions and resources in one document at /api and one at /apis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kubesched.api.kinds import Object, Resource
from kubesched.sandbox.discovery.groups import group_names, group_versions, resources_of
from kubesched.sandbox.discovery.subresources import subresources


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
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
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
