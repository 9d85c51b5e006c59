"""The paths of a resource and what can be done at each, for both versions of OpenAPI."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from kubesched.admission.schemas.table import definition_of
from kubesched.api.kinds import Object, Resource
from kubesched.sandbox.discovery import Subresource, subresources
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


class Operation(msgspec.Struct, frozen=True):
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


def operations(resource: Resource) -> Iterator[Operation]:
    """All that can be done with a resource and its subresources."""
    patches = (*PATCH_TYPES, STRATEGIC) if definition_of(resource) is not None else PATCH_TYPES
    yield from _on_many(resource)
    yield from _on_one(resource, patches)
    for below in subresources(resource):
        yield from _below(resource, below, patches)


def _on_many(resource: Resource) -> Iterator[Operation]:
    everywhere, here = _paths(resource)
    listing = _operation(resource, here, "get", "list", "list", query=_LISTS, answer=list_name(resource))
    if "list" in resource.verbs:
        yield listing
        if everywhere != here:
            name = f"list{_camel(resource)}{resource.kind}ForAllNamespaces"
            yield replace(listing, path=everywhere, operation_id=name)
    if "create" in resource.verbs:
        yield _operation(resource, here, "post", "post", "create", query=_WRITES, body=kind_name(resource))
    if "deletecollection" in resource.verbs:
        query = (*_LISTS, "gracePeriodSeconds", "propagationPolicy")
        yield _operation(resource, here, "delete", "deletecollection", "deleteCollection", query=query, answer=_STATUS)


def _on_one(resource: Resource, patches: tuple[str, ...]) -> Iterator[Operation]:
    path = f"{_paths(resource)[1]}/{{name}}"
    if "get" in resource.verbs:
        yield _operation(resource, path, "get", "get", "read")
    if "update" in resource.verbs:
        yield _operation(resource, path, "put", "put", "replace", query=_WRITES, body=kind_name(resource))
    if "patch" in resource.verbs:
        patching = _operation(resource, path, "patch", "patch", "patch", query=_PATCHES, body=PATCH)
        yield replace(patching, consumes=patches)
    if "delete" in resource.verbs:
        yield _operation(resource, path, "delete", "delete", "delete", query=_DELETES, answer=_STATUS)


def _operation(
    resource: Resource,
    path: str,
    method: str,
    action: str,
    verb: str,
    *,
    query: tuple[str, ...] = ("pretty",),
    body: str = "",
    answer: str = "",
) -> Operation:
    return Operation(
        path,
        method,
        action,
        operation_id=f"{verb}{_camel(resource)}{'Namespaced' if resource.namespaced else ''}{resource.kind}",
        tag=_tag(resource),
        kind=(resource.group, resource.version, resource.kind),
        query=query,
        body=body,
        answer=answer or kind_name(resource),
    )


def _below(resource: Resource, below: Subresource, patches: tuple[str, ...]) -> Iterator[Operation]:
    group, version = (below.group, below.version) if below.version else (resource.group, resource.version)
    kind = name_of_kind(group, version, below.kind)
    path = f"{_paths(resource)[1]}/{{name}}/{below.name}"
    changes = {
        "get": ("get", "read", ("pretty",), ""),
        "update": ("put", "replace", _WRITES, kind),
        "patch": ("patch", "patch", _PATCHES, PATCH),
        "create": ("post", "create", _WRITES, kind),
    }
    for verb in below.verbs:
        method, word, query, body = changes[verb]
        same = _operation(resource, path, method, method, word, query=query, body=body, answer=kind)
        yield replace(
            same,
            operation_id=same.operation_id + below.name.capitalize(),
            kind=(group, version, below.kind),
            consumes=patches if verb == "patch" else same.consumes,
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
