"""Extenders that have a say in preemption, asked for real."""

from __future__ import annotations

from typing import Any

import pytest
from tests.builders import Json
from tests.reading import nominated, statuses, victims
from tests.unit.extenders.extender_server import (
    A,
    Answers,
    B,
    ExtenderServer,
    decide,
    filtering,
    passing,
)

from kubesched.framework.decision import Decision, Outcome
from kubesched.testing import HOSTNAME, make_pod

FULL_A = make_pod("on-a").requests(cpu="4").on("a")
FULL_B = make_pod("on-b").requests(cpu="4").on("b").priority(5)
PREEMPTOR = make_pod("p").requests(cpu="4").priority(10)


def preempting(server: ExtenderServer, **more: Any) -> Json:
    return {"urlPrefix": server.url, "preemptVerb": "preempt", "nodeCacheCapable": True, **more}


def sparing(**uids: list[str]) -> Answers:
    chosen = {name: {"Pods": [{"UID": uid} for uid in of_node]} for name, of_node in uids.items()}
    return lambda question: {"NodeNameToMetaVictims": chosen}


def preempt(extender: Json) -> Decision:
    return decide(PREEMPTOR, A, B, FULL_A, FULL_B, by=[extender])


def test_extender_narrows_down_where_to_preempt(server: ExtenderServer) -> None:
    server.answers["preempt"] = sparing(b=["uid-of-on-b"])
    decision = preempt(preempting(server))
    assert (nominated(decision), victims(decision)) == ("b", {"on-b"})
    assert server.asked[0][1]["NodeNameToVictims"] is None
    assert server.asked[0][1]["NodeNameToMetaVictims"] == {
        "a": {"Pods": [{"UID": "uid-of-on-a"}], "NumPDBViolations": 0},
        "b": {"Pods": [{"UID": "uid-of-on-b"}], "NumPDBViolations": 0},
    }


def test_extender_without_a_node_cache_gets_whole_victims(server: ExtenderServer) -> None:
    server.answers["preempt"] = sparing(a=["uid-of-on-a"])
    preempt(preempting(server, nodeCacheCapable=False))
    question = server.asked[0][1]
    assert question["NodeNameToMetaVictims"] is None
    assert question["NodeNameToVictims"]["a"]["Pods"][0]["metadata"]["name"] == "on-a"


def test_extender_that_agrees_to_nothing_ends_preemption(server: ExtenderServer) -> None:
    server.answers["preempt"] = sparing()
    decision = preempt(preempting(server))
    assert nominated(decision) is None
    assert decision.message.endswith("preemption: no candidate node for preemption")


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (sparing(x=["uid-of-on-a"]), 'on node "x", but there is no such node'),
        (sparing(a=["uid-of-on-b"]), 'pod (UID: uid-of-on-b) on node "a", but the pod is not found on that node'),
        (sparing(a=[]), 'expected at least one victim pod on node "a"'),
        (500, "code 500"),
    ],
)
def test_trouble_in_preemption_is_in_the_message_and_no_pod_has_to_go(
    server: ExtenderServer, answer: Answers | int, words: str
) -> None:
    server.answers["preempt"] = answer
    decision = preempt(preempting(server))
    assert decision.post_filter is None
    assert decision.outcome is Outcome.UNSCHEDULABLE
    assert words in decision.message


def test_ignorable_extender_in_trouble_does_not_keep_from_preempting(server: ExtenderServer) -> None:
    server.answers["preempt"] = 500
    assert nominated(preempt(preempting(server, ignorable=True))) == "a"


def test_node_for_which_an_ignorable_extender_names_no_victims_is_left_out(server: ExtenderServer) -> None:
    server.answers["preempt"] = sparing(a=[], b=["uid-of-on-b"])
    assert nominated(preempt(preempting(server, ignorable=True))) == "b"


def test_no_pod_has_to_go_where_only_an_extender_is_against_it(server: ExtenderServer) -> None:
    server.answers["filter"] = passing(FailedAndUnresolvableNodes={"a": "too far"}, FailedNodes={"b": "too noisy"})
    small = make_pod("p").priority(10)
    decision = decide(small, A, B, make_pod("on-a").on("a"), make_pod("on-b").on("b"), by=[filtering(server)])
    assert {name: str(status.code) for name, status in statuses(decision).items()} == {
        "a": "UnschedulableAndUnresolvable",
        "b": "Unschedulable",
    }
    assert decision.post_filter is None
    assert decision.message == (
        '0/2 nodes are available: 1 too far, 1 too noisy. preemption: expected at least one victim pod on node "b"'
    )


def test_every_node_where_only_an_extender_is_against_it_is_named(server: ExtenderServer) -> None:
    server.answers["filter"] = passing(FailedNodes={"a": "too noisy", "b": "too noisy"})
    small = make_pod("p").priority(10)
    decision = decide(small, A, B, make_pod("on-a").on("a"), make_pod("on-b").on("b"), by=[filtering(server)])
    victimless = [f'expected at least one victim pod on node "{name}"' for name in ("a", "b")]
    assert decision.message.endswith(f"preemption: [{', '.join(victimless)}]")


def test_no_pod_has_to_go_there_for_a_pod_with_neighbours_in_mind_either(server: ExtenderServer) -> None:
    server.answers["filter"] = passing(FailedNodes={"a": "too noisy"})
    picky = make_pod("p").priority(10).pod_anti_affinity(HOSTNAME, app="other")
    decision = decide(picky, A, make_pod("on-a").on("a"), by=[filtering(server)])
    assert decision.post_filter is None
    assert 'expected at least one victim pod on node "a"' in decision.message


def test_preemption_goes_where_it_helps_though_an_extender_is_against_other_nodes(server: ExtenderServer) -> None:
    server.answers["filter"] = passing(FailedNodes={"b": "too noisy"})
    decision = decide(PREEMPTOR, A, B, FULL_A, make_pod("on-b").on("b"), by=[filtering(server)])
    assert (nominated(decision), victims(decision)) == ("a", {"on-a"})
