"""Extenders, asked for real: every test has a server of its own on the loopback interface."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler
from typing import Any, cast

import pytest
from tests.builders import Json
from tests.reading import scores_of
from tests.unit.extenders.extender_server import (
    POD,
    A,
    B,
    C,
    ExtenderServer,
    asked,
    assert_ends_with_error,
    decide,
    decide_attempt,
    filtering,
    passing,
    settings,
)
from tests.unit.scheduler.memory_cluster import MemoryCluster
from tests.unit.scheduler.world import pop_pod

from kubesched.extenders.http_extender import HTTPExtender, extenders_of
from kubesched.framework.decision import Outcome
from kubesched.framework.extender import ExtenderError, ask_to_bind
from kubesched.plugins.registry import in_tree
from kubesched.scheduler.assembly import SchedulerSettings, build_scheduler
from kubesched.scheduler.attempt.attempt import Attempt
from kubesched.scheduler.scheduler import Scheduler
from kubesched.testing import make_pod

# -- filter -----------------------------------------------------------------------------------------------------------


def test_nodes_that_an_extender_leaves_out_are_not_taken(server: ExtenderServer) -> None:
    server.answers["filter"] = passing("b", FailedNodes={"a": "too noisy"})
    assert decide(POD, A, B, by=[filtering(server)]).node == "b"


def test_answers_are_timed_by_verb_and_those_that_failed_are_counted(server: ExtenderServer) -> None:
    (extender,) = extenders = extenders_of(settings(filtering(server)))
    server.answers["filter"] = passing("a")
    asked(lambda: extender.filter(POD, [A.build()]), extenders)
    server.answers["filter"] = 500
    with pytest.raises(ExtenderError):
        asked(lambda: extender.filter(POD, [A.build()]), extenders)
    times = extender.times["filter"]
    assert (times.questions, times.failures) == (2, 1)
    assert 0 < times.mean < times.seconds


def test_extender_with_a_node_cache_gets_names_only(server: ExtenderServer) -> None:
    server.answers["filter"] = passing("a", "b")
    decide(POD, A, B, by=[filtering(server)])
    question = server.asked[0][1]
    assert question["NodeNames"] == ["a", "b"]
    assert question["Nodes"] is None
    assert question["Pod"]["metadata"] == {"name": "p", "namespace": "default", "uid": "uid-of-p"}
    assert (question["Pod"]["kind"], question["Pod"]["spec"]["schedulerName"]) == ("Pod", "default-scheduler")


def test_extender_without_a_node_cache_gets_and_gives_whole_nodes(server: ExtenderServer) -> None:
    server.answers["filter"] = lambda question: {"Nodes": {"items": question["Nodes"]["items"][1:]}}
    decision = decide(POD, A, B, by=[filtering(server, nodeCacheCapable=False)])
    question = server.asked[0][1]
    assert decision.node == "b"
    assert question["NodeNames"] is None
    assert question["Nodes"]["items"][0]["kind"] == "Node"
    assert question["Nodes"]["items"][0]["status"]["allocatable"]["cpu"] == "4"


def test_keys_of_answers_may_be_in_any_case(server: ExtenderServer) -> None:
    server.answers["filter"] = lambda question: {"nodeNames": ["b"], "failedNodes": {"a": "no"}, "error": ""}
    assert decide(POD, A, B, by=[filtering(server)]).node == "b"


def test_rejections_of_filters_and_extenders_are_told_together(server: ExtenderServer) -> None:
    server.answers["filter"] = passing(FailedNodes={"a": "too noisy"}, FailedAndUnresolvableNodes={"b": "too far"})
    decision = decide(POD, A, B, C.capacity(pods=0), by=[filtering(server)])
    assert decision.message.startswith("0/3 nodes are available: 1 Too many pods, 1 too far, 1 too noisy.")
    assert decision.diagnosis is not None
    assert decision.diagnosis.unschedulable_plugins == {"NodeResourcesFit", "Extender"}


def test_node_that_is_left_out_without_a_word_is_told_as_such(server: ExtenderServer) -> None:
    server.answers["filter"] = passing()
    message = decide(POD, A, by=[filtering(server)]).message
    assert message.startswith(f'0/1 nodes are available: 1 node(s) were left out by extender "{server.url}".')


def test_next_extender_is_asked_about_what_is_left(server: ExtenderServer) -> None:
    server.answers["filter"] = passing("b", "c")
    server.answers["again"] = passing("c")
    decision = decide(POD, A, B, C, by=[filtering(server), filtering(server, filterVerb="again")])
    assert decision.node == "c"
    assert [question["NodeNames"] for _, question in server.asked] == [["a", "b", "c"], ["b", "c"]]


def test_extender_is_not_asked_when_no_node_fits_anyway(server: ExtenderServer) -> None:
    decide(make_pod("p").requests(cpu="100"), A, by=[filtering(server)])
    assert server.asked == []


def test_nominated_node_that_an_extender_rejects_is_not_taken(server: ExtenderServer) -> None:
    server.answers["filter"] = lambda q: {"NodeNames": [name for name in q["NodeNames"] if name != "a"]}
    assert decide(make_pod("p").nominated("a"), A, B, by=[filtering(server)]).node == "b"
    assert [question["NodeNames"] for _, question in server.asked] == [["a"], ["a", "b"]]


def test_nominated_node_that_an_extender_lets_pass_is_taken_at_once(server: ExtenderServer) -> None:
    server.answers["filter"] = passing("a")
    assert decide(make_pod("p").nominated("a"), A, B, by=[filtering(server)]).node == "a"
    assert server.verbs == ["filter"]


# -- managed resources ------------------------------------------------------------------------------------------------


def test_extender_is_asked_only_about_pods_that_want_its_resources(server: ExtenderServer) -> None:
    server.answers["filter"] = passing("b")
    extender = filtering(server, managedResources=[{"name": "example.com/gpu", "ignoredByScheduler": True}])
    assert decide(POD, A, B, by=[extender]).node == "a"
    assert server.asked == []
    assert decide(make_pod("p").requests({"example.com/gpu": 1}), A, B, by=[extender]).node == "b"


def test_resource_that_is_not_ignored_must_be_there_for_the_scheduler_too(server: ExtenderServer) -> None:
    extender = filtering(server, managedResources=[{"name": "example.com/gpu"}])
    decision = decide(make_pod("p").requests({"example.com/gpu": 1}), A, by=[extender])
    assert decision.message.startswith("0/1 nodes are available: 1 Insufficient example.com/gpu.")


# -- prioritize -------------------------------------------------------------------------------------------------------


def scoring(server: ExtenderServer, weight: int = 1, **more: Any) -> Json:
    return {"urlPrefix": server.url, "prioritizeVerb": "prioritize", "weight": weight, "nodeCacheCapable": True, **more}


def test_scores_of_an_extender_are_scaled_weighted_and_added(server: ExtenderServer) -> None:
    server.answers["prioritize"] = lambda question: [{"Host": "b", "Score": 7}, {"Host": "stranger", "Score": 10}]
    decision = decide(POD, A, B, by=[scoring(server, weight=3)], explain=True)
    assert scores_of(decision, server.url) == {"a": 0, "b": 7 * 3 * 10}
    assert decision.node == "b"
    assert decision.score - decide(POD, A, B, by=[]).score == 210


def test_extender_that_fails_to_score_is_left_out_of_the_sum(server: ExtenderServer) -> None:
    server.answers["prioritize"] = 500
    assert decide(POD, A, B, by=[scoring(server)]).node == "a"
    assert server.verbs == ["prioritize"]


def test_extender_is_not_asked_to_score_a_single_node(server: ExtenderServer) -> None:
    decide(POD, A, by=[scoring(server)])
    assert server.asked == []


def test_scores_beyond_all_bounds_do_not_break_the_attempt(server: ExtenderServer) -> None:
    server.answers["prioritize"] = lambda question: [
        {"Host": "a", "Score": 2**63 - 1},
        {"Host": "a", "Score": 2**63 - 1},
    ]
    assert decide(POD, A, B, by=[scoring(server)], explain=True).outcome is Outcome.SCHEDULED


# -- trouble ----------------------------------------------------------------------------------------------------------


def test_slow_extender_ends_the_attempt_in_time(server: ExtenderServer) -> None:
    server.answers["filter"] = server.never
    decision = decide(POD, A, by=[filtering(server, httpTimeout="50ms")])
    assert_ends_with_error(decision, f"{server.url}/filter", "no answer within 50ms")


def test_extender_that_drips_its_answer_ends_the_attempt_in_time(server: ExtenderServer) -> None:
    def drip(handler: BaseHTTPRequestHandler, answer: object, question: Json) -> None:
        try:
            handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Drip: ")
            while not server.released.wait(0.01):
                handler.wfile.write(b"H")
        except OSError:
            pass  # the other side had enough

    server.reply = drip  # type: ignore[method-assign]
    server.answers["filter"] = b""
    assert_ends_with_error(decide(POD, A, by=[filtering(server, httpTimeout="100ms")]), "no answer within 100ms")


def test_extender_that_is_down_ends_the_attempt(server: ExtenderServer) -> None:
    gone = ExtenderServer()
    gone._http.server_close()
    assert_ends_with_error(decide(POD, A, by=[filtering(gone)]), gone.url, "Connection refused")


@pytest.mark.parametrize(
    "garbage",
    [b"", b"<html>", b"[]", b'"yes"', b'{"NodeNames": "a"}', b'{"NodeNames": [1]}', b"\xff\xfe", b"[" * 100_000],
)
def test_garbage_ends_the_attempt(server: ExtenderServer, garbage: bytes) -> None:
    server.answers["filter"] = garbage
    decision = decide(POD, A, by=[filtering(server)])
    assert_ends_with_error(decision, f'extender "{server.url}" gave an answer to filter that cannot be read')


def test_status_other_than_ok_ends_the_attempt(server: ExtenderServer) -> None:
    server.answers["filter"] = 503
    decision = decide(POD, A, by=[filtering(server)])
    assert_ends_with_error(decision, f"failed filter with extender at URL {server.url}/filter, code 503")


def test_error_in_an_answer_ends_the_attempt(server: ExtenderServer) -> None:
    server.answers["filter"] = lambda question: {"Error": "the database is away"}
    assert_ends_with_error(decide(POD, A, by=[filtering(server)]), "the database is away")


@pytest.mark.parametrize("capable", [True, False])
def test_unknown_node_ends_the_attempt(server: ExtenderServer, capable: bool) -> None:
    unknown = {"NodeNames": ["x"], "Nodes": {"items": [{"metadata": {"name": "x", "creationTimestamp": None}}]}}
    server.answers["filter"] = lambda question: unknown
    decision = decide(POD, A, by=[filtering(server, nodeCacheCapable=capable)])
    assert_ends_with_error(decision, f'extender "{server.url}" claims a filtered node "x" which is not found')


@pytest.mark.parametrize("answer", [500, b"<html>", b'{"Error": "no"}', b'{"NodeNames": ["x"]}'])
def test_ignorable_extender_in_trouble_is_ignored(server: ExtenderServer, answer: int | bytes) -> None:
    server.answers["filter"] = answer
    assert decide(POD, A, B, by=[filtering(server, ignorable=True)]).node == "a"
    assert server.verbs == ["filter"]


def test_ignorable_extenders_are_asked_last(server: ExtenderServer) -> None:
    server.answers["may"] = server.answers["must"] = passing("a")
    decide(POD, A, by=[filtering(server, filterVerb="may", ignorable=True), filtering(server, filterVerb="must")])
    assert server.verbs == ["must", "may"]


def test_after_trouble_with_the_nominated_node_the_search_goes_on(server: ExtenderServer) -> None:
    server.answers["filter"] = lambda q: {"Error": "not now"} if len(server.asked) == 1 else {"NodeNames": ["b"]}
    assert decide(make_pod("p").nominated("a"), A, B, by=[filtering(server)]).node == "b"


# -- bind -------------------------------------------------------------------------------------------------------------


def binds(server: ExtenderServer, **more: Any) -> bool:
    extenders = extenders_of(settings({"urlPrefix": server.url, "bindVerb": "bind", **more}))
    return asked(lambda: ask_to_bind(extenders, POD, "a"), extenders)


def test_extender_binds_in_the_place_of_the_scheduler(server: ExtenderServer) -> None:
    server.answers["bind"] = lambda question: {}
    assert binds(server)
    assert server.asked == [
        ("bind", {"PodName": "p", "PodNamespace": "default", "PodUID": "uid-of-p", "Node": "a"}),
    ]


def test_binding_that_fails_is_an_error_unless_the_extender_may_be_ignored(server: ExtenderServer) -> None:
    server.answers["bind"] = lambda question: {"Error": "the node is gone"}
    with pytest.raises(ExtenderError, match="the node is gone"):
        binds(server)
    assert not binds(server, ignorable=True)


def test_scheduler_binds_pods_that_no_extender_cares_for(server: ExtenderServer) -> None:
    assert not binds(server, managedResources=[{"name": "example.com/gpu"}])
    assert server.asked == []


# -- in the life of a pod ---------------------------------------------------------------------------------------------


def attempt(cluster: MemoryCluster, scheduler: Scheduler) -> Attempt:
    """One attempt from beginning to end."""
    cluster.tell(scheduler)
    found = pop_pod(scheduler)
    assert found is not None

    async def carry_out() -> None:
        await decide_attempt(scheduler, found)
        await scheduler.finish(found)

    asked(carry_out, cast(list[HTTPExtender], scheduler.extenders))
    cluster.tell(scheduler)
    return found


def living(*extenders: Json) -> tuple[MemoryCluster, Scheduler]:
    cluster = MemoryCluster()
    config = settings(*extenders)
    scheduler = build_scheduler(
        SchedulerSettings(clock=lambda: 0.0, draw=lambda among: 0),
        config,
        cluster,
        in_tree(),
        extenders=extenders_of(config),
    )
    for obj in (A.build(), B.build(), POD):
        cluster.put(obj)
    return cluster, scheduler


def test_pod_that_an_extender_rejected_is_tried_again_when_anything_changes(server: ExtenderServer) -> None:
    server.answers["filter"] = lambda question: {"NodeNames": [], "FailedNodes": {"a": "too loud", "b": "too loud"}}
    cluster, scheduler = living(filtering(server))
    failed = attempt(cluster, scheduler)
    assert failed.outcome == "unschedulable"
    assert failed.queued.unschedulable_plugins == {"Extender"}
    cluster.put(C.build())
    server.answers["filter"] = passing("c")
    assert attempt(cluster, scheduler).outcome == "bound"
    assert cluster.pod("p").spec.node_name == "c"


def test_pod_is_tried_again_after_trouble_with_an_extender(server: ExtenderServer) -> None:
    server.answers["filter"] = 500
    cluster, scheduler = living(filtering(server))
    assert attempt(cluster, scheduler).outcome == "error"
    assert [queued.key for queued in scheduler.queue.error_backoff()] == ["default/p"]
    [condition] = cluster.pod("p").status.conditions
    assert "code 500" in condition.message


def test_pod_that_an_extender_binds_is_not_bound_twice(server: ExtenderServer) -> None:
    server.answers["bind"] = lambda question: {}
    cluster, scheduler = living({"urlPrefix": server.url, "bindVerb": "bind"})
    assert attempt(cluster, scheduler).outcome == "bound"
    assert server.verbs == ["bind"]
    assert cluster.bindings == []


def test_place_is_given_back_when_an_extender_cannot_bind(server: ExtenderServer) -> None:
    server.answers["bind"] = lambda question: {"Error": "the node is gone"}
    cluster, scheduler = living({"urlPrefix": server.url, "bindVerb": "bind"})
    failed = attempt(cluster, scheduler)
    assert failed.outcome == "bind-error"
    assert failed.failure is not None
    assert failed.failure.message == "the node is gone"
    assert scheduler.state.placed(POD) is None
