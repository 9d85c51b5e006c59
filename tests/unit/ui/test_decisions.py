from __future__ import annotations

from tests.unit.ui.observing import alive, observed

from kubesched.testing import make_node, make_pod
from kubesched.ui.model.decisions import EntryLog
from kubesched.ui.stream import Follower
from kubesched.ui.views import PageViews


def log_of(views: PageViews) -> EntryLog:
    assert views.observed.log is not None
    return views.observed.log


def test_decisions_are_remembered_with_their_reasons() -> None:
    world, views = alive(make_node("a"), make_pod("fits"), make_pod("large").requests(cpu="9"))
    world.tried()
    world.tried()
    entries = {entry.pod: entry for entry in log_of(views).entries}
    assert (entries["default/fits"].outcome, entries["default/fits"].node) == ("bound", "a")
    assert entries["default/large"].reasons == (("Insufficient cpu", 1),)
    assert entries["default/large"].plugins == ("NodeResourcesFit",)


def test_history_of_a_pod_ends_with_the_pod() -> None:
    pod = make_pod("large").requests(cpu="9")
    world, views = alive(make_node("a"), pod)
    world.tried()
    world.see(make_node("b").capacity(cpu="10"))
    world.pass_seconds(20)
    world.tried()
    assert [entry.attempt for entry in log_of(views).of("default/large")] == [1, 2]
    world.lose(pod)
    assert log_of(views).of("default/large") == []


def test_preemption_is_entered_in_the_ledger() -> None:
    low = make_pod("low").requests(cpu="4").priority(1).on("a")
    world, views = alive(make_node("a"), low, make_pod("high").requests(cpu="4").priority(9))
    world.tried()
    (entry,) = log_of(views).preemptions
    assert (entry.pod, entry.node, entry.victims) == ("default/high", "a", (("default/low", 1),))
    assert log_of(views).outcomes["preempts"] == 1
    assert views.queue.view().preemptions == (entry,)


def test_nothing_is_measured_while_nobody_looks() -> None:
    world, views = alive(make_node("a"), make_pod("p"), make_pod("q"))
    attempt = world.tried()
    assert attempt.watch is None
    assert views.queue.view().latency is None
    log_of(views).viewers = 1
    attempt = world.tried()
    assert attempt.watch is not None
    assert log_of(views).latency() is not None


def test_measured_plugins_are_those_of_the_attempts_in_detail() -> None:
    world, views = alive(make_node("a"), *(make_pod(f"p-{i}") for i in range(8)))
    log_of(views).viewers = 1
    for _ in range(8):
        world.tried()
    assert log_of(views).in_detail == 1
    assert {each.plugin for each in views.queue.view().plugins} >= {"DefaultBinder"}


def test_queue_is_counted_by_place_and_sampled_over_time() -> None:
    world, views = alive(
        make_node("a"), make_pod("gated").gate("g"), make_pod("large").requests(cpu="9"), make_pod("p")
    )
    views.queue.sample()
    world.tried()
    world.now = 1.0
    views.queue.sample()
    first, second = views.queue.view().samples
    assert (first[1:5], second[1:5]) == ((2, 0, 0, 1), (1, 0, 1, 1))
    assert second[5] == 1


# -- what pages are told ------------------------------------------------------------------------------------------


def test_follower_is_told_each_thing_once() -> None:
    world, views = alive(make_node("a"), make_pod("p"))
    follower = Follower(views, views.map.version, 0, "")
    assert set(follower.news(views)) == {"queue", "saying", "now"}
    assert follower.news(views) == {}
    world.tried()
    news = follower.news(views)
    assert [entry.pod for entry in news["decisions"]] == ["default/p"]
    assert news["map"].rows == [0]
    assert news["queue"].active == 0
    assert follower.news(views) == {}


def test_follower_that_missed_much_is_told_the_last_and_how_many_it_missed() -> None:
    world, views = alive(make_node("a"), *(make_pod(f"p-{i:03}") for i in range(70)))
    for _ in range(70):
        world.tried()
    news = Follower(views, views.map.version, 0, "").news(views)
    assert (len(news["decisions"]), news["skipped"], news["decisions"][-1].number) == (60, 10, 70)


def test_page_that_is_opened_later_begins_with_an_empty_log() -> None:
    world, _ = alive(make_node("a"), make_pod("p"))
    world.tried()
    late = observed(world)
    assert late.log is not None
    assert late.log.number == 0
