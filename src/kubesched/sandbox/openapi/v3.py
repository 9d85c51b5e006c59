"""The index at /openapi/v3 and the document of each group and version below it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache

import msgspec

from kubesched.admission.schemas.table import release
from kubesched.api.api_error import no_such_resource
from kubesched.api.kinds import Object, Resource
from kubesched.sandbox.openapi.contents import contents
from kubesched.sandbox.openapi.routes import QUERY_TYPES, Operation
from kubesched.sandbox.openapi.types import reference


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
    told = release().encode() + msgspec.json.encode(resources)
    return hashlib.sha512(told).hexdigest().upper()


@lru_cache(maxsize=64)
def _document(resources: tuple[Resource, ...]) -> Object:
    paths, schemas = contents(resources, 3, _operation)
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": release()},
        "paths": paths,
        "components": {"schemas": schemas},
    }


def _operation(operation: Operation) -> Object:
    parameters: list[Object] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in operation.path_parameters
    ]
    parameters += [
        {"name": name, "in": "query", "schema": {"type": QUERY_TYPES.get(name, "string")}} for name in operation.query
    ]
    answer = {"schema": reference(operation.answer, 3)}
    told: Object = {
        "operationId": operation.operation_id,
        "tags": [operation.tag],
        "parameters": parameters,
        "responses": {"200": {"description": "OK", "content": {"application/json": answer}}},
        "x-kubernetes-action": operation.action,
        "x-kubernetes-group-version-kind": operation.group_version_kind(),
    }
    if operation.body:
        body = {"schema": reference(operation.body, 3)}
        told["requestBody"] = {"required": True, "content": dict.fromkeys(operation.consumes, body)}
    return told
