"""The OpenAPI description: questions from their types, answers from the dataclasses that they are made from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import msgspec

from kubesched import __version__
from kubesched.ask.answers import PARTS
from kubesched.ask.output import API_VERSION
from kubesched.ask.request_objects import QuestionRequest
from kubesched.ask.schemas import record_schema, schema_of
from kubesched.ask.sources.age import ClusterAge
from kubesched.ask.what_if.request import WhatIfQuestion
from kubesched.serve.questions import CapacityQuestion, ExplainQuestion, FitQuestion

VERSION = API_VERSION.partition("/")[2]


@dataclass(frozen=True)
class QuestionPath:
    """One path: what it takes, and the kind of document that it answers with."""

    question: type[QuestionRequest]
    answer: str


QUESTIONS = {
    f"/{VERSION}/fit": QuestionPath(FitQuestion, "Fit"),
    f"/{VERSION}/explain": QuestionPath(ExplainQuestion, "Explanation"),
    f"/{VERSION}/capacity": QuestionPath(CapacityQuestion, "Capacity"),
    f"/{VERSION}/what-if": QuestionPath(WhatIfQuestion, "WhatIf"),
}

_POD = {
    "description": "The manifest of a pod, or the [namespace/][type/]name of a pod or a workload that is there.",
    "anyOf": [{"type": "string"}, {"type": "object"}],
}
_REFUSALS = {
    400: "What was sent is not JSON, or not of this shape.",
    401: "There is no token, or not the right one.",
    408: "The question did not arrive in time.",
    413: "The question is too large.",
    422: "Something in the question is wrong; a line per field, with its path.",
    429: "Too many questions are under way.",
    503: "The cluster has not been read yet.",
    504: "The answer takes too long.",
}
_JSON = "application/json"


@cache
def described() -> dict[str, Any]:
    """The whole document."""
    asked = [each.question for each in QUESTIONS.values()]
    _, components = msgspec.json.schema_components(asked, ref_template="#/components/schemas/{name}")
    for schema in components.values():
        _name_pods(schema)
    components |= {each.answer: _answer(each.answer) for each in QUESTIONS.values()}
    components["Error"] = _error()
    return {
        "openapi": "3.1.0",
        "info": {"title": "kubesched serve", "version": __version__, "description": "Questions about a cluster."},
        "security": [{"bearer": []}, {"certificate": []}],
        "paths": {path: {"post": _operation(path, each)} for path, each in QUESTIONS.items()}
        | {path: {"get": _probe(what)} for path, what in _PROBES.items()},
        "components": {
            "schemas": components,
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "certificate": {"type": "mutualTLS"},
            },
        },
    }


_PROBES = {"/healthz": "Whether it runs.", "/readyz": "Whether the cluster has been read, and what is missing."}


def _name_pods(schema: dict[str, Any]) -> None:
    """Pods are kept as they are sent until they are looked at, so their type says nothing."""
    properties = schema.get("properties", {})
    if "pod" in properties:
        properties["pod"] = _POD
    if "pods" in properties:
        properties["pods"]["items"] = _POD


def _answer(kind: str) -> dict[str, Any]:
    schema = schema_of(kind, PARTS[kind])
    del schema["$schema"]
    schema["properties"]["cluster"] = record_schema(ClusterAge)
    schema["required"].append("cluster")
    return schema


def _error() -> dict[str, Any]:
    properties = {
        "apiVersion": {"const": API_VERSION},
        "kind": {"const": "Error"},
        "code": {"type": "integer"},
        "errors": {"type": "array", "items": {"type": "string"}},
    }
    return {
        "type": "object",
        "description": "Why there is no answer.",
        "properties": properties,
        "required": [*properties],
    }


def _operation(path: str, asked: QuestionPath) -> dict[str, Any]:
    text = (asked.question.__doc__ or "").partition("\n")[0]
    return {
        "operationId": path.rpartition("/")[2],
        "summary": text,
        "requestBody": {"required": True, "content": _content(asked.question.__name__)},
        "responses": {
            "200": {"description": "The answer.", "content": _content(asked.answer)},
            **{str(code): {"description": why, "content": _content("Error")} for code, why in _REFUSALS.items()},
        },
    }


def _probe(what: str) -> dict[str, Any]:
    refused = {"description": "Not yet.", "content": _content("Error")}
    return {"summary": what, "security": [], "responses": {"200": {"description": "ok"}, "503": refused}}


def _content(name: str) -> dict[str, Any]:
    return {_JSON: {"schema": {"$ref": f"#/components/schemas/{name}"}}}
