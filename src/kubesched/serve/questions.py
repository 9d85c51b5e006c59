"""The questions themselves: what each asks for, and how it is answered from the current state of the cluster.

A question is answered in one go, without waiting for anything: the state is the same throughout, and afterwards.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any

import msgspec

from kubesched.api.errors import UserError
from kubesched.api.pod import Pod
from kubesched.questions.answers import Skipped, answer
from kubesched.questions.changes import AskedChange, suppose
from kubesched.questions.explain import explain
from kubesched.questions.fit import fit
from kubesched.questions.given import Given
from kubesched.questions.output import plain
from kubesched.questions.trial import Trial
from kubesched.serve.age import Followed
from kubesched.simulate.capacity import capacity, model_of
from kubesched.simulate.cluster import ClusterModel
from kubesched.simulate.placement import Placed, Unplaced

TIMEOUT = 10.0
MOST_PODS = 10_000
MOST_COPIES = 100_000
_BEST = 10


class QuestionTimeoutError(UserError):
    """A question that takes too long."""


class Asking(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """What is sent to ask."""


class Question(Asking, frozen=True):
    """A question to the state itself, with changes that are supposed for this question alone."""

    changes: tuple[AskedChange, ...] = ()


class FitQuestion(Question, frozen=True, kw_only=True):
    """Would these pods fit, and where? They are placed in this order."""

    pods: Annotated[tuple[msgspec.Raw, ...], msgspec.Meta(min_length=1, max_length=MOST_PODS)]


class ExplainQuestion(Question, frozen=True, kw_only=True):
    """Why does this pod go where it goes, or nowhere, and what would help?"""

    pod: msgspec.Raw
    nodes: bool = False
    """Whether the answer has the verdict on every node, and all scores."""
    remedies: bool = True
    """Whether to look for what would help."""


class CapacityQuestion(Question, frozen=True, kw_only=True):
    """How many more of this pod fit?"""

    pod: msgspec.Raw
    most: Annotated[int, msgspec.Meta(ge=1, le=MOST_COPIES)] = 1000
    """Where to stop counting."""


class Questions:
    """Answers questions about one cluster."""

    def __init__(
        self,
        cluster: ClusterModel,
        followed: Followed,
        *,
        timeout: float = TIMEOUT,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`timeout` is in seconds, for each question."""
        self.followed = followed
        self._cluster = cluster
        self._given = Given(cluster)
        self._timeout = timeout
        self._clock = clock

    def ask(self, question: Question) -> dict[str, Any]:
        """The answer as a document. NotReadyError, AskedError, QuestionTimeoutError, PluginError."""
        age = self.followed.age()
        deadline = self._clock() + self._timeout
        with Trial(self._cluster) as trial:
            suppose(question.changes, trial, self._given)
            match question:
                case FitQuestion():
                    found = self._fit(question, trial, deadline)
                case ExplainQuestion():
                    found = self._explain(question, trial, deadline)
                case CapacityQuestion():
                    found = self._capacity(question, trial, deadline)
        return {**found, "cluster": plain(age)}

    def _fit(self, question: FitQuestion, trial: Trial, deadline: float) -> dict[str, Any]:
        pods = self._given.pods(question.pods, "pods", trial)
        return answer(fit(trial, (self._in_time(pod, deadline) for pod in pods)))

    def _explain(self, question: ExplainQuestion, trial: Trial, deadline: float) -> dict[str, Any]:
        pod = trial.with_claims(self._given.pod(question.pod, "pod", trial))
        found = explain(
            self._cluster, pod, with_remedies=question.remedies, out_of_time=lambda: self._clock() > deadline
        )
        explanation = found.explanation
        if not question.nodes:
            explanation = replace(explanation, verdicts=(), scores=explanation.scores[:_BEST])
        return answer(explanation, found.findings, Skipped({}))

    def _capacity(self, question: CapacityQuestion, trial: Trial, deadline: float) -> dict[str, Any]:
        model = model_of(self._given.pod(question.pod, "pod", trial))
        assert model is not None

        def place(pod: Pod) -> Placed | Unplaced:
            return trial.place(self._in_time(pod, deadline))

        return answer(capacity(self._cluster, model, most=question.most, place=place))

    def _in_time(self, pod: Pod, deadline: float) -> Pod:
        if self._clock() > deadline:
            raise QuestionTimeoutError(f"took longer than {self._timeout:g} s")
        return pod
