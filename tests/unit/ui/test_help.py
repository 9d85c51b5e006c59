"""What would help, for the page: asked of a copy, so that the cluster that is looked at stays as it is."""

from __future__ import annotations

import asyncio
import threading
from importlib.resources import files
from typing import Any

import pytest
from tests.unit.ui.observing import alive, service_of, still

from kubesched.ask.pending import PendingPods, pending_pods
from kubesched.ask.remedies import remedies
from kubesched.ask.service import MOST_WAITING, SLOW_TIMEOUT, BusyError, CheckTime, QuestionTimeoutError
from kubesched.simulate.cluster import ClusterModel
from kubesched.testing import make_node, make_pod
from kubesched.ui.views import PageViews

CLUSTER = (
    make_node("node-1").capacity(cpu="4"),
    make_pod("runs").requests(cpu="3").on("node-1"),
    make_pod("fits").requests(cpu="1"),
    make_pod("large").requests(cpu="2"),
)


def ask(views: PageViews, question: Any, **how: Any) -> Any:
    return asyncio.run(service_of(views).ask_copy(question, **how))


def test_smallest_change_for_a_pod_comes_in_words_and_as_a_patch() -> None:
    found = ask(still(*CLUSTER), lambda cluster: remedies(cluster, cluster.pods["default/large"]), is_read_only=True)
    helps = {tuple(step.sort.value for step in remedy.steps): remedy for remedy in found.found}
    assert helps["requestLess",].node == "node-1"
    assert helps["requestLess",].changes[0].verb == "patch"


def test_all_that_wait_are_placed_on_the_copy_alone() -> None:
    views = still(*CLUSTER)
    before = views.map.version
    found = ask(views, pending_pods)
    assert (len(found.placed), [group.pods for group in found.groups]) == (1, [("default/large",)])
    assert views.map.version == before
    assert len(ask(views, pending_pods).placed) == 1  # the next question begins with a copy that nobody has used


def test_of_very_many_that_wait_only_the_first_are_asked_about() -> None:
    found: PendingPods = ask(still(*CLUSTER), lambda cluster: pending_pods(cluster, most=1))
    assert (len(found.placed), found.groups, found.left_out) == (1, (), 1)


def test_copy_counts_pods_where_the_scheduler_does() -> None:
    world, views = alive(make_node("node-1").capacity(cpu="4"), make_pod("first").requests(cpu="3"))
    world.decided()
    assert views.observed.state.placed(views.observed.pods["default/first"]) is not None

    def left(cluster: ClusterModel) -> int:
        return int((cluster.state.nodes.allocatable - cluster.state.nodes.requested)[0, 0])

    assert ask(views, left) == 1000


def test_too_many_questions_at_once_are_refused() -> None:
    views = still(*CLUSTER)
    go_on = threading.Event()

    async def run() -> None:
        service = service_of(views)
        asked = [asyncio.ensure_future(service.run(tuple, lambda *_: go_on.wait())) for _ in range(MOST_WAITING)]
        await asyncio.sleep(0)
        try:
            with pytest.raises(BusyError):
                await service.run(tuple, lambda *_: go_on.wait())
        finally:
            go_on.set()
        await asyncio.gather(*asked)

    asyncio.run(run())


def test_question_that_nobody_waits_for_any_more_is_given_up_at_its_next_check() -> None:
    views = still(*CLUSTER)
    begun, go_on, ended = threading.Event(), threading.Event(), list[str]()

    def work(_: object, check_time: CheckTime) -> None:
        begun.set()
        go_on.wait()
        try:
            check_time()
        except QuestionTimeoutError as error:
            ended.append(str(error))

    async def run() -> None:
        service = service_of(views)
        asked = asyncio.ensure_future(service.run(tuple, work))
        await asyncio.to_thread(begun.wait)
        asked.cancel()
        await asyncio.wait((asked,))
        go_on.set()
        assert await service.run(tuple, lambda *_: "the next") == "the next"

    asyncio.run(run())
    assert ended == ["nobody waits for the answer any more"]


def test_page_says_after_how_long_an_answer_is_given_up() -> None:
    slow = files("kubesched.ui").joinpath("static/parts/slow.js").read_text()
    assert f'"{SLOW_TIMEOUT / 60:g} min at most"' in slow
