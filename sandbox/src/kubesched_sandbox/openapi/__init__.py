"""OpenAPI documents of what is served: as much as kubectl reads to validate, patch and explain.

kubectl wants v3 first, in JSON, one document per group and version. It asks for v2 only when v3 failed it, and then
insists on protobuf; the JSON that is served at /openapi/v2 is for other clients.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import msgspec
from msgspec.structs import replace

from kubesched.admission.schemas.table import definition_of, release
from kubesched.api.api_error import no_such_resource
from kubesched.api.kinds import Object, Resource
from kubesched_sandbox.discovery import subresources
from kubesched_sandbox.openapi.types import PATCH, Version, kind_name, list_name, name_of_kind, reference, schemas_for

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
        listing = _base_operation(resource, here, "get", "list", query=_LISTS, answer=list_name(resource))
        yield replace(listing, action="list")
        if everywhere != here:
            name = f"list{_camel(resource)}{resource.kind}ForAllNamespaces"
            yield replace(listing, action="list", path=everywhere, operation_id=name)
    if "create" in resource.verbs:
        yield _base_operation(resource, here, "post", "create", query=_WRITES, body=kind_name(resource))
    if "deletecollection" in resource.verbs:
        query = (*_LISTS, "gracePeriodSeconds", "propagationPolicy")
        deleting = _base_operation(resource, here, "delete", "deleteCollection", query=query, answer=_STATUS)
        yield replace(deleting, action="deletecollection")


def _on_one(resource: Resource, path: str, verb: str, kind: tuple[str, str, str]) -> ApiOperation:
    """What one verb does to an object or a subresource, which may be of another kind than its resource."""
    name = name_of_kind(*kind)
    match verb:
        case "get":
            made = _base_operation(resource, path, "get", "read", answer=name)
        case "update":
            made = _base_operation(resource, path, "put", "replace", query=_WRITES, body=name, answer=name)
        case "create":
            made = _base_operation(resource, path, "post", "create", query=_WRITES, body=name, answer=name)
        case "patch":
            consumes = (*PATCH_TYPES, STRATEGIC) if definition_of(resource) is not None else PATCH_TYPES
            made = _base_operation(resource, path, "patch", "patch", query=_PATCHES, body=PATCH, answer=name)
            made = replace(made, consumes=consumes)
        case _:
            made = _base_operation(resource, path, "delete", "delete", query=_DELETES, answer=_STATUS)
    return replace(made, kind=kind)


def _base_operation(
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


# -- documents --------------------------------------------------------------------------------------------------------


def openapi_v3_index(resources: Sequence[Resource]) -> Object:
    """Where each group and version has its document; the hash in the address changes when the document does."""
    versions = dict.fromkeys((resource.group, resource.version) for resource in resources)
    paths = {}
    for group, version in versions:
        path = f"apis/{group}/{version}" if group else f"api/{version}"
        digest = _hash(_chosen(group, version, resources))
        paths[path] = {"serverRelativeURL": f"/openapi/v3/{path}?hash={digest}"}
    return {"paths": paths}


def openapi_v3(group: str, version: str, resources: Sequence[Resource]) -> Object:
    """The document of one version of a group; a 404 if nothing of it is served.

    The same document is given out again: do not change it.
    """
    chosen = _chosen(group, version, resources)
    if not chosen:
        raise no_such_resource()
    return _document(chosen)


def _chosen(group: str, version: str, resources: Sequence[Resource]) -> tuple[Resource, ...]:
    return tuple(resource for resource in resources if resource.group == group and resource.version == version)


@lru_cache(maxsize=256)
def _hash(resources: tuple[Resource, ...]) -> str:
    content = release().encode() + msgspec.json.encode(resources)
    return hashlib.sha512(content).hexdigest().upper()


@lru_cache(maxsize=64)
def _document(resources: tuple[Resource, ...]) -> Object:
    paths, schemas = _contents(resources, 3)
    info = {"title": "Kubernetes", "version": release()}
    return {"openapi": "3.0.0", "info": info, "paths": paths, "components": {"schemas": schemas}}


def openapi_v2(resources: Sequence[Resource]) -> Object:
    """All paths and all types in Swagger 2.0. The same document is given out again: do not change it."""
    return _document_v2(tuple(resources))


@lru_cache(maxsize=4)
def _document_v2(resources: tuple[Resource, ...]) -> Object:
    paths, definitions = _contents(resources, 2)
    info = {"title": "Kubernetes", "version": release()}
    return {"swagger": "2.0", "info": info, "paths": paths, "definitions": definitions}


def _contents(resources: Sequence[Resource], version: Version) -> tuple[Object, Object]:
    """Paths with their operations, and schemas by name."""
    paths: dict[str, dict[str, Any]] = {}
    used: set[str] = set()
    for resource in resources:
        for operation in operations(resource):
            paths.setdefault(operation.path, {})[operation.method] = _operation(operation, version)
            used |= {name for name in (operation.body, operation.answer) if name}
    return dict(sorted(paths.items())), schemas_for(resources, used, version)


def _operation(operation: ApiOperation, version: Version) -> Object:
    parameters: list[Object] = [
        {"name": name, "in": "path", "required": True, **_parameter_type("string", version)}
        for name in operation.path_parameters
    ]
    parameters += [
        {"name": name, "in": "query", **_parameter_type(QUERY_TYPES.get(name, "string"), version)}
        for name in operation.query
    ]
    answer, body = {"schema": reference(operation.answer, version)}, {"schema": reference(operation.body, version)}
    document: Object = {
        "operationId": operation.operation_id,
        "tags": [operation.tag],
        "parameters": parameters,
        "x-kubernetes-action": operation.action,
        "x-kubernetes-group-version-kind": operation.group_version_kind(),
    }
    if version == 2:
        if operation.body:
            parameters.append({"name": "body", "in": "body", "required": True, **body})
        types = {"consumes": list(operation.consumes), "produces": ["application/json", "application/yaml"]}
        responses = {"200": {"description": "OK", **answer}}
        return {**document, "schemes": ["https"], **types, "responses": responses}
    if operation.body:
        document["requestBody"] = {"required": True, "content": dict.fromkeys(operation.consumes, body)}
    return {**document, "responses": {"200": {"description": "OK", "content": {"application/json": answer}}}}


def _parameter_type(name: str, version: Version) -> Object:
    return {"type": name, "uniqueItems": True} if version == 2 else {"schema": {"type": name}}
