"""Time travel: any moment of a recording, forward and back, as the scheduler saw it then."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.shown_page import short_recording

from kubesched.plugins.registry import all_plugins
from kubesched.scheduler.replay import ReplayError
from kubesched.ui.stream import Follower
from kubesched.ui.travel import Timeline, TimeTravel

LINES = short_recording()


def travel() -> TimeTravel:
    return TimeTravel(LINES, "recording.jsonl", all_plugins())


def shown(there: TimeTravel) -> tuple[object, ...]:
    """What the page shows of a moment."""
    views = there.views
    pods = sorted(views.observed.pods)
    return views.map.whole("").columns, views.queue.counts(), pods, views.observed.log and views.observed.log.number


def test_pod_is_there_from_the_moment_of_its_arrival() -> None:
    there = travel()
    asyncio.run(there.go(19.9))
    assert "default/late" not in there.views.observed.pods
    asyncio.run(there.go(20.0))
    assert there.views.pods.view("default/late") is not None
    assert there.views.queue.counts().unschedulable == 1  # huge


@settings(max_examples=15, deadline=None)
@given(st.lists(st.floats(-5, 70), min_size=1, max_size=4))
def test_moment_is_the_same_whichever_way_one_came(moments: list[float]) -> None:
    there, directly = travel(), travel()
    for moment in moments:
        asyncio.run(there.go(moment))
    asyncio.run(directly.go(moments[-1]))
    assert shown(there) == shown(directly)
    assert there.now == directly.now


def test_timeline_counts_decisions_and_no_difference() -> None:
    there = travel()
    line = asyncio.run(there.go(there.end))
    assert isinstance(line, Timeline)
    assert (line.begin, line.now, line.differences) == (0.0, line.end, 0)
    log = there.views.observed.log
    assert log is not None
    assert sum(line.decisions) == log.number >= 3


def test_queue_has_a_past_at_any_moment() -> None:
    there = travel()
    asyncio.run(there.go(30.0))
    samples = there.views.queue.view().samples
    assert samples[0][0] == 0.0
    assert samples[-1][0] <= 30.0
    assert len(samples) > 100


def test_page_is_told_to_begin_anew_after_a_step_back() -> None:
    there = travel()
    asyncio.run(there.go(30.0))
    follower = Follower(there.views, there.views.map.version, 99, "")
    follower.news(there.views)
    asyncio.run(there.go(10.0))
    news = follower.news(there.views)
    assert news["again"]
    assert news["map"] == {"reload": True}
    assert "again" not in follower.news(there.views)


def test_what_is_no_recording_is_refused() -> None:
    with pytest.raises(ReplayError, match="line 1"):
        TimeTravel(["{}"], "x", all_plugins())
    with pytest.raises(ReplayError, match="line 3"):
        TimeTravel([*LINES[:2], "nonsense"], "x", all_plugins())
