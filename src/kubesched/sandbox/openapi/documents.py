"""OpenAPI documents: version 3, one per group and version with an index, and version 2 as a whole."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from kubesched.admission.schemas.table import release
from kubesched.api.api_error import no_such_resource
from kubesched.api.kinds import Object, Resource
from kubesched.sandbox.openapi.routes import QUERY_TYPES, ApiOperation, operations
from kubesched.sandbox.openapi.types import Version, reference, schemas_for


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
    paths, schemas = contents(resources, 3, _operation)
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": release()},
        "paths": paths,
        "components": {"schemas": schemas},
    }


def _operation(operation: ApiOperation) -> Object:
    parameters: list[Object] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in operation.path_parameters
    ]
    parameters += [
        {"name": name, "in": "query", "schema": {"type": QUERY_TYPES.get(name, "string")}} for name in operation.query
    ]
    answer = {"schema": reference(operation.answer, 3)}
    document: Object = {
        "operationId": operation.operation_id,
        "tags": [operation.tag],
        "parameters": parameters,
        "responses": {"200": {"description": "OK", "content": {"application/json": answer}}},
        "x-kubernetes-action": operation.action,
        "x-kubernetes-group-version-kind": operation.group_version_kind(),
    }
    if operation.body:
        body = {"schema": reference(operation.body, 3)}
        document["requestBody"] = {"required": True, "content": dict.fromkeys(operation.consumes, body)}
    return document


Render = Callable[[ApiOperation], Object]


def contents(resources: Sequence[Resource], version: Version, render: Render) -> tuple[Object, Object]:
    """Paths with their operations as `render` writes them, and schemas by name."""
    paths: dict[str, dict[str, Any]] = {}
    used: set[str] = set()
    for resource in resources:
        for operation in operations(resource):
            paths.setdefault(operation.path, {})[operation.method] = render(operation)
            used |= {name for name in (operation.body, operation.answer) if name}
    return dict(sorted(paths.items())), schemas_for(resources, used, version)


def openapi_v2(resources: Sequence[Resource]) -> Object:
    """All paths and all types in Swagger 2.0. The same document is given out again: do not change it."""
    return _document_v2(tuple(resources))


@lru_cache(maxsize=4)
def _document_v2(resources: tuple[Resource, ...]) -> Object:
    paths, definitions = contents(resources, 2, _operation_v2)
    return {
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": release()},
        "paths": paths,
        "definitions": definitions,
    }


def _operation_v2(operation: ApiOperation) -> Object:
    parameters: list[Object] = [
        {"name": name, "in": "path", "required": True, "type": "string", "uniqueItems": True}
        for name in operation.path_parameters
    ]
    parameters += [
        {"name": name, "in": "query", "type": QUERY_TYPES.get(name, "string"), "uniqueItems": True}
        for name in operation.query
    ]
    if operation.body:
        parameters.append({"name": "body", "in": "body", "required": True, "schema": reference(operation.body, 2)})
    return {
        "operationId": operation.operation_id,
        "tags": [operation.tag],
        "schemes": ["https"],
        "consumes": list(operation.consumes),
        "produces": ["application/json", "application/yaml"],
        "parameters": parameters,
        "responses": {"200": {"description": "OK", "schema": reference(operation.answer, 2)}},
        "x-kubernetes-action": operation.action,
        "x-kubernetes-group-version-kind": operation.group_version_kind(),
    }
