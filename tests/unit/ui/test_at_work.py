"""A scheduler at work: it is asked in its thread, pays while somebody looks, and nothing when nobody does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.scheduler.world import World
from tests.unit.ui.observing import observed
from tests.virtual_time import now, run

from kubesched.testing import make_node, make_pod
from kubesched.ui.model.observed import ObservedCluster
from kubesched.ui.views import AT_A_STRETCH, LINGER, LONGEST_PAUSE, SHARE, Allowance, PageViews, SchedulerThreadViews


class Work:
    """A scheduler, and how the page is attached to it."""

    def __init__(self) -> None:
        self.world = World(make_node("a"), make_pod("p"))
        self.shown = SchedulerThreadViews(lambda: observed(self.world), self._detach, self._call)
        self.calls = 0

    @property
    def listeners(self) -> int:
        return len(self.world.scheduler.listeners)

    def _detach(self, seen: ObservedCluster) -> None:
        self.world.scheduler.listeners.remove(seen.log)  # type: ignore[arg-type]

    async def _call(self, function: Callable[[], Any]) -> Any:
        self.calls += 1
        return function()


def pods_of(views: PageViews) -> int:
    return len(views.observed.pods)


def test_page_is_attached_by_the_first_question_and_detached_a_while_after_the_last() -> None:
    async def story() -> None:
        work = Work()
        before = work.listeners
        assert await work.shown.ask(pods_of) == 1
        assert work.listeners == before + 1
        await asyncio.sleep(LINGER - 1)
        assert await work.shown.ask(pods_of) == 1
        await asyncio.sleep(LINGER - 1)
        assert work.listeners == before + 1
        await asyncio.sleep(2)
        assert work.listeners == before
        asked = work.calls
        await asyncio.sleep(60)
        assert work.calls == asked

    run(story())


def test_open_page_stays_attached() -> None:
    async def story() -> None:
        work = Work()
        before = work.listeners
        with work.shown.looking():
            await work.shown.ask(pods_of)
            await asyncio.sleep(10 * LINGER)
            assert work.listeners == before + 1
            assert len(await work.shown.ask(lambda views: views.queue.view().samples)) > LINGER
        await asyncio.sleep(LINGER + 1)
        assert work.listeners == before

    run(story())


def test_mistake_of_a_question_comes_back_to_who_asked() -> None:
    def mistaken(views: PageViews) -> None:
        raise KeyError("x")

    async def story() -> None:
        with pytest.raises(KeyError):
            await Work().shown.ask(mistaken)

    run(story())


def test_questions_wait_while_a_scheduler_with_pods_to_try_has_given_enough() -> None:
    async def story() -> None:
        work = Work()
        await work.shown.ask(pods_of)  # now it is known that there is a pod to try
        work.shown._allowance.spend(AT_A_STRETCH + 0.4 * SHARE, used=0.0)
        began = now()
        await work.shown.ask(pods_of)
        assert now() - began >= 0.4

    run(story())


def test_scheduler_with_nothing_to_try_has_time_for_every_question() -> None:
    async def story() -> None:
        work = Work()
        work.world.tried()
        await work.shown.ask(pods_of)
        work.shown._allowance.spend(100.0, used=0.0)
        began = now()
        await work.shown.ask(pods_of)
        assert now() == began

    run(story())


def test_allowance_comes_back_with_what_the_thread_does_for_itself_and_not_without_limit() -> None:
    allowance = Allowance(share=0.1, most=1.0)
    allowance.spend(1.05, used=100.0)
    assert allowance.pause() == pytest.approx(0.5)
    allowance.spend(0.0, used=100.6)
    assert allowance.pause() == 0.0
    allowance.spend(0.0, used=1000.0)
    allowance.spend(1.5, used=1000.0)
    assert allowance.pause() == LONGEST_PAUSE
