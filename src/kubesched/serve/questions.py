"""The questions of programs: what each asks for, the document that answers it, and the OpenAPI description of both."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Annotated, Any

import msgspec

from kubesched import __version__
from kubesched.api.pod import Pod
from kubesched.ask.answers import PARTS, Skipped, answer
from kubesched.ask.edits import TrialEdit
from kubesched.ask.explain import explain
from kubesched.ask.output import API_VERSION, plain, record_schema, schema_of
from kubesched.ask.output import document as record
from kubesched.ask.releases.question import ReleaseQuestion, compare_now
from kubesched.ask.service import CheckTime, QueryService, QuestionTimeoutError
from kubesched.ask.sources.following import ClusterAge
from kubesched.ask.targets import QuestionRequest
from kubesched.ask.trial import Trial, fit
from kubesched.ask.what_if.what_if import WhatIfQuestion
from kubesched.planning.plan import Plan
from kubesched.planning.question import PlanQuestion
from kubesched.serve.plans import plan_now
from kubesched.simulate.placement import PodPlacement, UnplacedPod, capacity, model_of

MOST_PODS = 10_000
MOST_COPIES = 100_000
_BEST = 10
VERSION = API_VERSION.partition("/")[2]


class StateQuestion(QuestionRequest, frozen=True):
    """A question about the cluster as it is, with edits that hold for this question alone."""

    changes: tuple[TrialEdit, ...] = ()


class FitQuestion(StateQuestion, frozen=True, kw_only=True):
    """Would these pods fit, and where? They are placed in this order."""

    pods: Annotated[tuple[msgspec.Raw, ...], msgspec.Meta(min_length=1, max_length=MOST_PODS)]


class ExplainQuestion(StateQuestion, frozen=True, kw_only=True):
    """Why does this pod go where it goes, or nowhere, and what would help?"""

    pod: msgspec.Raw
    nodes: bool = False
    """Whether the answer has the verdict on every node, and all scores."""
    remedies: bool = True
    """Whether to look for what would help."""


class CapacityQuestion(StateQuestion, frozen=True, kw_only=True):
    """How many more of this pod fit?"""

    pod: msgspec.Raw
    most: Annotated[int, msgspec.Meta(ge=1, le=MOST_COPIES)] = 1000
    """Where to stop counting."""


async def answer_to(question: QuestionRequest, service: QueryService) -> dict[str, Any]:
    """The answer as a document. NotReadyError, RequestError, BusyError, QuestionTimeoutError, PluginError."""
    if isinstance(question, WhatIfQuestion):
        outcome, age = await service.what_if(question)
        document = answer(outcome.difference, Skipped({}))
    elif isinstance(question, ReleaseQuestion):
        comparison, age = await compare_now(question, service)
        document = answer(comparison, Skipped({}))
    elif isinstance(question, PlanQuestion):
        age = service.age()
        document = await plan_now(question, service, lambda plan, _: record("Plan", plan))
    else:
        assert isinstance(question, StateQuestion)
        age = service.age()
        document = service.ask_now(question.changes, lambda trial, check: _answer_now(question, service, trial, check))
    return {**document, "cluster": plain(age)}


def _answer_now(question: StateQuestion, service: QueryService, trial: Trial, check_time: CheckTime) -> dict[str, Any]:
    """The answer to a question about the cluster as it is while a trial lasts."""
    match question:
        case FitQuestion():
            return _fit(question, service, trial, check_time)
        case ExplainQuestion():
            return _explain(question, service, trial, check_time)
        case CapacityQuestion():
            return _capacity(question, service, trial, check_time)
    raise TypeError(question)


def _fit(question: FitQuestion, service: QueryService, trial: Trial, check_time: CheckTime) -> dict[str, Any]:
    def in_time() -> Iterator[Pod]:
        for pod in service.objects.pods(question.pods, "pods", trial):
            check_time()
            yield pod

    return answer(fit(trial, in_time()))


def _explain(question: ExplainQuestion, service: QueryService, trial: Trial, check_time: CheckTime) -> dict[str, Any]:
    def is_out_of_time() -> bool:
        try:
            check_time()
        except QuestionTimeoutError:
            return True
        return False

    pod = trial.with_claims(service.objects.pod(question.pod, "pod", trial))
    explained = explain(trial.cluster, pod, with_remedies=question.remedies, out_of_time=is_out_of_time)
    explanation = explained.explanation
    if not question.nodes:
        explanation = replace(explanation, verdicts=(), scores=explanation.scores[:_BEST])
    return answer(explanation, explained.findings, Skipped({}))


def _capacity(question: CapacityQuestion, service: QueryService, trial: Trial, check_time: CheckTime) -> dict[str, Any]:
    model = model_of(service.objects.pod(question.pod, "pod", trial))
    assert model is not None

    def place(pod: Pod) -> PodPlacement | UnplacedPod:
        check_time()
        return trial.place(pod)

    return answer(capacity(trial.cluster, model, most=question.most, place=place, create=trial.change))


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
    f"/{VERSION}/compare-releases": QuestionPath(ReleaseQuestion, "ReleaseComparison"),
    f"/{VERSION}/plan": QuestionPath(PlanQuestion, "Plan"),
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
    types = [path.question for path in QUESTIONS.values()]
    _, components = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    for schema in components.values():
        name_pods(schema)
    components |= {path.answer: _answer(path.answer) for path in QUESTIONS.values()}
    components["Error"] = _error()
    return {
        "openapi": "3.1.0",
        "info": {"title": "kubesched serve", "version": __version__, "description": "Questions about a cluster."},
        "security": [{"bearer": []}, {"certificate": []}],
        "paths": {path: {"post": _operation(path, question)} for path, question in QUESTIONS.items()}
        | {path: {"get": _probe(summary)} for path, summary in _PROBES.items()},
        "components": {
            "schemas": components,
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "certificate": {"type": "mutualTLS"},
            },
        },
    }


_PROBES = {"/healthz": "Whether it runs.", "/readyz": "Whether the cluster has been read, and what is missing."}


def name_pods(schema: dict[str, Any]) -> None:
    """Pods are kept as they are sent until they are looked at, so their type says nothing."""
    properties = schema.get("properties", {})
    if "pod" in properties:
        properties["pod"] = _POD
    if "pods" in properties:
        properties["pods"]["items"] = _POD


def _answer(kind: str) -> dict[str, Any]:
    schema = schema_of(kind, (Plan,) if kind == "Plan" else PARTS[kind])
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


def _operation(path: str, question_path: QuestionPath) -> dict[str, Any]:
    text = (question_path.question.__doc__ or "").partition("\n")[0]
    return {
        "operationId": path.rpartition("/")[2],
        "summary": text,
        "requestBody": {"required": True, "content": _content(question_path.question.__name__)},
        "responses": {
            "200": {"description": "The answer.", "content": _content(question_path.answer)},
            **{str(code): {"description": why, "content": _content("Error")} for code, why in _REFUSALS.items()},
        },
    }


def _probe(summary: str) -> dict[str, Any]:
    refused = {"description": "Not yet.", "content": _content("Error")}
    return {"summary": summary, "security": [], "responses": {"200": {"description": "ok"}, "503": refused}}


def _content(name: str) -> dict[str, Any]:
    return {_JSON: {"schema": {"$ref": f"#/components/schemas/{name}"}}}
