"""The one document at /openapi/v2."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from kubesched.admission.schemas.table import release
from kubesched.api.kinds import Object, Resource
from kubesched.sandbox.openapi.contents import contents
from kubesched.sandbox.openapi.routes import QUERY_TYPES, Operation
from kubesched.sandbox.openapi.types import reference


def openapi_v2(resources: Sequence[Resource]) -> Object:
    """All paths and all types in Swagger 2.0. The same document is given out again: do not change it."""
    return _document(tuple(resources))


@lru_cache(maxsize=4)
def _document(resources: tuple[Resource, ...]) -> Object:
    paths, definitions = contents(resources, 2, _operation)
    return {
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": release()},
        "paths": paths,
        "definitions": definitions,
    }


def _operation(operation: Operation) -> Object:
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
