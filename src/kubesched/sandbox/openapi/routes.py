"""The paths of a resource and what can be done at each, for both versions of OpenAPI."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from kubesched.admission.schemas.table import definition_of
from kubesched.api.kinds import Object, Resource
from kubesched.sandbox.discovery import subresources
from kubesched.sandbox.openapi.types import PATCH, kind_name, list_name, name_of_kind

PATCH_TYPES = ("application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml")
STRATEGIC = "application/strategic-merge-patch+json"

_WRITES = ("dryRun", "fieldManager", "fieldValidation", "pretty")
_PATCHES = (*_WRITES, "force")
_LISTS = (
    "allowWatchBookmarks",
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "pretty",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "timeoutSeconds",
    "watch",
)
_DELETES = ("dryRun", "gracePeriodSeconds", "orphanDependents", "propagationPolicy", "pretty")
QUERY_TYPES = {
    "allowWatchBookmarks": "boolean",
    "force": "boolean",
    "gracePeriodSeconds": "integer",
    "limit": "integer",
    "orphanDependents": "boolean",
    "sendInitialEvents": "boolean",
    "timeoutSeconds": "integer",
    "watch": "boolean",
}
"""Types of the query parameters that are no strings."""

_STATUS = "io.k8s.apimachinery.pkg.apis.meta.v1.Status"


class ApiOperation(msgspec.Struct, frozen=True):
    """One method at one path."""

    path: str
    method: str
    action: str
    """As x-kubernetes-action says it."""
    operation_id: str
    tag: str
    kind: tuple[str, str, str]
    """Group, version and kind that is sent or answered."""
    query: tuple[str, ...]
    body: str
    """The type of what is sent; empty if nothing is."""
    answer: str
    """The type of what is answered."""
    consumes: tuple[str, ...] = ("application/json",)

    @property
    def path_parameters(self) -> list[str]:
        return [name for name in ("namespace", "name") if f"{{{name}}}" in self.path]

    def group_version_kind(self) -> Object:
        return dict(zip(("group", "version", "kind"), self.kind))


def operations(resource: Resource) -> Iterator[ApiOperation]:
    """All that can be done with a resource and its subresources."""
    yield from _on_many(resource)
    here, own_kind = f"{_paths(resource)[1]}/{{name}}", (resource.group, resource.version, resource.kind)
    for verb in ("get", "update", "patch", "delete"):
        if verb in resource.verbs:
            yield _on_one(resource, here, verb, own_kind)
    for below in subresources(resource):
        group, version = (below.group, below.version) if below.version else (resource.group, resource.version)
        for verb in below.verbs:
            same = _on_one(resource, f"{here}/{below.name}", verb, (group, version, below.kind))
            yield replace(same, operation_id=same.operation_id + below.name.capitalize())


def _on_many(resource: Resource) -> Iterator[ApiOperation]:
    everywhere, here = _paths(resource)
    if "list" in resource.verbs:
        listing = _operation(resource, here, "get", "list", query=_LISTS, answer=list_name(resource))
        yield replace(listing, action="list")
        if everywhere != here:
            name = f"list{_camel(resource)}{resource.kind}ForAllNamespaces"
            yield replace(listing, action="list", path=everywhere, operation_id=name)
    if "create" in resource.verbs:
        yield _operation(resource, here, "post", "create", query=_WRITES, body=kind_name(resource))
    if "deletecollection" in resource.verbs:
        query = (*_LISTS, "gracePeriodSeconds", "propagationPolicy")
        deleting = _operation(resource, here, "delete", "deleteCollection", query=query, answer=_STATUS)
        yield replace(deleting, action="deletecollection")


def _on_one(resource: Resource, path: str, verb: str, kind: tuple[str, str, str]) -> ApiOperation:
    """What one verb does to an object or a subresource, which may be of another kind than its resource."""
    name = name_of_kind(*kind)
    match verb:
        case "get":
            made = _operation(resource, path, "get", "read", answer=name)
        case "update":
            made = _operation(resource, path, "put", "replace", query=_WRITES, body=name, answer=name)
        case "create":
            made = _operation(resource, path, "post", "create", query=_WRITES, body=name, answer=name)
        case "patch":
            consumes = (*PATCH_TYPES, STRATEGIC) if definition_of(resource) is not None else PATCH_TYPES
            made = _operation(resource, path, "patch", "patch", query=_PATCHES, body=PATCH, answer=name)
            made = replace(made, consumes=consumes)
        case _:
            made = _operation(resource, path, "delete", "delete", query=_DELETES, answer=_STATUS)
    return replace(made, kind=kind)


def _operation(
    resource: Resource,
    path: str,
    method: str,
    verb: str,
    *,
    query: tuple[str, ...] = ("pretty",),
    body: str = "",
    answer: str = "",
) -> ApiOperation:
    return ApiOperation(
        path,
        method,
        method,
        operation_id=f"{verb}{_camel(resource)}{'Namespaced' if resource.namespaced else ''}{resource.kind}",
        tag=_tag(resource),
        kind=(resource.group, resource.version, resource.kind),
        query=query,
        body=body,
        answer=answer or kind_name(resource),
    )


def _paths(resource: Resource) -> tuple[str, str]:
    """Where all objects are found, and where those of one namespace are."""
    if not resource.namespaced:
        return resource.path, resource.path
    prefix = resource.path.removesuffix(resource.plural)
    return resource.path, f"{prefix}namespaces/{{namespace}}/{resource.plural}"


def _tag(resource: Resource) -> str:
    return f"{_short_group(resource).replace('.', '_')}_{resource.version}"


def _camel(resource: Resource) -> str:
    return "".join(word.capitalize() for word in (*_short_group(resource).split("."), resource.version))


def _short_group(resource: Resource) -> str:
    return resource.group.removesuffix(".k8s.io") or "core"
