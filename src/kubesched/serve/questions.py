"""The questions of programs: what each asks for, and the document that it is answered with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Any

import msgspec

from kubesched.api.pod import Pod
from kubesched.ask.answers import Skipped, answer
from kubesched.ask.edits import TrialEdit
from kubesched.ask.explain import explain
from kubesched.ask.output import plain
from kubesched.ask.request_objects import QuestionRequest
from kubesched.ask.service import CheckTime, QueryService, QuestionTimeoutError
from kubesched.ask.trial import Trial, fit
from kubesched.ask.what_if.request import WhatIfQuestion
from kubesched.simulate.capacity import capacity, model_of
from kubesched.simulate.placement import PodPlacement, UnplacedPod

MOST_PODS = 10_000
MOST_COPIES = 100_000
_BEST = 10


class StateQuestion(QuestionRequest, frozen=True):
    """A question to the state itself, with changes that are supposed for this question alone."""

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
    else:
        assert isinstance(question, StateQuestion)
        age = service.age()
        document = service.ask_now(question.changes, _Answering(question, service))
    return {**document, "cluster": plain(age)}


class _Answering:
    """One question to the cluster as it is while a trial lasts."""

    def __init__(self, question: StateQuestion, service: QueryService) -> None:
        self._question = question
        self._service = service

    def __call__(self, trial: Trial, check_time: CheckTime) -> dict[str, Any]:
        match self._question:
            case FitQuestion():
                return self._fit(self._question, trial, check_time)
            case ExplainQuestion():
                return self._explain(self._question, trial, check_time)
            case CapacityQuestion():
                return self._capacity(self._question, trial, check_time)
        raise TypeError(self._question)

    def _fit(self, question: FitQuestion, trial: Trial, check_time: CheckTime) -> dict[str, Any]:
        def in_time() -> Iterator[Pod]:
            for pod in self._service.objects.pods(question.pods, "pods", trial):
                check_time()
                yield pod

        return answer(fit(trial, in_time()))

    def _explain(self, question: ExplainQuestion, trial: Trial, check_time: CheckTime) -> dict[str, Any]:
        def is_out_of_time() -> bool:
            try:
                check_time()
            except QuestionTimeoutError:
                return True
            return False

        pod = trial.with_claims(self._service.objects.pod(question.pod, "pod", trial))
        found = explain(trial.cluster, pod, with_remedies=question.remedies, out_of_time=is_out_of_time)
        explanation = found.explanation
        if not question.nodes:
            explanation = replace(explanation, verdicts=(), scores=explanation.scores[:_BEST])
        return answer(explanation, found.findings, Skipped({}))

    def _capacity(self, question: CapacityQuestion, trial: Trial, check_time: CheckTime) -> dict[str, Any]:
        model = model_of(self._service.objects.pod(question.pod, "pod", trial))
        assert model is not None

        def place(pod: Pod) -> PodPlacement | UnplacedPod:
            check_time()
            return trial.place(pod)

        return answer(capacity(trial.cluster, model, most=question.most, place=place))
