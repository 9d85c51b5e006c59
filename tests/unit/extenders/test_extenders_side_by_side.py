"""Several extenders that score: they are asked at the same time, and it does not show in the result."""

from __future__ import annotations

from threading import Barrier, Event
from typing import Any

import pytest
from tests.builders import Json
from tests.reading import scores_of
from tests.unit.extenders.extender_server import POD, A, Answers, B, ExtenderServer, asked, decide, settings

from kubesched.extenders.http_extender import extenders_of
from kubesched.framework.extender import AnswersMissingError, ExtenderAnswers
from kubesched.scheduler.attempt.waiting_attempts import answer

NODES = {"a": A.build(), "b": B.build()}


def scoring(server: ExtenderServer, verb: str, weight: int = 1, **more: Any) -> Json:
    # An extender that scores is known by its address, which is the same for all but for its end.
    address = f"{server.url}{'/' * weight}"
    return {"urlPrefix": address, "prioritizeVerb": verb, "weight": weight, "nodeCacheCapable": True, **more}


def scores_by(*by: Json) -> list[tuple[int, list[int]]]:
    """The weight of every extender that has scores, and those."""
    extenders = extenders_of(settings(*by))
    answers = ExtenderAnswers(extenders, NODES.__getitem__)
    with pytest.raises(AnswersMissingError) as missing:
        answers.scores(POD, list(NODES))
    asked(lambda: answer(missing.value.questions), extenders)
    return [(extender.weight, scores) for extender, scores in answers.scores(POD, list(NODES))]


def preferring(name: str, score: int) -> Answers:
    return lambda question: [{"Host": name, "Score": score}]


def test_extenders_are_asked_at_the_same_time(server: ExtenderServer) -> None:
    all_asked = Barrier(3)

    def meet(question: Json) -> list[Json]:
        all_asked.wait(5)
        return [{"Host": "b", "Score": 1}]

    server.answers.update(dict.fromkeys(("x", "y", "z"), meet))
    by = [scoring(server, "x", 1), scoring(server, "y", 2), scoring(server, "z", 3)]
    decision = decide(POD, A, B, by=by, explain=True)
    assert [scores_of(decision, extender["urlPrefix"])["b"] for extender in by] == [10, 20, 30]
    assert decision.node == "b"


def test_scores_come_in_the_order_of_the_extenders_whichever_answers_first(server: ExtenderServer) -> None:
    second_answered = Event()

    def last(question: Json) -> list[Json]:
        second_answered.wait(5)
        return [{"Host": "a", "Score": 1}]

    def first(question: Json) -> list[Json]:
        second_answered.set()
        return [{"Host": "a", "Score": 2}]

    server.answers.update({"x": last, "y": first})
    by = [scoring(server, "x", 5), scoring(server, "y", 7)]
    assert scores_by(*by) == [(5, [1, 0]), (7, [2, 0])]


def test_one_that_fails_spoils_nothing_for_the_others(server: ExtenderServer) -> None:
    server.answers.update({"x": 500, "y": preferring("b", 4)})
    by = [scoring(server, "x", 5), scoring(server, "y", 7)]
    assert scores_by(*by) == [(7, [0, 4])]


def test_only_those_that_care_for_the_pod_are_asked(server: ExtenderServer) -> None:
    server.answers["y"] = preferring("b", 4)
    gpus = scoring(server, "x", 5, managedResources=[{"name": "example.com/gpu"}])
    assert decide(POD, A, B, by=[gpus, scoring(server, "y", 7)]).node == "b"
    assert server.verbs == ["y"]
